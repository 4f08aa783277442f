"""Charts of one line of text: a column per batch, as high as its value.  No data is read here.

Not here: which scores are drawn (``terminal.series``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, isfinite

from pipeline.formatting.encodings import can_print


@dataclass(frozen=True)
class Glyphs:
    """What charts are drawn with: ``levels`` from low to high, and ``gap`` where there is none."""

    levels: str
    gap: str


BLOCKS = Glyphs("▁▂▃▄▅▆▇█", "·")
ASCII = Glyphs("_.-~^", "o")


def glyphs_for(encoding: str) -> Glyphs:
    """Blocks where ``encoding`` can say them, ASCII elsewhere, also in encodings nobody knows.

    >>> glyphs_for("utf-8") is BLOCKS, glyphs_for("latin-1") is ASCII
    (True, True)
    """
    return BLOCKS if can_print(BLOCKS.levels + BLOCKS.gap, encoding) else ASCII


def spark(values: Sequence[float | None], low: float, high: float, glyphs: Glyphs = BLOCKS) -> str:
    """``values`` as a line of blocks between ``low`` and ``high``; what lies beyond is cut.

    A value that is missing, or no number, is a gap: nothing is drawn in its place.  Where ``low``
    is ``high``, every value stands half-way.

    >>> spark([0.0, 0.5, None, 1.0], 0.0, 1.0)
    '▁▅·█'
    """
    top = len(glyphs.levels) - 1
    # Halved, because the distance of two large numbers may be more than a number can hold.
    span = high / 2 - low / 2

    def level(value: float) -> str:
        if span <= 0:
            return glyphs.levels[top // 2]
        share = (min(max(value, low), high) / 2 - low / 2) / span
        return glyphs.levels[min(top, int(share * (top + 1)))]

    return "".join(
        glyphs.gap if value is None or not isfinite(value) else level(value) for value in values
    )


def columns(count: int, width: int) -> Iterator[slice]:
    """Which of ``count`` batches each column stands for, so that at most ``width`` are needed.

    >>> [(each.start, each.stop) for each in columns(5, 3)]
    [(0, 2), (2, 4), (4, 5)]
    """
    size = max(1, ceil(count / width))
    return (slice(at, min(at + size, count)) for at in range(0, count, size))
