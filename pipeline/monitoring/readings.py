"""What scores of an incident said batch after batch, and when an incident is another one.

A reversal is: another group loses, and the difference between the former loser and the new one is
beyond chance.  So is a score that got clearly worse.  Both are news, whoever knows of the incident.

Not here: what is wrong with a batch (``findings``), and episodes themselves (``episodes``).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from metrics import LabelError, parse_score
from pipeline.monitoring.subjects import Series
from pipeline.scores.evidence.differences import is_apart
from pipeline.settings.sections import Threshold
from schemas.columns import Row

RECENT = 7
"""Batches a loser is remembered for.  Where one group loses on weekdays and another at weekends,
that is told once; a week holds each."""
CLEARLY = 1.25
"""How many times as far a score is from what is wanted, or usual, where it got clearly worse: an
interval of a large log leaves out values that nobody would call another incident."""


@dataclass(frozen=True)
class Reading:
    """One score in one batch, and the group that is worst off; None is what is not known.

    ``distance`` is how far it is from what is wanted, as a share of that, or from what is usual, in
    standard errors.
    """

    label: str
    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    loser: str | None = None
    distance: float | None = None

    @classmethod
    def of(cls, label: str, row: Row, distance: float | None) -> "Reading":
        """The reading that a row of fairness_history is."""
        ends = row["value"], row["lower"], row["upper"]
        return cls(label, *ends, loser=row["worst_group"], distance=distance)

    @classmethod
    def stored(cls, row: Row) -> "Reading | None":
        """The reading of a row of alert_batches; None in rows of before there were readings."""
        if row["reading_of"] is None:
            return None
        return cls(row["reading_of"], **{name: row[name] for name in _MEASURED})

    @property
    def columns(self) -> Row:
        """The reading as alert_batches holds it."""
        return {"reading_of": self.label, **{name: getattr(self, name) for name in _MEASURED}}


_MEASURED = ("value", "lower", "upper", "loser", "distance")
NO_READING: Row = dict.fromkeys(("reading_of", *_MEASURED))
"""The columns of a reading, where there is none."""
AreApart = Callable[[str, str], bool]
"""Whether the difference between two groups of tonight is beyond chance."""


def unfair_side(label: str, threshold: Threshold | None) -> int:
    """1 where a score is worse the higher it is, -1 the lower, 0 where nobody can say."""
    if threshold is not None:
        return 1 if threshold.min is None else -1
    try:
        return {"high": 1, "low": -1, None: 0}[parse_score(label).alarm]
    except LabelError:
        # An old history may hold a score that is declared no more.
        return 0


def is_reversal(before: Sequence[Reading], now: Reading, *, follows: bool, apart: AreApart) -> bool:
    """Whether another group loses than in the readings ``before``, beyond chance.

    A loser of one of the last ``RECENT`` is no news.  An incident that ``follows`` a reversal has
    to last as long before it can be reversed itself.
    """
    recent = [each.loser for each in before[-RECENT:] if each.loser is not None]
    if now.loser is None or not recent or now.loser in recent:
        return False
    if follows and len(before) < RECENT:
        return False
    former, _ = Counter(reversed(recent)).most_common(1)[0]
    return apart(former, now.loser)


def is_clearly_worse(first: Reading, now: Reading, wanted: float | None, side: int) -> bool:
    """Whether a score is beyond the interval that it had when it was told of.

    Further on the unfair ``side``, with its whole interval, and ``CLEARLY`` as far from what is
    ``wanted``.  No value is the worst there is: a group is shut out.
    """
    if first.label != now.label or not side or first.value is None:
        return False
    if now.value is None:
        return True
    far, near = (first.upper, now.lower) if side > 0 else (first.lower, now.upper)
    if wanted is None or far is None or near is None or side * (near - far) <= 0.0:
        return False
    return side * (now.value - wanted) >= CLEARLY * side * (first.value - wanted)


def worst_of(readings: Mapping[str, Reading], label: str, side: int) -> tuple[str, Reading] | None:
    """The batch with the worst reading of a score, and the reading; the earliest of equal ones."""
    if not side:
        return None
    found = [(batch, each) for batch, each in readings.items() if each.label == label]
    return max(
        found,
        key=lambda one: float("inf") if one[1].value is None else side * one[1].value,
        default=None,
    )


def are_apart(
    groups: Mapping[tuple[Series, str], Row], values: Series, one: str, other: str
) -> bool:
    """Whether two groups of a batch differ beyond chance.

    By the interval of their difference where one of them is what all are compared with; else, and
    in rows of before there were differences, where their own intervals do not touch.
    """
    first, second = groups.get((values, one)), groups.get((values, other))
    if first is None or second is None:
        return False
    for row, name in ((first, other), (second, one)):
        if row.get("compared_with") == name:
            return is_apart((row["difference_lower"], row["difference_upper"]))
    ends = [row[name] for row in (first, second) for name in ("lower", "upper")]
    if None in ends:
        return False
    low, high, other_low, other_high = ends
    return bool(high < other_low or other_high < low)
