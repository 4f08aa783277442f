"""How verdicts and states of batches look: a word, a sign, a colour each, everywhere the same.

The colours are those of Okabe and Ito (Color Universal Design, 2008), which people tell apart
however they see colours; a sign and a word stand beside each all the same.  No sign means two
things.

Not here: which verdict a score has (``scores.verdicts``).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.formatting.encodings import can_print

ORANGE = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
YELLOW = "#F0E442"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#8C8C8C"


@dataclass(frozen=True, kw_only=True)
class Look:
    """How one verdict or one state of a batch looks.

    ``ascii`` stands where ``symbol`` cannot be printed, ``style`` is rich's for a terminal, and
    ``text`` explains what the name means.
    """

    name: str
    symbol: str
    ascii: str
    colour: str
    style: str
    text: str

    @property
    def word(self) -> str:
        """The name as people write it."""
        return self.name.replace("_", " ")


VERDICTS = (
    Look(
        name="breach",
        symbol="✕",
        ascii="x",
        colour=VERMILLION,
        style="bold red",
        text="breaches its threshold with confidence",
    ),
    Look(
        name="composition",
        symbol="≠",
        ascii="~",
        colour=YELLOW,
        style="cyan",
        text="beyond its threshold, as lists in random order would be: not for their order",
    ),
    Look(
        name="insufficient",
        symbol="?",
        ascii="?",
        colour=ORANGE,
        style="yellow",
        text="too little evidence for a verdict: few data, a group missing, or perhaps chance",
    ),
    Look(
        name="gated",
        symbol="⊘",
        ascii="#",
        colour=PURPLE,
        style="yellow",
        text="not judged: a data gate is closed",
    ),
    Look(
        name="undefined",
        symbol="∅",
        ascii="/",
        colour=SKY,
        style="yellow",
        text="has a threshold but no value; the reason says why",
    ),
    Look(
        name="ok",
        symbol="✓",
        ascii="+",
        colour=GREEN,
        style="green",
        text="within its threshold",
    ),
    Look(
        name="not_judged",
        symbol="–",
        ascii="-",
        colour=GREY,
        style="",
        text="no threshold is set",
    ),
)
"""From the gravest to the least."""
RUN = (
    Look(
        name="done",
        symbol="●",
        ascii="*",
        colour=GREEN,
        style="green",
        text="its scores are in the history",
    ),
    Look(
        name="unchanged",
        symbol="=",
        ascii="=",
        colour=GREY,
        style="dim",
        text="up to date: there was nothing to compute",
    ),
)
"""Batches with scores."""
ABSENT = (
    Look(
        name="missing",
        symbol="○",
        ascii=".",
        colour=GREY,
        style="yellow",
        text="expected, but nothing has arrived",
    ),
    Look(
        name="no_data",
        symbol="□",
        ascii="0",
        colour=GREY,
        style="yellow",
        text="no files, or no rows in them",
    ),
    Look(
        name="refused",
        symbol="!",
        ascii="!",
        colour=GREY,
        style="red",
        text="the data broke its contract",
    ),
    Look(
        name="failed",
        symbol="■",
        ascii="F",
        colour=GREY,
        style="red",
        text="an error stopped the run",
    ),
)
"""Batches without scores: always hollow on the page."""
LOOKS = {look.name: look for look in (*VERDICTS, *RUN, *ABSENT)}
GRAVEST = ("breach", "gated", "composition", "insufficient")
"""Statuses that charts mark, those first that hide others."""


def signs_for(encoding: str) -> Mapping[str, str]:
    """The sign of every look where text is in ``encoding``: all symbols, or all ASCII.

    >>> signs_for("utf-8")["breach"], signs_for("latin-1")["breach"]
    ('✕', 'x')
    """
    symbols = {name: look.symbol for name, look in LOOKS.items()}
    if can_print("".join(symbols.values()), encoding):
        return symbols
    return {name: look.ascii for name, look in LOOKS.items()}


def look_text(name: str, signs: Mapping[str, str]) -> str:
    """A verdict or state as people read it.

    >>> look_text("not_judged", signs_for("ascii"))
    '- not judged'
    """
    return f"{signs[name]} {LOOKS[name].word}"


def styled(name: str, text: str) -> str:
    """``text``, which is rich markup, in the style of a verdict or state."""
    style = LOOKS[name].style
    return f"[{style}]{text}[/]" if style else text
