"""How verdicts and states of batches look: a word, a sign, a colour each, everywhere the same.

A colour asks for attention: vermilion for what is beyond a limit and for nothing else, amber for
what nobody knows for sure, plum for what is held back.  All else is grey; there is no green, since
fine needs no attention.  A sign and a word stand beside each colour, and no sign means two things.

Not here: which verdict a score has (``scores.verdicts``).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.formatting.encodings import can_print

BAD, UNSURE, HELD, GREY = "#D55E00", "#B57600", "#A8507F", "#8B939D"


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
        colour=BAD,
        style="bold red",
        text="breaches its threshold with confidence",
    ),
    Look(
        name="composition",
        symbol="≠",
        ascii="~",
        colour=UNSURE,
        style="yellow",
        text="beyond its threshold, as lists in random order would be: not for their order",
    ),
    Look(
        name="insufficient",
        symbol="?",
        ascii="?",
        colour=UNSURE,
        style="yellow",
        text="too little evidence for a verdict: few data, a group missing, or perhaps chance",
    ),
    Look(
        name="gated",
        symbol="⊘",
        ascii="#",
        colour=HELD,
        style="magenta",
        text="not judged: a data gate is closed",
    ),
    Look(
        name="undefined",
        symbol="∅",
        ascii="/",
        colour=GREY,
        style="",
        text="has a threshold but no value; the reason says why",
    ),
    Look(
        name="ok",
        symbol="✓",
        ascii="+",
        colour=GREY,
        style="",
        text="within its threshold",
    ),
    Look(
        name="not_judged",
        symbol="–",
        ascii="-",
        colour=GREY,
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
        colour=GREY,
        style="",
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
        colour=UNSURE,
        style="yellow",
        text="expected, but nothing has arrived",
    ),
    Look(
        name="no_data",
        symbol="□",
        ascii="0",
        colour=UNSURE,
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
        colour=UNSURE,
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
