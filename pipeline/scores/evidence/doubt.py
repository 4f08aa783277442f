"""What is known about every score of a batch beside the score itself.

Here: intervals and noise floors, put together.  Not here: how either is computed (``resampling``,
``intervals``, ``noise_floor``).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

import duckdb
import numpy as np

from metrics import Counts, Evaluation, Measure, Replicates, replicated
from metrics.weights import FloatArray
from pipeline.settings.audit import Settings

if TYPE_CHECKING:
    from pipeline.scores.evidence.noise_floor import Floor, Noise
    from pipeline.scores.evidence.resampling import Resampling

Ends = tuple[float | None, float | None]


@dataclass(frozen=True)
class Doubt:
    """How far one score can be trusted; None is what is not known.

    ``lower`` and ``upper`` are the ends of the interval.  ``expected``, ``noise_limit``,
    ``p_noise`` and ``settled`` say what chance alone gives: see ``Floor``.
    """

    lower: float | None = None
    upper: float | None = None
    expected: float | None = None
    noise_limit: float | None = None
    p_noise: float | None = None
    settled: float | None = None


@dataclass(frozen=True)
class Sure:
    """The doubt about each score of an evaluation, and the interval of each group's value."""

    scores: tuple[Doubt, ...]
    groups: tuple[Ends, ...] = ()


def nothing_about(found: Evaluation) -> Sure:
    """Where nothing is known beside the scores."""
    return Sure((Doubt(),) * len(found.scores), ((None, None),) * len(found.groups))


class Evidence:
    """Intervals and noise floors of one batch, from the tables of its file."""

    _resampling: "Resampling | None" = None
    _noise: "Noise | None" = None

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        database: str,
        settings: Settings,
        measures: Iterable[Measure],
    ) -> None:
        said = settings.evidence
        self._confidence = said.confidence
        # Neither is loaded where nobody asks for it: scipy takes longer than small files.
        if said.resamples:
            from pipeline.scores.evidence.resampling import Resampling

            self._resampling = Resampling(connection, database, settings, measures)
        if said.noise_draws:
            from pipeline.scores.evidence.noise_floor import Noise

            self._noise = Noise(connection, database, settings)
        self._made: dict[tuple[object, ...], Replicates] = {}

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
        ends, groups = self._intervals(part, attribute, found, counts, queries)
        floors: Sequence[Floor | None] = (None,) * len(ends)
        if self._noise is not None:
            floors = self._noise.floors(part, attribute, found, counts)
        return Sure(
            tuple(
                Doubt(
                    *end,
                    *(
                        (floor.expected, floor.limit, floor.p_value, floor.settled)
                        if floor
                        else (None,) * 4
                    ),
                )
                for end, floor in zip(ends, floors, strict=True)
            ),
            groups,
        )

    def _intervals(
        self,
        part: tuple[str, str],
        attribute: str,
        found: Evaluation,
        counts: Counts,
        queries: int,
    ) -> tuple[tuple[Ends, ...], tuple[Ends, ...]]:
        if self._resampling is None:
            size = len(found.groups) if found.values is not None else 0
            return ((None, None),) * len(found.scores), ((None, None),) * size
        key = (part, attribute, counts.groups)
        if key not in self._made:
            # What is asked for next is of the same slice and attribute, or of another for good.
            if len(self._made) > 1:
                self._made.clear()
            self._made[key] = self._resampling.replicates(part, attribute, counts)
        return interval_ends(found, self._made[key], queries, self._confidence)


def interval_ends(
    found: Evaluation, counts: Replicates, queries: int, confidence: float
) -> tuple[tuple[Ends, ...], tuple[Ends, ...]]:
    """The interval of each score of an evaluation, and of each group's value, from resamples."""
    from pipeline.scores.evidence.intervals import intervals

    made = replicated(found, counts)
    length = len(counts.lists)
    value = np.array([np.nan if score.value is None else score.value for score in found.scores])
    columns = [np.broadcast_to(np.nan if each is None else each, (length,)) for each in made.scores]
    if found.values is not None:
        value = np.concatenate([value, found.values.values])
        groups = np.nan if made.groups is None else made.groups
        columns += list(np.broadcast_to(groups, (length, len(found.groups))).T)
    lower, upper = intervals(np.stack(columns, axis=1), value, queries, confidence)
    # Resamples of a linear form (IAA, Gini) can leave the range of the metric.
    ranges = [score.name.range for score in found.scores]
    ranges += [found.measure.metric.range] * (len(value) - len(ranges))
    lower = np.minimum(np.maximum(lower, [each.low for each in ranges]), value)
    upper = np.maximum(np.minimum(upper, [each.high for each in ranges]), value)
    ends = tuple(zip(_known(lower), _known(upper), strict=True))
    return ends[: len(found.scores)], ends[len(found.scores) :]


def _known(ends: FloatArray) -> list[float | None]:
    return [end if isfinite(end) else None for end in ends.tolist()]
