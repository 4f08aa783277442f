"""Named settings of metrics: what they may be, and those that several metrics share.

Not here: parameters of one metric alone, and settings of an audit.
"""

from dataclasses import dataclass
from math import inf, isfinite

from metrics.terms import Value


@dataclass(frozen=True)
class Parameter:
    """A named setting of a metric.

    A number lies strictly between ``low`` and ``high``, or on ``low`` where ``from_low`` says so;
    ``whole`` admits whole numbers only.  Anything else is one of ``choices``; ``needs`` pairs a
    choice with the optional log column that it cannot do without.  ``always`` prints the value in
    the label even at its default, because the number means little without it.
    """

    name: str
    default: Value
    text: str
    low: float = 0.0
    high: float = 1.0
    choices: tuple[Value, ...] = ()
    always: bool = False
    from_low: bool = False
    whole: bool = False
    needs: tuple[tuple[Value, str], ...] = ()

    def accept(self, value: Value) -> Value:
        """``value`` in its one canonical form; ValueError says what would be accepted."""
        if self.choices:
            if not any(value == each and type(value) is type(each) for each in self.choices):
                options = ", ".join(text_of(choice) for choice in self.choices)
                raise ValueError(f"{self.name} is one of {options}, not {text_of(value)}")
            return value
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise ValueError(f"{self.name} is a number, not {text_of(value)}")
        above = value >= self.low if self.from_low else value > self.low
        if not (above and value < self.high):
            raise ValueError(f"{self.name} {self.bounds}, not {value:g}")
        if self.whole and value != int(value):
            raise ValueError(f"{self.name} is a whole number, not {value:g}")
        return int(value) if self.whole else float(value)

    @property
    def bounds(self) -> str:
        """Where a number may lie, in words."""
        if self.low == -inf and self.high == inf:
            return "is any number"
        if self.high == inf:
            return f"is {'at least' if self.from_low else 'above'} {self.low:g}"
        ends = f"{self.high:g} excluded" if self.from_low else "both excluded"
        return f"lies between {self.low:g} and {self.high:g} ({ends})"


def text_of(value: Value) -> str:
    """A parameter value as labels print it: shortest digits, ``true`` and ``false``."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)


# A reader looks at 1 / p = 10 ranks on average, a first page.
P = Parameter("p", 0.1, "share of attention at the top", always=True)
# A reader looks at 1 / (1 - decay) = 4 ranks on average, and hardly leaves the first page.
DECAY = Parameter("decay", 0.75, "attention left after each rank", always=True)
DENOMINATOR = Parameter(
    "denominator",
    "appearances",
    "what n_g counts: rows of the group, or its items in the item table times R",
    choices=("appearances", "catalogue"),
)
REFERENCE = Parameter(
    "reference",
    "list",
    "the mix to compare with: each list's own, the item table's, or the target in the settings",
    choices=("list", "catalogue", "target"),
)
NORMALISED = Parameter(
    "normalised",
    default=False,
    text="scale attention and relevance of each list to sum 1 first",
    choices=(False, True),
)
PER = Parameter(
    "per",
    "batch",
    "rows of all lists together, or each list on its own and then the mean over lists",
    choices=("batch", "list"),
)
