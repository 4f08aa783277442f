"""How verdicts and states of batches look: a word, a sign, a colour each, everywhere the same.

A colour asks for attention: vermilion for what is beyond a limit and for nothing else, amber for
what is unsure, plum for what is held back.  All else is a grey; there is no green, since fine needs
no attention.  A sign and a word stand beside each colour, and no sign means two things.

Not here: which verdict a score has (``scores.verdicts``).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.formatting.encodings import can_print

ORANGE = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
YELLOW = "#F0E442"
BLUE = "#0072B2"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#8C8C8C"

BAD, UNSURE, HELD = VERMILLION, "#B57600", "#A8507F"
SOFT, MARK, PALE = "#59616B", "#8B939D", "#A6AEB8"
"""Greys, from dark to light."""

CROSS = "M-1,-.6L-.6,-1L0,-.4L.6,-1L1,-.6L.4,0L1,.6L.6,1L0,.4L-.6,1L-1,.6L-.4,0Z"
"""The outline of ✕: Vega's own cross is upright."""

GROUPS = (BLUE, ORANGE, GREEN, PURPLE, SKY, YELLOW, VERMILLION)
"""Colours of groups, in the order of their names; a letter stands on each."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """How one verdict or one state of a batch looks.

    ``ascii`` stands where ``symbol`` cannot be printed, ``style`` is rich's for a terminal,
    ``shape`` a mark of Vega, and ``text`` explains what the name means.
    """

    name: str
    symbol: str
    ascii: str
    colour: str
    style: str
    shape: str = "circle"
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
        colour=BAD,
        style="bold red",
        shape=CROSS,
        text="breaches its threshold with confidence",
    ),
    Look(
        name="composition",
        symbol="≠",
        ascii="~",
        colour=SOFT,
        style="",
        shape="square",
        text="beyond its threshold, as lists in random order would be: not for their order",
    ),
    Look(
        name="insufficient",
        symbol="?",
        ascii="?",
        colour=UNSURE,
        style="yellow",
        shape="triangle-up",
        text="too little evidence for a verdict: few data, a group missing, or perhaps chance",
    ),
    Look(
        name="gated",
        symbol="⊘",
        ascii="#",
        colour=HELD,
        style="magenta",
        shape="diamond",
        text="not judged: a data gate is closed",
    ),
    Look(
        name="undefined",
        symbol="∅",
        ascii="/",
        colour=SOFT,
        style="",
        shape="triangle-down",
        text="has a threshold but no value; the reason says why",
    ),
    Look(
        name="ok",
        symbol="✓",
        ascii="+",
        colour=MARK,
        style="",
        text="within its threshold",
    ),
    Look(
        name="not_judged",
        symbol="–",
        ascii="-",
        colour=PALE,
        style="dim",
        text="no threshold is set",
    ),
)
"""From the gravest to the least."""
RUN = (
    Look(
        name="done",
        symbol="●",
        ascii="*",
        colour=MARK,
        style="",
        text="its scores are in the history",
    ),
    Look(
        name="unchanged",
        symbol="=",
        ascii="=",
        colour=PALE,
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
        colour=MARK,
        style="yellow",
        text="expected, but nothing has arrived",
    ),
    Look(
        name="no_data",
        symbol="□",
        ascii="0",
        colour=MARK,
        style="yellow",
        text="no files, or no rows in them",
    ),
    Look(
        name="refused",
        symbol="!",
        ascii="!",
        colour=HELD,
        style="magenta",
        text="the data broke its contract",
    ),
    Look(
        name="failed",
        symbol="■",
        ascii="F",
        colour=MARK,
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
