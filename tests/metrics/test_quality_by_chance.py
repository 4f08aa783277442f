"""What quality by group is in random order: against all orders of a list."""

from itertools import permutations

import numpy as np
import pytest

from metrics import Grouping, Rankings, parse_measure
from metrics.base import BY_CHANCE
from metrics.weights import FloatArray

GROUPS = ("A", "B", "C")


def rankings(orders: list[tuple[str, float]], times: int) -> Rankings:
    """``times`` lists one after the other; items are a group and a relevance."""
    size = len(orders) // times
    none = np.full(len(orders), np.nan)
    relevance = np.array([worth for _, worth in orders])
    return Rankings(
        starts=np.arange(times) * size,
        rank=np.tile(np.arange(1, size + 1), times),
        relevance=relevance,
        relevant=relevance >= 0.5,
        click=none,
        reference_rank=np.zeros(len(orders), dtype=np.int64),
        reference_length=np.zeros(times, dtype=np.int64),
        propensity=none,
        predicted_click=none,
        grouping=Grouping(
            GROUPS, np.array([GROUPS.index(name) for name, _ in orders]), np.ones(3, dtype=bool)
        ),
    )


ITEMS = [("A", 1.0), ("A", 0.0), ("B", 0.5), ("B", 0.25), ("B", 1.0)]


def values(label: str, reading: str | None, lists: Rankings) -> FloatArray:
    measure = parse_measure(label)
    return measure.list_functions[reading](lists, measure.given).value


@pytest.mark.parametrize(
    "label",
    ["GroupP@3", "GroupR@3", "GroupR(of=group)@2", "GroupnDCG", "GroupnDCG(of=group)@3",
     "GroupnDCG(gain=exp)@2"],
)  # fmt: skip
def test_it_is_the_mean_over_all_orders(label: str) -> None:
    orders = [list(order) for order in permutations(ITEMS)]
    together = rankings([item for order in orders for item in order], len(orders))
    due = values(label, BY_CHANCE, rankings(ITEMS, 1))[0]
    assert values(label, None, together).mean(axis=0) == pytest.approx(due, nan_ok=True)
    # Whatever the order, the same is due.
    assert values(label, BY_CHANCE, together)[-1] == pytest.approx(due, nan_ok=True)


def test_a_groups_own_precision_is_that_of_its_items() -> None:
    """Where the group stands in the first k at all: else it has no precision there."""
    label = "GroupP(of=group)@2"
    orders = [list(order) for order in permutations(ITEMS)]
    together = rankings([item for order in orders for item in order], len(orders))
    found = values(label, None, together)
    due = values(label, BY_CHANCE, together)
    assert np.isnan(found).tolist() == np.isnan(due).tolist()
    # one of two items of A is relevant, and two of three of B
    assert np.nanmax(due, axis=0)[:2].tolist() == [0.5, pytest.approx(2 / 3)]
    with np.errstate(invalid="ignore"):
        assert np.nanmean(found[:, :2], axis=0) == pytest.approx([0.5, 2 / 3])


def test_lists_without_anything_relevant_have_none() -> None:
    lists = rankings([("A", 0.0), ("B", 0.0)], 1)
    for label in ("GroupP@1", "GroupR@1", "GroupnDCG"):
        assert np.isnan(values(label, BY_CHANCE, lists)).all()
