"""Which cells answer, kind of request by kind of request."""

import numpy as np
import pytest

from pipeline.compare.batches.request_cells import Cut, Requests, by_query, by_slices


def requests(*kinds: tuple[str, int, int]) -> Requests:
    """Kinds as slice values, a letter each, and their lists in A and in B."""
    codes = [[ord(letter) for letter in values] for values, _, _ in kinds]
    return Requests(
        np.array(codes, dtype=np.int64).reshape(len(kinds), len(kinds[0][0]) if kinds else 0),
        np.array([[a, b] for _, a, b in kinds], dtype=float).reshape(-1, 2).T,
    )


def together(cut: Cut) -> list[set[int]]:
    """Kinds that share a cell."""
    cells = [set(np.flatnonzero(cut.cell == at).tolist()) for at in range(cut.count)]
    return sorted(cells, key=min)


def test_queries_that_both_have_are_cells_of_their_own() -> None:
    cut = by_query(requests(("a", 5, 5), ("a", 4, 4), ("b", 1, 2)))
    assert together(cut) == [{0}, {1}, {2}]
    assert cut.shared == (1, 1)
    assert cut.is_enough


def test_what_lacks_its_like_is_compared_within_its_slice() -> None:
    cut = by_query(requests(("a", 16, 17), ("a", 2, 0), ("a", 0, 1), ("b", 2, 2)))
    assert together(cut) == [{0}, {1, 2}, {3}]
    assert cut.shared == (0.9, 0.95)


def test_what_has_nothing_to_be_compared_with_gets_the_rarest_of_its_slice() -> None:
    cut = by_query(requests(("a", 9, 9), ("a", 2, 2), ("a", 1, 0), ("b", 9, 9), ("b", 0, 1)))
    assert together(cut) == [{0}, {1, 2}, {3, 4}]
    # Many ask for many.
    cut = by_query(requests(("a", 9, 9), ("a", 2, 2), ("a", 1, 1), ("a", 3, 0)))
    assert together(cut) == [{0}, {1, 2, 3}]
    assert cut.shared == (0.8, 1)


def test_what_its_slices_lack_is_compared_with_all_that_do() -> None:
    cut = by_query(requests(("ax", 9, 9), ("ay", 1, 0), ("by", 9, 9), ("bx", 0, 1)))
    assert together(cut) == [{0}, {1, 3}, {2}]


def test_a_value_that_only_one_batch_has_stands_alone() -> None:
    cut = by_query(requests(("ax", 9, 9), ("bx", 4, 0), ("by", 3, 0), ("ay", 5, 5)))
    assert together(cut) == [{0}, {1}, {2}, {3}]
    # There is no other treatment of it, and nothing to lack.
    assert cut.shared == (1, 1)
    assert together(by_slices(requests(("a", 9, 0), ("b", 0, 9)))) == [{0}, {1}]


def test_slices_together() -> None:
    cut = by_slices(requests(("ax", 4, 4), ("ax", 3, 0), ("by", 0, 4), ("bx", 4, 0), ("ay", 1, 2)))
    assert together(cut) == [{0, 1}, {2, 3}, {4}]
    assert cut.shared == pytest.approx((8 / 12, 0.6))
    assert not cut.is_enough


def test_no_slices_and_no_requests() -> None:
    assert together(by_query(requests(("", 2, 3), ("", 1, 0), ("", 0, 1)))) == [{0}, {1, 2}]
    assert by_query(requests()).shared == (0, 0)


def test_only_the_most_frequent_are_told_apart() -> None:
    cut = by_query(requests(("a", 1, 1), ("a", 5, 5), ("b", 3, 3), ("b", 2, 2)), most=2)
    assert together(cut) == [{0}, {1}, {2}, {3}]
    cut = by_query(requests(("a", 1, 1), ("a", 5, 5), ("a", 3, 3), ("a", 2, 2)), most=2)
    assert together(cut) == [{0, 3}, {1}, {2}]
    assert cut.shared == pytest.approx((8 / 11, 8 / 11))
