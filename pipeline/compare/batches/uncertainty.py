"""Intervals of a change and of its parts, from resamples of both batches.

The same buckets of queries are drawn of both batches: a query that is in both counts as often in
either, so that what makes queries differ from each other is no noise of the change.

Not here: drawing (``scores.evidence``), dividing (``decomposition``), and what is concluded
(``answers``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from metrics.weights import FloatArray
from pipeline.compare.batches.bucketed import Bucketed
from pipeline.compare.batches.contributions import NOTHING, Change, Ends, Split
from pipeline.compare.batches.decomposition import Division, Sides
from pipeline.compare.batches.partition import Partition
from pipeline.scores.evidence.comparisons import simultaneous
from pipeline.scores.evidence.intervals import LEAST_DEFINED, LEAST_QUERIES
from pipeline.scores.evidence.randomness import poisson_weights
from pipeline.settings.sections import Evidence
from schemas.counts import BUCKETS

MOST_PARTS = 256
"""Cells that have intervals of their own, where there are no more of them."""
_HELD = 200_000
"""Numbers that are held at once: what fits a processor's cache is done several times as fast."""


@dataclass(frozen=True)
class Resamples:
    """A change and its parts in resamples of both batches; all shapes begin with (resamples,).

    ``change``, ``mix`` and ``treatment`` go on with (1 + groups,), parts with (cells,).
    ``queries`` is on how many queries of equal weight all rest, ``cell_queries`` on how many each
    cell does, shape (cells,).
    """

    change: FloatArray
    mix: FloatArray
    treatment: FloatArray
    mix_parts: FloatArray | None
    treatment_parts: FloatArray | None
    queries: float
    cell_queries: FloatArray


def resampled(
    cut: Partition, sides: Sequence[Bucketed], evidence: Evidence, *, parts: bool
) -> Resamples:
    """Resamples of a partition that was divided before; with ``parts`` also of its cells."""
    weights = poisson_weights(evidence.seed, evidence.resamples, BUCKETS)
    cells = len(cut.names)
    entries = max(cells, *(len(each.cell) for each in sides))
    step = max(1, _HELD // (entries * cut.layout.size))
    found: list[Division] = []
    for start in range(0, len(weights), step):
        drawn = weights[start : start + step]
        rows = (sides[0].resampled(drawn, cells), sides[1].resampled(drawn, cells))
        found.append(cut.resampled(Sides(rows), parts=parts))
    return Resamples(
        np.concatenate([each.change for each in found]),
        np.concatenate([each.mix for each in found]),
        np.concatenate([each.treatment for each in found]),
        _parts([each.mix_parts for each in found]),
        _parts([each.treatment_parts for each in found]),
        min(_queries(cut, each) for each in sides),
        np.min([_of_cells(each, cells) for each in sides], axis=0),
    )


def _parts(blocks: Sequence[FloatArray | None]) -> FloatArray | None:
    """Of the score alone: groups have too many."""
    there = [each[:, :, 0] for each in blocks if each is not None]
    return np.concatenate(there) if there else None


def _queries(cut: Partition, side: Bucketed) -> float:
    """On how many queries the group with the fewest rests, or all where there are none."""
    layout = cut.layout
    if not cut.groups:
        return float(side.queries(0, 1)[0])
    compared = {
        name
        for counts in cut.whole
        for name, yes in zip(counts.groups, counts.takes_part, strict=True)
        if yes
    }
    start = layout.starts[2]
    found = side.queries(start, start + len(layout.groups))
    resting = zip(layout.groups, found.tolist(), strict=True)
    return min((n for name, n in resting if name in compared and n > 0), default=0.0)


def _of_cells(side: Bucketed, cells: int) -> FloatArray:
    """On how many queries each cell rests; as many as one wants where it has no list."""
    found = side.queries_by_cell(cells)
    return np.where(found > 0, found, np.inf)


def ends(
    value: FloatArray, drawn: FloatArray, queries: FloatArray, confidence: float
) -> list[Ends]:
    """Ends of intervals that hold at once, of numbers of shape (numbers,).

    ``drawn`` has shape (resamples, numbers).  Numbers that rest on less than two queries have none,
    nor have those without a value in too many resamples.
    """
    usable = np.isfinite(value) & (queries >= LEAST_QUERIES)
    usable &= np.isfinite(drawn).mean(axis=0) >= LEAST_DEFINED
    found = [NOTHING] * len(value)
    at = np.flatnonzero(usable)
    if not len(at):
        return found
    resting = np.where(np.isfinite(queries[at]), queries[at], BUCKETS)
    said = simultaneous(value[at], drawn[:, at], resting, confidence)
    for each, low, high in zip(at, said.lower.tolist(), said.upper.tolist(), strict=True):
        if np.isfinite(low) and np.isfinite(high):
            found[each] = (low, high)
    return found


def with_intervals(split: Split, cut: Partition, made: Resamples, confidence: float) -> Split:
    """A split whose numbers have intervals, all of which hold at once but for the change's own.

    Cells have none where there are more than MOST_PARTS, or where one rests on a single query.
    """
    columns: list[tuple[float | None, FloatArray, float]] = []
    changes = [split.score, *split.groups.values()]
    for at, each in enumerate(changes):
        columns += [
            (value, drawn[:, at], made.queries)
            for value, drawn in (
                (each.change if at else None, made.change),
                (each.mix, made.mix),
                (each.treatment, made.treatment),
            )
        ]
    place = {name: at for at, name in enumerate(cut.names)}
    if made.mix_parts is not None and made.treatment_parts is not None:
        for part in split.parts:
            at = place[part.cell]
            resting = float(made.cell_queries[at])
            columns.append((part.mix, made.mix_parts[:, at], resting))
            columns.append((part.treatment, made.treatment_parts[:, at], resting))
    values, drawn, queries = zip(*columns, strict=True)
    plain = np.array([np.nan if value is None else value for value in values])
    said = iter(ends(plain, np.stack(drawn, axis=1), np.array(queries), confidence))

    def told(change: Change) -> Change:
        return replace(
            change,
            change_interval=next(said),
            mix_interval=next(said),
            treatment_interval=next(said),
        )

    score = told(split.score)
    groups = {name: told(each) for name, each in split.groups.items()}
    parts = tuple(
        replace(each, mix_interval=next(said, NOTHING), treatment_interval=next(said, NOTHING))
        for each in split.parts
    )
    return replace(split, score=score, groups=groups, parts=parts)
