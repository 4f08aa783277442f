"""What is left out cannot be had by sums and differences of what is published."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from suppressed_tables import Attacker, List, Number, Tables, batches, crowds

from metrics import UNKNOWN
from pipeline.privacy.small_cells import ALL, Block, Hidden, Place, hidden

K = st.integers(2, 5)


def attacked(tables: Tables, k: int) -> list[Number]:
    """Counts of small cells and slices that somebody who solves for them finds."""
    small = tables.small(k)
    out = hidden(*tables.sizes, k)
    return Attacker(tables, tables.published(out)).pinned(small) if small else []


def shops(*counts: tuple[str, str, int]) -> Tables:
    """Lists of one row: device, group and how many."""
    return Tables(
        tuple(
            List({"device": device}, ((group, "x"),))
            for device, group, number in counts
            for _ in range(number)
        ),
        ("device",),
        ("gender",),
    )


def test_the_attacker_subtracts() -> None:
    """Two women on tablets: left out alone, they are the total less those on phones."""
    tables = shops(("tablet", "F", 2), ("tablet", "M", 9), ("phone", "F", 20), ("phone", "M", 20))
    alone = Hidden(blocks=frozenset([Block("device", "tablet", "gender")]))
    number = ("rows", Place("device", "tablet"), "gender", "F")
    assert Attacker(tables, tables.published(alone)).pinned({number: 2}) == [number]
    out = hidden(*tables.sizes, 5)
    assert {block.slice_value for block in out.blocks} == {"tablet", "phone"}
    assert Attacker(tables, tables.published(out)).pinned({number: 2}) == []


def test_the_attacker_uses_what_is_empty() -> None:
    """No woman in y: then women on tablets, less those of them in z, are in x."""
    rows = [("a", "F", "x", 3), ("a", "F", "z", 9), ("a", "M", "x", 9), ("a", "M", "y", 9)]
    rows += [("b", "F", "x", 9), ("b", "F", "z", 9), ("b", "M", "y", 9), ("b", "M", "x", 9)]
    tables = Tables(
        tuple(
            List({"device": device}, ((one, other),))
            for device, one, other, number in rows
            for _ in range(number)
        ),
        ("device",),
        ("gender", "region", "gender*region"),
    )
    in_slices = [block for block in tables.cells if block.slice == "device"]
    joint = frozenset(block for block in in_slices if block.attribute == "gender*region")
    number = ("rows", Place("device", "a"), "gender*region", "F*x")
    assert Attacker(tables, tables.published(Hidden(blocks=joint))).pinned({number: 3}) == [number]
    out = hidden(*tables.sizes, 5)
    assert {block.attribute for block in out.blocks} == {"gender*region"}
    assert Block(*ALL, "gender*region") in out.blocks
    assert Attacker(tables, tables.published(out)).pinned({number: 3}) == []


@pytest.mark.parametrize("k", [0, 1])
def test_up_to_one_nothing_is_left_out(k: int) -> None:
    assert hidden(*shops(("tablet", "F", 1), ("phone", "M", 1)).sizes, k) == Hidden()


def test_a_cell_of_k_is_told_and_one_less_is_not() -> None:
    sizes = shops(
        ("tablet", "F", 5), ("tablet", "M", 7), ("phone", "F", 8), ("phone", "M", 9)
    ).sizes
    assert not hidden(*sizes, 5).blocks
    assert len(hidden(*sizes, 6).blocks) == 2
    assert hidden(*sizes, 6).places == frozenset()


def test_a_group_that_is_small_in_the_batch_takes_its_attribute_along() -> None:
    tables = shops(("tablet", "F", 3), ("tablet", "M", 50), ("phone", "M", 50))
    out = hidden(*tables.sizes, 5)
    assert out.blocks == tables.cells.keys()
    assert not out.places


def test_the_smallest_that_hides_is_left_out() -> None:
    devices = [("tablet", 2), ("phone", 30), ("desk", 20), ("watch", 25)]
    tables = shops(*((name, group, n) for name, n in devices for group in "FM"), ("tablet", "M", 9))
    out = hidden(*tables.sizes, 5)
    assert {block.slice_value for block in out.blocks} == {"tablet", "desk"}


def test_what_nothing_hides_is_left_out_everywhere() -> None:
    devices = [(name, "F", 3) for name in "abcd"] + [(name, "M", 30) for name in "abcde"]
    out = hidden(*shops(*devices).sizes, 5)
    assert {block.slice_value for block in out.blocks} == {*"abcde"}


def test_slices_of_too_few_are_left_out_with_one_that_hides_them() -> None:
    tables = shops(("watch", "F", 2), ("tablet", "F", 9), ("phone", "F", 20), ("desk", "F", 30))
    out = hidden(*tables.sizes, 5)
    assert {place.slice_value for place in out.places} == {"watch", "tablet"}
    assert {block.slice_value for block in out.blocks} == {"watch", "tablet"}


def test_rows_without_a_group_are_no_group() -> None:
    tables = shops(("a", UNKNOWN, 1), ("a", "F", 9), ("a", "M", 9), ("b", "F", 9), ("b", "M", 9))
    assert hidden(*tables.sizes, 5) == Hidden()


def test_a_batch_of_too_few_is_left_out() -> None:
    tables = shops(("a", "F", 2), ("b", "M", 2))
    out = hidden(*tables.sizes, 5)
    assert out == Hidden(frozenset(tables.places), frozenset(tables.cells))


@given(batches(slices=1, intersection=False), K)
def test_no_small_cell_is_found_from_groups_slices_and_totals(tables: Tables, k: int) -> None:
    assert attacked(tables, k) == []


@given(batches(slices=2, intersection=False), K)
def test_no_small_cell_is_found_from_two_slices(tables: Tables, k: int) -> None:
    assert attacked(tables, k) == []


@given(batches(slices=1, intersection=True), K)
def test_no_small_cell_is_found_from_intersections(tables: Tables, k: int) -> None:
    assert attacked(tables, k) == []


@given(batches(slices=2, intersection=True), K)
def test_no_small_cell_is_found_from_everything(tables: Tables, k: int) -> None:
    assert attacked(tables, k) == []


@pytest.mark.parametrize(("slices", "intersection"), [(1, False), (2, False), (1, True), (2, True)])
@given(st.data(), K)
def test_no_few_people_are_found(
    slices: int, intersection: bool, data: st.DataObject, k: int
) -> None:
    assert attacked(data.draw(crowds(slices=slices, intersection=intersection)), k) == []


def test_the_attacker_finds_one_person_in_many_lists() -> None:
    """By queries alone she would be told of: in forty lists."""
    she, them = ("F", "x"), ("M", "x")
    rows = [List({"device": "tablet"}, (she, them), ("Ada", f"m{n}")) for n in range(40)]
    rows += [List({"device": "phone"}, (she, them), (f"f{n}", f"o{n}")) for n in range(40)]
    tables = Tables(tuple(rows), ("device",), ("gender",))
    one = ("rows", Place("device", "tablet"), "gender", "F")
    assert tables.small(5)["items", *one[1:]] == 1
    assert one in Attacker(tables, tables.published(Hidden())).pinned(tables.small(5))
    out = hidden(*tables.sizes, 5)
    assert {block.slice_value for block in out.blocks} == {"tablet", "phone"}
    assert attacked(tables, 5) == []
