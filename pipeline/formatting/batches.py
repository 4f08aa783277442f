"""Names of batches as people say them.  Not here: moments (``numbers.utc``)."""

import re
from datetime import datetime

_DAY_OR_HOUR = re.compile(r"\d{4}-\d\d-\d\d(T\d\d)?")


def batch_text(batch: str, beside: str = "") -> str:
    """A day or an hour in words, without the year where ``beside`` is of the same one.

    Batches with other names stand as they are.

    >>> batch_text("2026-01-19"), batch_text("2026-01-19T07", beside="2026-02-01T00")
    ('19 January 2026', '19 January, 07:00')
    >>> batch_text("model-b")
    'model-b'
    """
    if not _DAY_OR_HOUR.fullmatch(batch):
        return batch
    try:
        moment = datetime.fromisoformat(batch)
    except ValueError:
        return batch
    year = "" if beside[:4] == batch[:4] and _DAY_OR_HOUR.fullmatch(beside) else f" {moment:%Y}"
    hour = f", {moment:%H}:00" if "T" in batch else ""
    return f"{moment.day} {moment:%B}{year}{hour}"


def is_day(batch: str) -> bool:
    """Whether a batch is named as a whole day."""
    return bool(_DAY_OR_HOUR.fullmatch(batch)) and "T" not in batch
