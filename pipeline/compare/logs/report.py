"""What a comparison of two logs found: of each query, overall, and as a document.

Not here: lines of a terminal (``cli.compare``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from metrics import ScoreName
from metrics.comparison import RBO
from metrics.comparison.depths import prefix_weight
from metrics.weights import FloatArray, IntArray
from pipeline.compare.logs.pairing import Matching

TOP_RANKS = 10
"""Ranks whose share in rank-biased overlap is told: a first page of results."""

LESS = "single queries, and how many lists have a partner, are not told (privacy.min_cell)"


@dataclass(frozen=True)
class Side:
    """What was read of one of the two logs; ``notes`` tell what was left out."""

    name: str
    lists: int
    rows: int
    rejected: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Overall:
    """One score over all pairs of lists: the mean of those ``lists`` that have a value."""

    name: ScoreName
    value: float | None
    reason: str | None
    lists: int


@dataclass(frozen=True)
class Comparison:
    """What two logs have in common.

    Arrays have shape (queries,), in the order of ``queries``, which is that of their names.
    ``lists`` pairs of lists answer a query; together they show ``items_a`` and ``items_b``, and
    ``shared`` of them stand in both.  ``values`` holds the mean over them by label, NaN where none
    has a value.  Unless it is ``told`` in full, only what is about all matched lists is, without
    how many: a query is too few, and how many have no partner may be.
    """

    a: Side
    b: Side
    matching: Matching
    overall: tuple[Overall, ...]
    queries: Sequence[str]
    lists: IntArray
    items_a: IntArray
    items_b: IntArray
    shared: IntArray
    values: Mapping[str, FloatArray]
    told: bool = True

    @property
    def scores(self) -> tuple[ScoreName, ...]:
        """The scores that were computed."""
        return tuple(each.name for each in self.overall)

    @property
    def deciding(self) -> ScoreName:
        """The score that says how much a query differs.

        Rank-biased overlap where it is computed, else the first score that has a bad side.
        """
        sided = [name for name in self.scores if name.alarm and name.fairest is not None]
        weighted = [name for name in sided if name.measure.metric is RBO]
        return (weighted or sided)[0]

    def most_different(self) -> IntArray:
        """Indices of the queries, the most different first; those without a value come last."""
        name = self.deciding
        values = self.values[name.label]
        found: IntArray = np.argsort(values if name.alarm == "low" else -values, kind="stable")
        return found

    def query(self, at: int) -> dict[str, Any]:
        """One query as a document."""
        values = {label: _number(column[at]) for label, column in self.values.items()}
        empty = {name.label: name.measure.metric.empty.value for name in self.scores}
        return {
            "query_id": self.queries[at],
            "lists": int(self.lists[at]),
            "items_a": int(self.items_a[at]),
            "items_b": int(self.items_b[at]),
            "shared": int(self.shared[at]),
            "values": values,
            "reasons": {label: empty[label] for label, value in values.items() if value is None},
        }

    def prefix_weights(self) -> list[dict[str, Any]]:
        """How much of rank-biased overlap the first ranks decide, for each ``p`` without a cut."""
        persistence = [
            float(name.measure.given["p"])
            for name in self.scores
            if "p" in name.measure.given and name.measure.k is None
        ]
        return [
            {"p": p, "ranks": TOP_RANKS, "weight": prefix_weight(p, TOP_RANKS)}
            for p in dict.fromkeys(persistence)
        ]

    def document(self) -> dict[str, Any]:
        """All of it as one JSON document, the most different query first."""
        return {
            "a": _described(self.a),
            "b": _described(self.b),
            "matched": {**asdict(self.matching), "lists": self.matching.lists}
            if self.told
            else None,
            "overall": [
                {
                    "score": each.name.label,
                    "value": each.value,
                    "reason": each.reason,
                    "lists": each.lists if self.told else None,
                    "without_value": self.matching.lists - each.lists if self.told else None,
                }
                for each in self.overall
            ],
            "prefix_weights": self.prefix_weights(),
            "ordered_by": self.deciding.label,
            "left_out": None if self.told else LESS,
            "queries": [self.query(at) for at in self.most_different().tolist()]
            if self.told
            else [],
        }


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _described(side: Side) -> dict[str, Any]:
    return {name: value for name, value in asdict(side).items() if name != "notes"}
