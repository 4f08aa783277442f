"""What changed for each group from one batch to another, with intervals.

The same resamples are drawn of both: a query that is in both counts as often in either, so that
what makes queries differ from each other is no noise of the change.

Not here: which batches are compared (``pipeline.monitoring``, ``pipeline.compare``).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np

from metrics import WHOLE, Measure, evaluate, replicated
from metrics.weights import FloatArray
from pipeline.counts.stored_counts import StoredCounts
from pipeline.scores.evidence.comparisons import paired
from pipeline.scores.evidence.resampling import Resampling
from pipeline.settings.audit import Settings

ALL = (WHOLE, WHOLE)


@dataclass(frozen=True)
class GroupsOf:
    """Values of the groups of one batch, shape (groups,), and resamples, (resamples, groups).

    ``queries`` is on how many queries of equal weight each rests, shape (groups,).
    """

    names: tuple[str, ...]
    value: FloatArray
    resampled: FloatArray
    queries: FloatArray


@dataclass(frozen=True)
class Change:
    """A group before and after: its own value, and how it stands ``against`` the others.

    That is its value over the mean of theirs where ``is_ratio``, else less it.  ``lower`` and
    ``upper`` are of the change of that; the intervals of all groups hold at once.
    """

    group: str
    before: float
    after: float
    against_before: float
    against_after: float
    lower: float | None
    upper: float | None
    is_ratio: bool

    @property
    def change(self) -> float:
        """How far the group moved against the others."""
        return self.against_after - self.against_before

    @property
    def is_certain(self) -> bool:
        """Whether that is beyond chance."""
        return (
            self.lower is not None
            and self.upper is not None
            and not (self.lower <= 0.0 <= self.upper)
        )


def groups_of(
    connection: duckdb.DuckDBPyConnection,
    database: str,
    settings: Settings,
    measures: Sequence[Measure],
) -> dict[tuple[str, str], GroupsOf]:
    """By attribute and metric, the compared groups of the whole batch in an attached file."""
    stored = StoredCounts(connection, database)
    resampling = Resampling(connection, database, settings, measures)
    found: dict[tuple[str, str], GroupsOf] = {}
    for attribute in settings.attribute_names:
        for measure in measures:
            counts = stored.counts(ALL, attribute, expected=measure.expects, settings=settings)
            said = evaluate(measure, counts, top_is_good=settings.top_of_list == "good")
            drawn = resampling.resampled(ALL, attribute, counts)
            made = replicated(said, drawn.replicates).groups
            if said.values is None or made is None or not len(made):
                continue
            at = [each for each in said.compared if np.isfinite(said.values.values[each])]
            found[attribute, measure.label] = GroupsOf(
                tuple(said.groups[each] for each in at),
                said.values.values[at],
                made[:, at],
                drawn.queries[at],
            )
    return found


def _against(values: FloatArray, *, is_ratio: bool) -> FloatArray:
    """Each group against the mean of the others, along the last axis."""
    others = (values.sum(axis=-1, keepdims=True) - values) / (values.shape[-1] - 1)
    if not is_ratio:
        return np.asarray(values - others)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(others > 0.0, values / others, np.nan))


def changes(
    before: GroupsOf, after: GroupsOf, confidence: float, *, is_ratio: bool
) -> Iterator[Change]:
    """What changed for each group that both batches compare; nothing for fewer than two."""
    names = [name for name in before.names if name in after.names]
    if len(names) < 2:
        return
    pick = [[each.names.index(name) for name in names] for each in (before, after)]
    values = [each.value[at] for each, at in zip((before, after), pick, strict=True)]
    then, now = (_against(each, is_ratio=is_ratio) for each in values)
    resampled = [
        _against(each.resampled[:, at], is_ratio=is_ratio)
        for each, at in zip((before, after), pick, strict=True)
    ]
    usable = np.isfinite(then) & np.isfinite(now)
    if not usable.all():
        return
    queries = np.minimum(before.queries[pick[0]], after.queries[pick[1]])
    said = paired(now, then, (resampled[1], resampled[0]), queries, confidence)
    for at, name in enumerate(names):
        ends = [float(each[at]) for each in (said.lower, said.upper)]
        low, high = ends if np.isfinite(ends).all() else (None, None)
        own = float(values[0][at]), float(values[1][at])
        yield Change(name, *own, float(then[at]), float(now[at]), low, high, is_ratio)


def all_changes(
    before: Mapping[tuple[str, str], GroupsOf],
    after: Mapping[tuple[str, str], GroupsOf],
    ratios: Mapping[str, bool],
    confidence: float,
) -> dict[tuple[str, str], list[Change]]:
    """By attribute and metric, what changed for each group; ``ratios`` says which are ratios."""
    return {
        key: list(changes(before[key], after[key], confidence, is_ratio=ratios[key[1]]))
        for key in before
        if key in after
    }
