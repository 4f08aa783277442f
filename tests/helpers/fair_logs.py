"""Logs in which group does not matter, or does, and their noise floors."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from logs import Found, Row, Rows, scored_file

List = tuple[str, ...]
"""A group name per item."""


def random_log(seed: int, lists: int, share: Mapping[str, float], most: int = 11) -> list[List]:
    """Lists of 2 to ``most`` items, each of a random group."""
    chance = np.random.default_rng(seed)
    names, p = list(share), list(share.values())
    return [
        tuple(chance.choice(names, chance.integers(2, most + 1), p=p).tolist())
        for _ in range(lists)
    ]


def biased(lists: Sequence[List], pull: float, seed: int) -> list[List]:
    """The same lists, the first group by name moved up: more, the larger ``pull`` is."""
    chance = np.random.default_rng(seed)
    first = min(group for each in lists for group in each)
    return [
        tuple(
            each[at]
            for at in np.argsort(
                chance.normal(size=len(each)) - pull * np.array([one == first for one in each])
            )
        )
        for each in lists
    ]


def rows_of(lists: Sequence[List], **more: Any) -> Rows:
    """Rows of a log: relevance does not depend on the order of groups."""
    return [
        {
            "list_id": f"list {number}",
            "item_id": f"{number}.{rank}",
            "rank": rank,
            "relevance": (number + len(group) + rank) % 2,
            "group": None if group == "." else group,
            **more,
        }
        for number, groups in enumerate(lists)
        for rank, group in enumerate(groups, start=1)
    ]


def floors(rows: Rows, labels: Sequence[str], draws: int = 2_000, **said: Any) -> Found:
    said.setdefault("evidence", {"resamples": 0, "noise_draws": draws})
    return scored_file(rows, metrics=list(labels), **said)


def scores_of(found: Found) -> Iterator[tuple[str, str, Row]]:
    for (*_, label), row in found.scores.items():
        # Aggregations stand after the last dot; NDKL has none.
        measure, _, aggregation = label.rpartition(".") if label != "NDKL" else (label, "", "")
        yield measure, aggregation, row
