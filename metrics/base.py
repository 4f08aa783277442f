"""What a metric is: a declaration, and a value once its parameters are bound.

Not here: any metric, and how values are computed from counts (``evaluate``).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from metrics.aggregations import AGGREGATIONS, Aggregation, Alarm, Range, Unit
from metrics.counts import Counts
from metrics.families import FAIRNESS, Family
from metrics.parameters import Parameter, text_of
from metrics.rankings import ListFunction
from metrics.reasons import Reason
from metrics.terms import Given, Number, Term, Value
from metrics.weights import Weight

BY_CHANCE = "by chance"
"""The reading of what lists would be in random order: no score; scores are held against it."""
USUAL_CUTOFF = 10
"""The cut-off of a metric that cannot do without one, where nobody names another.

Ten results are a first page, and what evaluations of rankings report most often."""


DEEPEST_CUTOFF = 999_999_999
"""The deepest cut-off that a label can say: nine digits, which fit into 32 bits."""


@dataclass(frozen=True)
class Reading:
    """One of several numbers that a metric gives for the same thing, such as a bound."""

    name: str
    formula: str
    range: Range
    per_list: ListFunction
    fairest: float | None = None
    alarm: Alarm | None = None
    plain: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class Metric:
    """What every metric declares.

    ``cutoff`` says whether ``@k`` may follow its name, ``needs_cutoff`` whether it must.
    ``per_list`` computes it list by list instead of from the counts; a metric that offers both has
    the parameter ``per``.  ``by_chance`` is what ``per_list`` would be of the same list in random
    order, on average; it has a value where that has one.  ``empty`` is the reason for a null
    where no list has a value.  ``needs`` are the optional log columns it cannot do without; on
    rows where one of ``partial`` is missing, the metric leaves the row out rather than having no
    value.  ``by_query`` is the
    position weight of a metric whose lists are queries: see ``Rankings``.  ``plain`` is its name in
    everyday words, where the title is not that.
    """

    name: str
    title: str
    range: Range
    source: str
    parameters: tuple[Parameter, ...] = ()
    cutoff: bool = False
    needs_cutoff: bool = field(default=False, kw_only=True)
    family: Family = field(default=FAIRNESS, kw_only=True)
    per_list: ListFunction | None = field(default=None, kw_only=True)
    by_chance: ListFunction | None = field(default=None, kw_only=True)
    empty: Reason = field(default=Reason.NOT_ENOUGH_ITEMS, kw_only=True)
    needs: frozenset[str] = field(default=frozenset(), kw_only=True)
    partial: frozenset[str] = field(default=frozenset(), kw_only=True)
    by_query: Weight | None = field(default=None, kw_only=True)
    plain: str = field(default="", kw_only=True)

    @property
    def formula(self) -> str:
        """The definition in one line of text."""
        raise NotImplementedError

    @property
    def everyday(self) -> str:
        """Its name in everyday words, as within a sentence."""
        return self.plain or self.title[0].lower() + self.title[1:]

    @property
    def columns(self) -> frozenset[str]:
        """Optional log columns that the metric cannot do without, whatever its parameters."""
        return self.needs

    @property
    def per_group(self) -> bool:
        """Whether the metric has a value for each group."""
        raise NotImplementedError

    @property
    def grouped(self) -> bool:
        """Whether the metric speaks of the groups of an attribute."""
        raise NotImplementedError

    @property
    def usual(self) -> "Measure":
        """The metric with its parameters at their defaults."""
        return self.at(USUAL_CUTOFF if self.needs_cutoff else None)

    def at(self, k: int | None = None, **given: Value) -> "Measure":
        """The metric with its parameters bound; ValueError on a name or value it does not take."""
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in given:
            if name not in known:
                takes = ", ".join(known) or "no parameters"
                raise ValueError(f"{self.name} takes {takes}, not {name}")
        if k is not None and not self.cutoff:
            raise ValueError(f"{self.name} has no cut-off: it needs whole lists")
        if k is None and self.needs_cutoff:
            raise ValueError(f"{self.name} needs a cut-off, as in {self.name}@{USUAL_CUTOFF}")
        if k is not None and not (k == int(k) and 1 <= k <= DEEPEST_CUTOFF):
            raise ValueError(
                f"the cut-off of {self.name} is a whole number from 1, not {k} "
                f"({DEEPEST_CUTOFF:,} is the deepest)"
            )
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

    ``value`` computes it from the counts; ``text`` is its formula where that does not say it.  A
    higher value is better for the group that has it, unless ``higher_is_better`` is false.  A
    sentence about it says that a group ``verb`` (in the past tense) so much of the ``thing``.
    """

    value: Term | None = field(default=None, kw_only=True)
    text: str = field(default="", kw_only=True)
    aggregations: tuple[Aggregation, ...] = field(default=AGGREGATIONS, kw_only=True)
    higher_is_better: bool = field(default=True, kw_only=True)
    verb: str = field(default="had", kw_only=True)
    thing: str = field(default="", kw_only=True)

    @property
    def formula(self) -> str:
        """Formula of one group's value."""
        return self.text or (self.value.text if self.value else "")

    @property
    def columns(self) -> frozenset[str]:
        """Optional log columns that the group value needs."""
        return self.needs | (self.value.columns if self.value else frozenset())

    @property
    def per_group(self) -> bool:
        """Every group has a value."""
        return True

    @property
    def grouped(self) -> bool:
        """It speaks of groups."""
        return True


