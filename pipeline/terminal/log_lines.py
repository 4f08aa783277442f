"""A run as lines that programs read: one per event, ``key=value``, without colour.

Not here: lines for people (``printing``), notes of what is under way (``notes``).
"""

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.runs.outcome import Outcome

PROGRAM = "evenrank"
"""What a line is about that is about no batch."""
_BARE = re.compile(r"[^\s\"'=\\\x00-\x1f]+")


def log_line(about: str, event: str, values: Mapping[str, object]) -> str:
    r"""One event: what it is about, what happened, and values; those that are None are left out.

    A value that is not one printable word is a JSON string.

    >>> log_line("2026-01-19", "done", {"lists": 1000, "message": 'a "b"'})
    '2026-01-19 done lists=1000 message="a \\"b\\""'
    """
    said = (f"{name}={_quoted(value)}" for name, value in values.items() if value is not None)
    return " ".join([about, event, *said])


def _quoted(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if _BARE.fullmatch(text) and text.isprintable():
        return text
    said = json.dumps(text, ensure_ascii=False)
    # What is left are signs that could steer a terminal, or end a line for some readers.
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in said)


def batch_log_line(outcome: "Outcome") -> str:
    """What became of a batch, as one event."""
    return log_line(
        outcome.batch,
        outcome.status,
        {
            "lists": outcome.lists,
            "rows": outcome.rows_read,
            "rejected": outcome.rows_rejected,
            "breaches": outcome.breaches,
            "revision": outcome.revision,
            "gated": True if outcome.gated else None,
            "message": outcome.message.split("\n")[0] or None,
        },
    )
