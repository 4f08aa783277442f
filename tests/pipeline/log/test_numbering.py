"""Numbers of ids: equal where ids are, and nowhere else, whatever comes in which chunk."""

from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.log import numbering
from pipeline.log.numbering import IdNumbers

TEXTS = st.text("ab\0\u00e9\u6771", max_size=40) | st.sampled_from(
    ["", "a" * 7, "a" * 8, "a" * 9, "a" * 16, "a" * 17, "a" * 255, "a" * 256, "a" * 257, "a" * 300]
)
WHOLE = st.integers(-5, 60) | st.integers(-(2**63), 2**63 - 1) | st.integers(2**22 - 3, 2**22 + 3)


def numbered(chunks: list[pyarrow.Array]) -> dict[Any, int]:
    """The number of each id; all that has to hold of them is checked."""
    ids, seen = IdNumbers(), {}
    for chunk in chunks:
        found = ids.of(chunk)
        assert found.dtype == np.int32
        for value, number in zip(chunk.to_pylist(), found.tolist(), strict=True):
            assert seen.setdefault(value, number) == number
    assert sorted(seen.values()) == list(range(ids.count))
    said = ids.ids.to_pylist()
    assert all(said[number] == value for value, number in seen.items())
    return seen


@given(st.lists(st.lists(TEXTS, max_size=30), max_size=4))
def test_texts(chunks: list[list[str]]) -> None:
    numbered([pyarrow.array(chunk, pyarrow.string()) for chunk in chunks])


@given(st.lists(st.lists(TEXTS, min_size=1, max_size=30), max_size=4), st.integers(0, 5))
def test_texts_of_a_slice_and_of_a_dictionary(chunks: list[list[str]], start: int) -> None:
    slices = [pyarrow.array(chunk, pyarrow.string()).slice(start) for chunk in chunks]
    plain = numbered(slices)
    assert plain == numbered([pyarrow.array(each.to_pylist(), pyarrow.string()) for each in slices])
    ids = IdNumbers()
    for each in slices:
        assert ids.of(each.dictionary_encode()).tolist() == [plain[it] for it in each.to_pylist()]


@given(st.lists(st.lists(WHOLE, max_size=40), max_size=5))
def test_whole_numbers(chunks: list[list[int]]) -> None:
    numbered([pyarrow.array(chunk, pyarrow.int64()) for chunk in chunks])


@given(chunks=st.lists(st.lists(TEXTS, max_size=30), max_size=4))
def test_ids_of_one_hash_are_told_apart(chunks: list[list[str]]) -> None:
    whole = numbering._Table._hash

    def weak(table: Any, keys: Any) -> Any:
        """Eight hashes for all texts of several words, until another one has been tried twice."""
        found = whole(table, keys)
        few = len(keys) > 1 and table._seed < 2
        return found & np.uint64(7 << 60) if few else found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(numbering._Table, "_hash", weak)
        numbered([pyarrow.array(chunk, pyarrow.string()) for chunk in chunks])


def test_many_ids_in_any_order() -> None:
    chance = np.random.default_rng(3)
    drawn = chance.integers(0, 30_000, (4, 50_000))
    numbered([pyarrow.array([f"item {number}" for number in each.tolist()]) for each in drawn])
    numbered([pyarrow.array(each * 2**40) for each in drawn])