@dataclass(frozen=True)
class SingleMetric(Metric):
    """A metric that is one number, or a few ``readings`` of one thing.

    ``by_groups``: it still speaks of an attribute's groups.  ``said`` is a sentence about a
    {value}, where its name and the value make none.
    """

    value: Callable[[Counts, Given], Number] | None = field(default=None, kw_only=True)
    text: str = field(kw_only=True)
    readings: tuple[Reading, ...] = field(default=(), kw_only=True)
    by_groups: bool = field(default=True, kw_only=True)
    fairest: float | None = field(default=0.0, kw_only=True)
    alarm: Alarm | None = field(default="high", kw_only=True)
    said: str = field(default="", kw_only=True)

    @property
    def formula(self) -> str:
        """Formula of the number."""
        return self.text

    @property
    def per_group(self) -> bool:
        """There is one number."""
        return False

    @property
    def grouped(self) -> bool:
        """Whether it speaks of groups."""
        return self.by_groups


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
    def columns(self) -> frozenset[str]:
        """Optional log columns that the measure cannot do without."""
        chosen = dict(self.parameters)
        asked = {
            column
            for parameter in self.metric.parameters
            for choice, column in parameter.needs
            if chosen[parameter.name] == choice
        }
        return self.metric.columns | asked

    @property
    def expects(self) -> str | None:
        """Whose groups count even where no row has them: ``catalogue``, ``target`` or nobody's."""
        asked = (self.given.get("denominator"), self.given.get("reference"))
        named = [name for name in ("catalogue", "target") if name in asked]
        return named[0] if named and self.metric.per_group else None

    @property
    def uses_lists(self) -> bool:
        """Whether it is computed list by list, rather than from counts of ranks."""
        has_lists = self.metric.per_list is not None or bool(self._readings)
        return has_lists and self.given.get("per", "list") == "list"

    @property
    def _readings(self) -> tuple[Reading, ...]:
        return self.metric.readings if isinstance(self.metric, SingleMetric) else ()

    @property
    def list_functions(self) -> Mapping[str | None, ListFunction]:
        """What to compute for each list, by the name of the reading."""
        if self._readings:
            return {reading.name: reading.per_list for reading in self._readings}
        both = {None: self.metric.per_list, BY_CHANCE: self.metric.by_chance}
        return {name: function for name, function in both.items() if function is not None}

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
        """Every score of the measure: one per aggregation or reading, or the one number it is."""
        ways = self.ways
        for way in ways or (None,):
            yield ScoreName(self, way)

    @property
    def ways(self) -> "tuple[Aggregation | Reading, ...]":
        """What may follow the label after a dot."""
        if isinstance(self.metric, GroupMetric):
            return self.metric.aggregations
        return self._readings


@dataclass(frozen=True)
class ScoreName:
    """A measure and how its groups are aggregated: what one row of the history is about."""

    measure: Measure
    aggregation: Aggregation | Reading | None

    @property
    def label(self) -> str:
        """``EXP.MinMaxRatio``, or ``NDKL`` for a metric that is one number."""
        if self.aggregation is None:
            return self.measure.label
        return f"{self.measure.label}.{self.aggregation.name}"

    @property
    def slug(self) -> str:
        """The label in letters, digits and underscores: ``AWRF_p_0_1_MaxMinDiff``."""
        said = self.label.replace("-", " minus ")
        pieces = "".join(c if c.isascii() and c.isalnum() else " " for c in said).split()
        return "_".join(pieces)

    @property
    def plain(self) -> str:
        """The name in everyday words, without parameters: ``exposure ratio, first 10``."""
        name = self.measure.metric.everyday
        if self.aggregation is not None and (way := self.aggregation.plain):
            name += f"{',' if ' ' in name + way else ''} {way}"
        k = self.measure.k
        return name if k is None else f"{name}, first {k if k > 1 else 'place'}"

    @property
    def unit(self) -> Unit:
        """How a value reads in a sentence."""
        return self.aggregation.unit if isinstance(self.aggregation, Aggregation) else "number"

    @property
    def said(self) -> str:
        """A sentence about a {value}, without its full stop; of groups {low} and {high}."""
        metric = self.measure.metric
        k = self.measure.k
        depth = "" if k is None else f" in the first {k if k > 1 else 'place'}"
        if isinstance(metric, GroupMetric) and isinstance(self.aggregation, Aggregation):
            said = self.aggregation.said.replace("{verb}", metric.verb)
            return said.replace("{thing}", (metric.thing or metric.everyday) + depth)
        if isinstance(metric, SingleMetric) and metric.said:
            return metric.said
        return f"{metric.everyday}{depth} was {{value}}"

    @property
    def _declared(self) -> Aggregation | Reading | SingleMetric | None:
        if self.aggregation is not None:
            return self.aggregation
        return self.measure.metric if isinstance(self.measure.metric, SingleMetric) else None

    @property
    def alarm(self) -> Alarm | None:
        """The bad side, None where neither is."""
        return self._declared.alarm if self._declared else None

    @property
    def fairest(self) -> float | None:
        """The value of a perfect ranking, None where there is none."""
        return self._declared.fairest if self._declared else None

    @property
    def range(self) -> Range:
        """Where values can lie."""
        own = self.measure.metric.range
        if self.aggregation is None:
            return own
        if isinstance(self.aggregation, Reading):
            return self.aggregation.range
        return self.aggregation.range(own.low, own.high)
