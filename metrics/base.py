"""What a metric is: a declaration, and a value once its parameters are bound."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite

from metrics.aggregations import AGGREGATIONS, Aggregation, Alarm, Range
from metrics.counts import Counts
from metrics.reasons import Reason
from metrics.terms import Given, Term, Value


@dataclass(frozen=True)
class Parameter:
    """A named setting of a metric.

    A number lies strictly between ``low`` and ``high``; anything else is one of ``choices``.
    ``always`` prints it in the label even at its default, because the number means little
    without it.
    """

    name: str
    default: Value
    text: str
    low: float = 0.0
    high: float = 1.0
    choices: tuple[Value, ...] = ()
    always: bool = False

    def accept(self, value: Value) -> Value:
        """``value`` in its one canonical form; ValueError says what would be accepted."""
        if self.choices:
            if not any(value == each and type(value) is type(each) for each in self.choices):
                options = ", ".join(text_of(choice) for choice in self.choices)
                raise ValueError(f"{self.name} is one of {options}, not {text_of(value)}")
            return value
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise ValueError(f"{self.name} is a number, not {text_of(value)}")
        if not self.low < value < self.high:
            raise ValueError(
                f"{self.name} lies between {self.low:g} and {self.high:g} (both excluded), "
                f"not {text_of(value)}"
            )
        return float(value)


def text_of(value: Value) -> str:
    """A parameter value as labels print it: shortest digits, ``true`` and ``false``."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)


P = Parameter("p", 0.1, "share of attention at the top", always=True)
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


@dataclass(frozen=True)
class Metric:
    """What every metric declares.  ``cutoff`` says whether ``@k`` may follow its name."""

    name: str
    title: str
    range: Range
    source: str
    parameters: tuple[Parameter, ...] = ()
    cutoff: bool = False

    @property
    def formula(self) -> str:
        """The definition in one line of text."""
        raise NotImplementedError

    @property
    def columns(self) -> frozenset[str]:
        """Optional log columns that the metric cannot do without."""
        raise NotImplementedError

    def at(self, k: int | None = None, **given: Value) -> "Measure":
        """The metric with its parameters bound; ValueError on a name or value it does not take."""
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in given:
            if name not in known:
                takes = ", ".join(known) or "no parameters"
                raise ValueError(f"{self.name} takes {takes}, not {name}")
        if k is not None and not self.cutoff:
            raise ValueError(f"{self.name} has no cut-off: it needs whole lists")
        if k is not None and k < 1:
            raise ValueError(f"the cut-off of {self.name} is a whole number from 1, not {k}")
        return Measure(
            self,
            tuple(
                (name, parameter.accept(given.get(name, parameter.default)))
                for name, parameter in known.items()
            ),
            k,
        )


@dataclass(frozen=True)
class GroupMetric(Metric):
    """A metric with one value per group, to be aggregated.

    A higher value is always better for the group that has it.
    """

    value: Term = field(kw_only=True)

    @property
    def formula(self) -> str:
        """Formula of one group's value."""
        return self.value.text

    @property
    def columns(self) -> frozenset[str]:
        """Optional log columns that the group value needs."""
        return self.value.columns


@dataclass(frozen=True)
class SingleMetric(Metric):
    """A metric that is one number.  ``grouped``: it still speaks of an attribute's groups."""

    value: Callable[[Counts, Given], float | Reason] = field(kw_only=True)
    text: str = field(kw_only=True)
    needs: frozenset[str] = frozenset()
    grouped: bool = True
    fairest: float | None = 0.0
    alarm: Alarm | None = "high"

    @property
    def formula(self) -> str:
        """Formula of the number."""
        return self.text

    @property
    def columns(self) -> frozenset[str]:
        """Optional log columns that the number needs."""
        return self.needs


@dataclass(frozen=True)
class Measure:
    """A metric with its parameters; its label is its identity: ``AWRF(p=0.1)@10``."""

    metric: Metric
    parameters: tuple[tuple[str, Value], ...]
    k: int | None = None

    @cached_property
    def label(self) -> str:
        """The printed identity; parameters at a default that need not be said are left out."""
        declared = {parameter.name: parameter for parameter in self.metric.parameters}
        said = [
            f"{name}={text_of(value)}"
            for name, value in self.parameters
            if declared[name].always or value != declared[name].default
        ]
        text = self.metric.name + (f"({','.join(said)})" if said else "")
        return text if self.k is None else f"{text}@{self.k}"

    @property
    def given(self) -> Given:
        """Parameter values by name, and the cut-off as ``k``, 0 for none."""
        return {**dict(self.parameters), "k": self.k or 0}

    @property
    def shown(self) -> Mapping[str, Value]:
        """What reports give as parameters: those in the label."""
        declared = {parameter.name: parameter for parameter in self.metric.parameters}
        shown = {
            name: value
            for name, value in self.parameters
            if declared[name].always or value != declared[name].default
        }
        return shown if self.k is None else {**shown, "k": self.k}

    def scores(self) -> Iterator["ScoreName"]:
        """Every score of the measure: one per aggregation, or the one number it is."""
        if isinstance(self.metric, GroupMetric):
            for aggregation in AGGREGATIONS:
                yield ScoreName(self, aggregation)
        else:
            yield ScoreName(self, None)


@dataclass(frozen=True)
class ScoreName:
    """A measure and how its groups are aggregated: what one row of the history is about."""

    measure: Measure
    aggregation: Aggregation | None

    @property
    def label(self) -> str:
        """``EXP.MinMaxRatio``, or ``NDKL`` for a metric that is one number."""
        if self.aggregation is None:
            return self.measure.label
        return f"{self.measure.label}.{self.aggregation.name}"

    @property
    def slug(self) -> str:
        """The label in letters, digits and underscores: ``AWRF_p_0_1_MaxMinDiff``."""
        pieces = "".join(c if c.isascii() and c.isalnum() else " " for c in self.label).split()
        return "_".join(pieces)

    @property
    def alarm(self) -> Alarm | None:
        """The unfair side, None where neither side is."""
        if self.aggregation is not None:
            return self.aggregation.alarm
        return self.measure.metric.alarm if isinstance(self.measure.metric, SingleMetric) else None

    @property
    def fairest(self) -> float | None:
        """The value of a perfectly fair ranking, None where there is none."""
        if self.aggregation is not None:
            return self.aggregation.fairest
        metric = self.measure.metric
        return metric.fairest if isinstance(metric, SingleMetric) else None

    @property
    def range(self) -> Range:
        """Where values can lie."""
        own = self.measure.metric.range
        if self.aggregation is None:
            return own
        return self.aggregation.range(own.low, own.high)
