"""Which pages have derived parts, and how these get into them.

A part stands between ``<!-- derived: name -->`` and ``<!-- /derived -->``.  Not here: what the
parts say, which is the work of the other modules.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from docs.build import architecture, metrics, settings, tables, tried

ROOT = Path(__file__).resolve().parents[2]
PAGES = tuple(
    ROOT / "docs" / f"{name}.md"
    for name in (
        "architecture",
        "bad-inputs",
        "evidence",
        "metrics",
        "operations",
        "reliability",
        "settings",
        "tables",
    )
)
PARTS: dict[str, Callable[[], str]] = {
    "rooms": architecture.rooms,
    "ways": architecture.ways,
    "metrics": metrics.metrics_overview,
    "metric-details": metrics.metric_details,
    "parameters": metrics.parameters,
    "aggregations": metrics.aggregations,
    "ranges": metrics.ranges,
    "reasons": metrics.reasons,
    "causes": metrics.causes,
    "history-tables": tables.history_tables,
    "batch-tables": tables.batch_tables,
    "copy-tables": tables.copy_tables,
    "views": tables.views,
    "rules": tables.rules,
    "settings": settings.settings,
    "bad-inputs": tried.bad_inputs,
    "crashes": tried.crashes,
}
_PART = re.compile(r"(<!-- derived: (?P<name>[\w-]+) -->\n).*?(<!-- /derived -->)", re.DOTALL)


def rewritten(text: str) -> str:
    """A page with its derived parts as they should be."""
    return _PART.sub(lambda m: f"{m[1]}\n{PARTS[m['name']]()}\n\n{m[3]}", text)


def parts_of(text: str) -> list[str]:
    """Names of the derived parts of a page."""
    return [match["name"] for match in _PART.finditer(text)]


def main(arguments: Sequence[str]) -> int:
    """Rewrite the pages, or with ``--check`` say which are stale."""
    check = "--check" in arguments
    texts = {page: page.read_text("utf-8") for page in PAGES}
    stale = {page: new for page, text in texts.items() if (new := rewritten(text)) != text}
    for page, new in stale.items():
        if not check:
            page.write_text(new, encoding="utf-8")
        print(f"{page.relative_to(ROOT)} {'is stale: make docs' if check else 'rewritten'}")
    return int(check and bool(stale))
