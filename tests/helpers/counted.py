"""Counts of plain rows, what a label scores on them, and one list of several: without a database.

Rows are those of ``rankings``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from rankings import Row, per_list, rankings

from metrics import Counts, Evaluation, ListSums, RankHistogram, Rankings, evaluate, parse_measure

COLUMNS = ("relevance", "click", "propensity", "predicted_click", "reference_rank")


def counts_of(
    rows: Sequence[Row],
    *,
    label: str | None = None,
    relevant_from: float = 0.5,
    groups: Sequence[str] = (),
    target: Mapping[str, float] | None = None,
    catalogue: Mapping[str, int] | None = None,
) -> Counts:
    """Counts by the column ``group``, with the sums over lists that ``label`` asks for.

    ``groups`` are groups to report beside those in ``rows``.
    """
    shares = {**dict.fromkeys(groups, 1.0), **(target or {})} or None
    lists = rankings(rows, "group", relevant_from=relevant_from, target=shares, catalogue=catalogue)
    (group, rank), cell = np.unique(
        np.stack([lists.groups.code, lists.rank]), axis=1, return_inverse=True
    )

    def counted(which: Any) -> Any:
        return np.bincount(cell.ravel(), weights=which).astype(np.int64)

    nothing = np.zeros(len(rank))
    return Counts(
        lists=lists.lists,
        groups=lists.groups.names,
        ranks=RankHistogram(
            group=group,
            rank=rank,
            rows=counted(np.ones(lists.rows)),
            judged=counted(~np.isnan(lists.relevance)),
            relevant=counted(lists.relevant),
            relevance=nothing,
            click_known=nothing.astype(np.int64),
            click=nothing,
        ),
        binary=True,
        target=target,
        catalogue=catalogue,
        known_rows={
            "rows": len(rows),
            **{name: sum(row.get(name) is not None for row in rows) for name in COLUMNS},
        },
        list_sums={} if label is None else {(label, None): sums_of(label, lists)},
    )


def sums_of(label: str, lists: Rankings) -> ListSums:
    """What the lists add up to for a label."""
    found = per_list(label, lists)
    some = ~np.isnan(found.value)
    weight = np.ones(found.value.shape) if found.weight is None else found.weight
    return ListSums(
        lists=np.atleast_1d(some.sum(axis=0)),
        value=np.atleast_1d(np.where(some, found.value, 0.0).sum(axis=0)),
        weight=np.atleast_1d(np.where(some, weight, 0.0).sum(axis=0)),
    )


def evaluated(label: str, rows: Sequence[Row], **how: Any) -> Evaluation:
    """A label on rows, of the batch or of lists."""
    measure = parse_measure(label)
    lists = measure.label if measure.uses_lists else None
    return evaluate(measure, counts_of(rows, label=lists, **how))


def by_group(found: Evaluation) -> dict[str, Any]:
    """The value of each group, or the reason why it has none."""
    assert found.values is not None
    values = found.values.values.tolist()
    return {
        name: reason or value
        for name, value, reason in zip(found.groups, values, found.values.reasons, strict=True)
    }


def one_of(lists: Rankings, at: int) -> Rankings:
    """One list of several, on its own."""
    rows = slice(lists.starts[at], lists.starts[at] + lists.length[at])
    return replace(
        lists,
        starts=np.array([0]),
        reference_length=lists.reference_length[at : at + 1],
        grouping=replace(lists.groups, code=lists.groups.code[rows]),
        exposure=None if lists.exposure is None else lists.exposure[rows],
        **{name: getattr(lists, name)[rows] for name in ("rank", "relevant", *COLUMNS)},
    )
