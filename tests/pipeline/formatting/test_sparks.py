"""Values as signs: a series in one line, and a status as a symbol and a word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.formatting.sparks import ASCII, BLOCKS, columns, glyphs_for, spark

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def test_heights_follow_values_and_gaps_stay_gaps() -> None:
    assert spark([0.0, 1 / 8, None, 7 / 8, 1.0], 0.0, 1.0) == "▁▂·██"
    assert spark([0.0, 0.5, None, 1.0], 0.0, 1.0, ASCII) == "_-o^"
    assert spark([float("nan"), float("inf")], 0.0, 1.0) == "··"
    assert spark([], 0.0, 1.0) == ""


def test_a_flat_series_stands_half_way() -> None:
    assert spark([3.0, None, 3.0], 3.0, 3.0) == "▄·▄"
    assert spark([0.2], 0.2, 0.2, ASCII) == "-"


@given(st.lists(st.none() | NUMBERS), NUMBERS, NUMBERS)
def test_every_value_has_its_column(values: list[float | None], low: float, high: float) -> None:
    drawn = spark(values, low, high)
    assert [sign == BLOCKS.gap for sign in drawn] == [value is None for value in values]
    assert set(drawn) <= set(BLOCKS.levels + BLOCKS.gap)
    known = sorted(
        (value, BLOCKS.levels.index(spark([value], low, high)))
        for value in values
        if value is not None
    )
    heights = [height for _, height in known]
    assert heights == sorted(heights)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "no-such-encoding"])
def test_an_encoding_without_blocks_has_ascii(encoding: str) -> None:
    assert glyphs_for(encoding) is ASCII
    assert (ASCII.levels + ASCII.gap).isascii()


@given(st.integers(1, 3000), st.integers(1, 60))
def test_columns_cover_every_batch_once(count: int, width: int) -> None:
    found = list(columns(count, width))
    assert len(found) <= width
    assert [at for span in found for at in range(span.start, span.stop)] == list(range(count))
