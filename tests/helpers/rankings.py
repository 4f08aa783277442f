"""Whole lists for tests of per-list metrics, made from plain rows, without a database.

A row is a mapping with ``list_id``, ``item_id``, ``rank`` and optional columns of the contract, as
in ``brute_force``; None or a missing key means unknown.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from metrics import UNKNOWN, Grouping, PerList, Rankings, parse_measure

Row = Mapping[str, Any]


def _column(rows: Sequence[Row], name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    values = (row.get(name) for row in rows)
    return np.array([np.nan if value is None else float(value) for value in values])


def rankings(
    rows: Sequence[Row],
    attribute: str | None = None,
    *,
    relevant_from: float = 0.5,
    target: Mapping[str, float] | None = None,
    catalogue: Mapping[str, float] | None = None,
    reference_length: Mapping[str, int] | None = None,
) -> Rankings:
    """Lists in order of list_id, rows in order of rank.

    ``target`` and ``catalogue`` are shares or sizes by group.  ``reference_length`` is by list; by
    default a list's deepest reference_rank.
    """
    ordered = sorted(rows, key=lambda row: (row["list_id"], row["rank"]))
    ids = [row["list_id"] for row in ordered]
    starts = np.array([at for at, name in enumerate(ids) if at == 0 or ids[at - 1] != name])
    relevance = _column(ordered, "relevance")
    reference = np.array([int(row.get("reference_rank") or 0) for row in ordered])
    depths = np.maximum.reduceat(reference, starts)
    if reference_length is not None:
        depths = np.array([reference_length[ids[at]] for at in starts])
    grouping = None
    if attribute is not None:
        groups = [row.get(attribute) or UNKNOWN for row in ordered]
        names = tuple(sorted({*groups, *(target or {}), *(catalogue or {})}))

        def shares(given: Mapping[str, float] | None) -> Any:
            if given is None:
                return None
            sizes = np.array([given.get(name, 0.0) for name in names])
            return sizes / sizes.sum()

        grouping = Grouping(
            names,
            np.array([names.index(group) for group in groups]),
            np.array([name != UNKNOWN for name in names]),
            shares(target),
            shares(catalogue),
        )
    return Rankings(
        starts=starts,
        rank=np.array([row["rank"] for row in ordered]),
        relevance=relevance,
        relevant=relevance >= relevant_from,
        click=_column(ordered, "click"),
        reference_rank=reference,
        reference_length=depths,
        propensity=_column(ordered, "propensity"),
        predicted_click=_column(ordered, "predicted_click"),
        grouping=grouping,
    )


def per_list(label: str, lists: Rankings) -> PerList:
    """What a label's function says of each list; with a reading, as in ``RBO(p=0.9).EXT``."""
    name, _, reading = label.partition(").") if ")." in label else (label, "", "")
    measure = parse_measure(name + ")" if reading else name)
    return measure.list_functions[reading or None](lists, measure.given)


def batch_value(found: PerList) -> Any:
    """The value of all lists together: a float, or shape (groups,); NaN where there is none."""
    defined = ~np.isnan(found.value)
    weight = np.ones(found.value.shape) if found.weight is None else found.weight
    total = np.where(defined, found.value, 0.0).sum(axis=0)
    whole = np.where(defined, weight, 0.0).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0, total / whole, np.nan)[()]
