"""Expected exposure of the items of a query: by hand, and the target by trying all orders."""

from collections.abc import Sequence
from itertools import pairwise, permutations

import numpy as np
import pytest
from list_native_lists import QUERY_LABELS, Row, close, lists_of
from rankings import per_list
from slow_queries import as_queries

from metrics import Rankings
from metrics.list_native.expected_exposure import target_exposure


def queries(*lists: tuple[str, str, Sequence[tuple[str, float]]]) -> tuple[list[Row], Rankings]:
    """Rows of (query, list, [(item, relevance), ...]), and the queries as lists at decay 1/2."""
    rows = [
        {"query_id": q, "list_id": name, "item_id": item, "rank": at, "relevance": relevance}
        for q, name, items in lists
        for at, (item, relevance) in enumerate(items, start=1)
    ]
    return rows, as_queries(rows, 0.5)


def test_expected_exposure_by_hand() -> None:
    # Two items of equal relevance and one of none; both are first once: the target is met.
    _, lists = queries(
        ("q", "a", [("x", 1.0), ("y", 1.0), ("z", 0.0)]),
        ("q", "b", [("y", 1.0), ("x", 1.0), ("z", 0.0)]),
    )
    assert target_exposure(lists, 0.5) == close([3 / 4, 3 / 4, 1 / 4])
    assert per_list("EEL(decay=0.5)", lists).value == close([0.0])
    both = 2 * (3 / 4) ** 2 + (1 / 4) ** 2
    assert per_list("EED(decay=0.5)", lists).value == close([both])
    assert per_list("EER(decay=0.5)", lists).value == close([both])
    # The same order each time, and the worst: z first.
    _, fixed = queries(("q", "a", [("z", 0.0), ("x", 1.0), ("y", 1.0)]))
    gaps = (1 - 1 / 4, 1 / 2 - 3 / 4, 1 / 4 - 3 / 4)
    assert per_list("EEL(decay=0.5)", fixed).value == close([sum(gap**2 for gap in gaps)])


def test_target_is_the_mean_over_all_orders_by_relevance() -> None:
    relevance = [0.5, 1.0, 0.5, 0.0, 0.5, 1.0]
    _, lists = queries(("q", "a", [(f"i{at}", grade) for at, grade in enumerate(relevance)]))
    orders = [
        order
        for order in permutations(range(6))
        if all(relevance[a] >= relevance[b] for a, b in pairwise(order))
    ]
    wanted = [sum(0.5 ** order.index(item) for order in orders) / len(orders) for item in range(6)]
    assert target_exposure(lists, 0.5) == close(wanted)


def test_loss_is_disparity_less_relevance_and_a_constant() -> None:
    rng = np.random.default_rng(7)
    _, lists = queries(
        *(
            (f"q{q}", f"q{q}.{at}", [(f"i{i}", (i % 3) / 2) for i in rng.permutation(8)[:6]])
            for q in range(9)
            for at in range(3)
        )
    )
    eel, eed, eer = (per_list(f"{name}(decay=0.5)", lists).value for name in ("EEL", "EED", "EER"))
    target = lists.sum(target_exposure(lists, 0.5) ** 2)
    assert eel == close(eed - 2 * eer + target)


def test_queries_of_one_item_have_no_expected_exposure() -> None:
    _, lists = queries(("q", "a", [("x", 1.0)]), ("q", "b", [("x", 1.0)]))
    for label in QUERY_LABELS:
        assert np.isnan(per_list(label, lists).value).all()
    with pytest.raises(TypeError, match="exposure"):
        per_list("EEL(decay=0.5)", lists_of("AB"))


def test_means_of_equal_relevance_are_one_grade() -> None:
    _, lists = queries(("q", "a", [("x", 0.3), ("y", 0.1 + 0.2), ("z", 0.7)]))
    assert target_exposure(lists, 0.5) == close([3 / 8, 3 / 8, 1])
