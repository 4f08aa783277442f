"""Numbers as text: three digits, and the same in a terminal and on the page."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.formatting.numbers import interval_text, number, score_text

TEXTS = {
    0.0: "0",
    0.3125: "0.313",
    0.72: "0.720",
    1.0: "1.00",
    12.5: "12.5",
    999.4: "999",
    999.6: "1,000",
    1234.5: "1,235",
    -1234.6: "-1,235",
    999999.4: "999,999",
    1e6: "1.00e6",
    -2.5e-7: "-2.50e-7",
    0.00012345: "0.000123",
    0.099996: "0.100",
}


@pytest.mark.parametrize("value", TEXTS)
def test_numbers_have_three_digits(value: float) -> None:
    assert number(value) == score_text(value, None) == TEXTS[value]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_text_is_near_its_number(value: float) -> None:
    told = Decimal(number(value).replace(",", ""))
    assert abs(told - Decimal(value)) <= abs(Decimal(value)) * Decimal("0.005")


def test_what_has_no_value_says_why() -> None:
    assert (number(None), score_text(None, "one_group")) == ("none", "none (one_group)")
    assert [number(float(each)) for each in ("inf", "nan")] == ["inf", "nan"]


def test_ends_of_intervals_that_are_not_known_are_left_open() -> None:
    assert interval_text(0.5, 1.0) == "0.500 to 1.00"
    assert (interval_text(None, 0.5), interval_text(0.5, None)) == ("to 0.500", "0.500 to")
    assert interval_text(None, None) == ""
