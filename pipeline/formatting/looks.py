"""How verdicts and states of batches look: a colour, a symbol and a word each, everywhere.

The colours are those of Okabe and Ito (Color Universal Design, 2008), which people tell apart
however they see colours; a symbol and a word stand beside each all the same.
"""

from dataclasses import dataclass

ORANGE = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
YELLOW = "#F0E442"
BLUE = "#0072B2"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#8C8C8C"

CROSS = "M-1,-.6L-.6,-1L0,-.4L.6,-1L1,-.6L.4,0L1,.6L.6,1L0,.4L-.6,1L-1,.6L-.4,0Z"
"""The outline of ✕: Vega's own cross is upright."""

GROUPS = (BLUE, ORANGE, GREEN, PURPLE, SKY, YELLOW, VERMILLION)
"""Colours of groups, in the order of their names; a letter stands on each."""


@dataclass(frozen=True)
class Look:
    """``shape`` is a mark of Vega."""

    name: str
    word: str
    symbol: str
    colour: str
    shape: str
    text: str


VERDICTS = (
    Look("breach", "breach", "✕", VERMILLION, CROSS, "beyond its threshold, for sure"),
    Look(
        "insufficient",
        "insufficient",
        "?",
        ORANGE,
        "triangle-up",
        "beyond its threshold, but not for sure, or made of too little",
    ),
    Look("gated", "gated", "⊘", PURPLE, "diamond", "not judged: the batch is unlike those before"),
    Look("undefined", "undefined", "∅", SKY, "triangle-down", "no value, with the reason"),
    Look("ok", "ok", "✓", GREEN, "circle", "within its threshold"),
    Look("not_judged", "not judged", "·", GREY, "circle", "no threshold is set"),
)
"""From the gravest to the least."""
ABSENT = (
    Look("missing", "missing", "○", GREY, "circle", "expected, and nothing has arrived"),
    Look("no_data", "no data", "○", GREY, "circle", "asked for, and there were no rows"),
    Look("refused", "refused", "!", GREY, "circle", "the data broke its contract"),
    Look("failed", "failed", "x", GREY, "circle", "an error stopped the run"),
)
"""Batches without scores: always hollow."""
LOOKS = {look.name: look for look in (*VERDICTS, *ABSENT)}

STATUS_SYMBOLS = {
    "ok": "+",
    "breach": "!",
    "insufficient": "?",
    "undefined": "o",
    "not_judged": "-",
    "gated": "#",
}
STATUS_STYLES = {
    "ok": "green",
    "breach": "bold red",
    "insufficient": "yellow",
    "undefined": "yellow",
    "not_judged": "",
    "gated": "yellow",
}
GRAVEST = ("breach", "gated", "insufficient")
"""Statuses that charts mark, those first that hide others."""


def status_text(status: str) -> str:
    """A status as people read it.

    >>> status_text("not_judged")
    '- not judged'
    """
    return f"{STATUS_SYMBOLS[status]} {status.replace('_', ' ')}"


def styled(status: str, text: str) -> str:
    """``text``, which is rich markup, in the colour of a status."""
    style = STATUS_STYLES[status]
    return f"[{style}]{text}[/]" if style else text
