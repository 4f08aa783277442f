"""What batches come to, in a terminal: the sentences that the page and the alerts say, too.

Not here: making them (``pipeline.publish.conclusions``).
"""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from pipeline.formatting.batches import batch_text
from pipeline.formatting.encodings import can_print
from pipeline.formatting.looks import LOOKS
from pipeline.publish.conclusions.published import published_conclusions
from pipeline.settings.audit import Settings
from pipeline.terminal.printing import harmless, printable

_STYLE_OF = {
    "new_breach": "breach",
    "breach": "breach",
    "window": "breach",
    "reversal": "breach",
    "gated": "gated",
    "refused": "refused",
    "failed": "failed",
    "insufficient": "insufficient",
}
"""States that ask for attention, and the look whose style they have."""


def print_conclusion(out: Console, settings: Settings, batches: Sequence[str]) -> None:
    """Print what the newest of ``batches`` comes to; nothing where none is published."""
    found = published_conclusions(settings, batches)
    if not found:
        return
    row = found[max(found)]
    sign = f"{row['sign']} " if can_print(row["sign"], out.encoding) else ""
    style = LOOKS[_STYLE_OF[row["state"]]].style if row["state"] in _STYLE_OF else "bold"
    note = f"   {row['note']}" if row["note"] else ""
    out.print()
    head = harmless(f"{sign}{row['word']}, {batch_text(row['batch'])}")
    out.print(Text.assemble((head, style), (harmless(note), "dim")))
    out.print(printable(row["sentence"]), style="bold")
    if row["second"]:
        out.print(printable(row["second"]))
    if row["small"]:
        out.print(printable(f"{row['small']} ({row['label']})"), style="dim")
