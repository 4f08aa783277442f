"""What is known about every score of a batch beside the score itself.

Here: intervals and noise floors, put together.  Not here: how either is computed (``resampling``,
``intervals``, ``noise_floor``).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite

import duckdb
import numpy as np

from metrics import Counts, Evaluation, Measure, asked, replicated
from metrics.base import BY_CHANCE
from metrics.evaluate import way_of
from metrics.replicates import Replicated, group_values
from metrics.weights import FloatArray, ratio_of
from pipeline.scores.evidence.differences import Apart, from_worst, worst_of
from pipeline.scores.evidence.noise_floor import Floor, Noise
from pipeline.scores.evidence.resampling import Resampled, Resampling
from pipeline.settings.audit import Settings
from schemas.columns import Row

Ends = tuple[float | None, float | None]


@dataclass(frozen=True)
class AgainstChance:
    """A score against chance, with its interval; ``settled`` is what chance itself scores."""

    value: float
    lower: float | None
    upper: float | None
    settled: float


@dataclass(frozen=True)
class Doubt:
    """How far one score can be trusted; None is what is not known.

    ``lower`` and ``upper`` are the ends of the interval.  ``expected``, ``noise_limit``,
    ``p_noise`` say what chance alone gives: see ``Floor``.  ``against_chance`` is
    the score of what groups get over what the same lists would give them in random order.
    """

    lower: float | None = None
    upper: float | None = None
    expected: float | None = None
    noise_limit: float | None = None
    p_noise: float | None = None
    against_chance: AgainstChance | None = None


@dataclass(frozen=True)
class Sure:
    """The doubt about each score of an evaluation, and the interval of each group's value.

    ``queries`` says on how many queries of equal weight each group rests, and ``apart`` how far it
    is from the group ``worst`` that is worst off; both are empty where unknown.
    """

    scores: tuple[Doubt, ...]
    groups: tuple[Ends, ...] = ()
    queries: tuple[float, ...] = ()
    apart: tuple[Apart, ...] = ()
    worst: str | None = None


def nothing_about(found: Evaluation) -> Sure:
    """Where nothing is known beside the scores."""
    return Sure((Doubt(),) * len(found.scores), ((None, None),) * len(found.groups))


class Evidence:
    """Intervals and noise floors of one batch, from the tables of its file."""

    _resampling: Resampling | None = None
    _noise: Noise | None = None

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        database: str,
        settings: Settings,
        measures: Iterable[Measure],
    ) -> None:
        said = settings.evidence
        self._confidence = said.confidence
        if said.resamples:
            self._resampling = Resampling(connection, database, settings, measures)
        if said.noise_draws:
            self._noise = Noise(connection, database, settings)
        self._made: dict[tuple[object, ...], Resampled] = {}

    def occupied(self) -> list[Row]:
        """How many buckets of queries hold each slice and group; nothing without resamples."""
        return [] if self._resampling is None else self._resampling.occupied()

    def of(
        self,
        part: tuple[str, str],
        attribute: str,
        found: Evaluation,
        counts: Counts,
        queries: int,
    ) -> Sure:
        """What is known about one evaluation of a slice that holds so many ``queries``."""
        if all(score.value is None for score in found.scores) and found.values is None:
            return nothing_about(found)
        drawn = self._resampled(part, attribute, counts)
        size = len(found.groups) if found.values is not None else 0
        ends: tuple[Ends, ...] = ((None, None),) * len(found.scores)
        groups: tuple[Ends, ...] = ((None, None),) * size
        against: Sequence[AgainstChance | None] = (None,) * len(ends)
        apart: tuple[Apart, ...] = ()
        if drawn is not None:
            made = replicated(found, drawn.replicates)
            ends, groups = interval_ends(
                found, made, queries, self._confidence, effective=drawn.queries
            )
            against = against_chance(found, made, drawn, counts, self._confidence)
            apart = from_worst(found, made, drawn.queries, self._confidence)
        floors: Sequence[Floor | None] = (None,) * len(ends)
        if self._noise is not None:
            floors = self._noise.floors(part, attribute, found, counts, drawn)
        return Sure(
            tuple(map(_doubt, ends, floors, against)),
            groups,
            () if drawn is None else tuple(drawn.queries.tolist()),
            apart,
            worst_of(found) if apart else None,
        )

    def _resampled(self, part: tuple[str, str], attribute: str, counts: Counts) -> Resampled | None:
        """The slice and attribute resampled; None where nothing is."""
        if self._resampling is None:
            return None
        key = (part, attribute, counts.groups)
        if key not in self._made:
            # What is asked for next is of the same slice and attribute, or of another for good.
            if len(self._made) > 1:
                self._made.clear()
            self._made[key] = self._resampling.resampled(part, attribute, counts)
        return self._made[key]


def _doubt(end: Ends, floor: Floor | None, against: AgainstChance | None) -> Doubt:
    said = Doubt(*end)
    if floor is not None:
        said = replace(
            said,
            expected=floor.expected,
            noise_limit=floor.limit,
            p_noise=floor.p_value,
        )
    return said if against is None else replace(said, against_chance=against)


def interval_ends(
    found: Evaluation,
    made: Replicated,
    queries: int,
    confidence: float,
    *,
    effective: FloatArray | None = None,
) -> tuple[tuple[Ends, ...], tuple[Ends, ...]]:
    """The interval of each score of an evaluation, and of each group's value, from resamples.

    ``queries`` are those of the slice, ``effective`` on how many of equal weight each group rests.
    """
    from pipeline.scores.evidence.intervals import intervals

    length = max((len(each) for each in (made.groups, *made.scores) if each is not None), default=0)
    value = np.array([np.nan if score.value is None else score.value for score in found.scores])
    resting = np.full(len(value), float(queries))
    columns = [np.broadcast_to(np.nan if each is None else each, (length,)) for each in made.scores]
    if found.values is not None:
        value = np.concatenate([value, found.values.values])
        groups = np.nan if made.groups is None else made.groups
        columns += list(np.broadcast_to(groups, (length, len(found.groups))).T)
        own = np.full(len(found.groups), float(queries))
        resting = np.concatenate([resting, own if effective is None else effective])
    lower, upper = intervals(np.stack(columns, axis=1), value, resting, confidence)
    for at, (low, high) in _compared_ends(found, made, resting, confidence):
        lower[at], upper[at] = low, high
    # Resamples of a linear form (IAA, Gini) can leave the range of the metric.
    ranges = [score.name.range for score in found.scores]
    ranges += [found.measure.metric.range] * (len(value) - len(ranges))
    lower = np.minimum(np.maximum(lower, [each.low for each in ranges]), value)
    upper = np.maximum(np.minimum(upper, [each.high for each in ranges]), value)
    ends = tuple(zip(_known(lower), _known(upper), strict=True))
    return ends[: len(found.scores)], ends[len(found.scores) :]


def _compared_ends(
    found: Evaluation, made: Replicated, resting: FloatArray, confidence: float
) -> Iterator[tuple[int, Ends]]:
    """Ends of the scores that are extremes of comparisons, and where each score stands."""
    from pipeline.scores.evidence.comparisons import GroupResamples, ends_of, is_compared

    if found.values is None or made.groups is None or not len(made.groups):
        return
    queries = resting[len(found.scores) :]
    made_of: dict[tuple[int, ...], GroupResamples] = {}
    for at, (score, which) in enumerate(zip(found.scores, made.decided, strict=True)):
        if score.value is not None and is_compared(score.name.aggregation):
            if tuple(which) not in made_of:
                made_of[tuple(which)] = GroupResamples(
                    found.values.values[which], made.groups[:, which], queries[which]
                )
            yield at, ends_of(way_of(score.name), made_of[tuple(which)], confidence)


def against_chance(
    found: Evaluation,
    made: Replicated,
    drawn: Resampled,
    counts: Counts,
    confidence: float,
) -> Sequence[AgainstChance | None]:
    """The scores of what groups get, over what the same lists in random order would give them.

    None for what is no aggregation of one weighted sum over rows, nor of lists of which that is
    known.  Where an aggregation is about differences, what chance would give is taken away.
    """
    from pipeline.scores.evidence.comparisons import OF_RATIOS, GroupResamples, ends_of, is_compared

    none = (None,) * len(found.scores)
    if found.values is None or made.groups is None or found.measure.expects:
        return none
    values, groups = found.values.values, made.groups
    due = _due(found, drawn, counts)
    if due is None:
        return none
    fair, fairs = due
    share, shares = ratio_of(values, fair), ratio_of(groups, fairs)
    against: list[AgainstChance | None] = []
    parts: dict[tuple[bool, tuple[int, ...]], GroupResamples] = {}
    for score, which in zip(found.scores, made.decided, strict=True):
        if score.value is None or not is_compared(score.name.aggregation):
            against.append(None)
            continue
        way = way_of(score.name)
        key = way.name in OF_RATIOS, tuple(which)
        if key not in parts:
            own = (share, shares) if key[0] else (values - fair, groups - fairs)
            parts[key] = GroupResamples(own[0][which], own[1][:, which], drawn.queries[which])
        part = parts[key]
        lower, upper = _known(np.array(ends_of(way, part, confidence)))
        value, settled = float(way.of(part.value)), float(way.of(fair[which]))
        known = isfinite(value) and isfinite(settled)
        against.append(AgainstChance(value, lower, upper, settled) if known else None)
    return against


def _due(
    found: Evaluation, drawn: Resampled, counts: Counts
) -> tuple[FloatArray, FloatArray] | None:
    """Group values of the same lists in random order: of the batch, and of its resamples.

    None where a measure is no one weighted sum over rows, and nothing that order changes beside.
    """
    measure = found.measure
    if measure.uses_lists:
        sums = [
            each.list_sums.get((measure.label, BY_CHANCE)) for each in (counts, drawn.replicates)
        ]
        one, many = (None if each is None else ratio_of(each.value, each.weight) for each in sums)
        return None if one is None or many is None else (one, many)
    weighted = dict(asked(measure, drawn.depth).weighted)
    of_rows = [total for total in weighted if total[0] == "rows"]
    if len(of_rows) != 1 or (len(weighted) > 1 and "relevance" in measure.columns):
        return None
    by_chance = drawn.by_chance.get(weighted[of_rows[0]].tobytes())
    if by_chance is None:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        one, many = (
            group_values(found, replace(each, totals={**each.totals, of_rows[0]: total}))
            for each, total in (
                (drawn.batch, by_chance.sum[None]),
                (drawn.replicates, by_chance.resampled),
            )
        )
    return None if one is None or many is None else (one[0], many)


def _known(ends: FloatArray) -> list[float | None]:
    return [end if isfinite(end) else None for end in ends.tolist()]
