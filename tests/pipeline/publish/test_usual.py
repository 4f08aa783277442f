"""What is usual of a score: the median of the batches before it, which a bad day hardly moves."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from histories import NIGHTS, Given, fill, quiet, rewrite, score, small_audit, write
from stores import read

from pipeline.publish.copy import publish
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of
from schemas.usual import BEFORE, FAR, LEAST

BAD = 20
"""A night on which the score is far from usual."""


@pytest.fixture
def empty(tmp_path: Path) -> Settings:
    """An audit without batches."""
    return small_audit(tmp_path)


def usual(settings: Settings) -> dict[str, dict[str, Any]]:
    """Rows of v_usual, by batch; one series."""
    publish(settings)
    rows = read(store_of(settings).dashboard, "FROM v_usual ORDER BY batch")
    assert {row["label"] for row in rows} == {"EXP.MinMaxRatio"}
    return {row["batch"]: row for row in rows}


def brute(before: Sequence[float]) -> tuple[float, float]:
    """The median, and how far the band reaches from it."""
    middle = median(before)
    return middle, FAR * median(abs(value - middle) for value in before)


def checked(found: Mapping[str, Mapping[str, Any]], values: Sequence[float]) -> None:
    """Each row against its definition, where every night counts."""
    for at, value in enumerate(values):
        row, before = found[NIGHTS[at]], values[max(at - BEFORE, 0) : at]
        assert (row["value"], row["usual_count"]) == (value, len(before))
        if len(before) < LEAST:
            names = ("usual", "usual_low", "usual_high", "moved_beyond")
            assert [row[name] for name in names] == [None] * 4
            continue
        middle, reach = brute(before)
        assert row["usual"] == pytest.approx(middle, rel=1e-12)
        assert row["usual_low"] == pytest.approx(middle - reach, rel=1e-12)
        assert row["usual_high"] == pytest.approx(min(middle + reach, 1), rel=1e-12)
        assert row["moved_beyond"] == (abs(value - middle) > reach)


def test_it_is_the_median_of_four_weeks(empty: Settings) -> None:
    values = [quiet(at) for at in range(40)]
    fill(empty, 40)
    checked(usual(empty), values)


def test_a_bad_day_hardly_moves_it(empty: Settings) -> None:
    values = [quiet(at) for at in range(40)]
    fill(empty, 40)
    calm = usual(empty)
    values[BAD] = values[BAD + 2] = 0.7
    fill(empty, 40, {BAD: 0.7, BAD + 2: 0.7})
    found = usual(empty)
    checked(found, values)
    assert [night for night, row in found.items() if row["moved_beyond"]] == [
        NIGHTS[BAD],
        NIGHTS[BAD + 2],
    ]
    for night in NIGHTS[BAD + 1 : 40]:
        assert found[night]["usual"] == pytest.approx(calm[night]["usual"], abs=0.004)
        assert found[night]["usual_low"] > 0.85


def test_equal_values_have_a_band_of_their_interval(empty: Settings) -> None:
    def given(at: int, value: float, half: float | None) -> Given:
        ends = {} if half is None else {"lower": value - half, "upper": value + half}
        return Given(NIGHTS[at], [score(value, **ends)])

    write(empty, [given(at, 0.9, 0.02) for at in range(8)])
    write(empty, [given(8, 0.91, 0.02), given(9, 0.93, 0.02), given(10, 0.91, None)])
    found = usual(empty)
    for night in NIGHTS[7:10]:
        assert found[night]["usual"] == 0.9
        assert found[night]["usual_low"] == pytest.approx(0.88)
        assert found[night]["usual_high"] == pytest.approx(0.92)
    assert [found[night]["moved_beyond"] for night in NIGHTS[7:11]] == [False, False, True, True]
    # Without an interval there is no noise to allow for.
    assert found[NIGHTS[10]]["usual_low"] == found[NIGHTS[10]]["usual_high"] == 0.9


def test_gated_nights_and_nights_without_a_value_do_not_count(empty: Settings) -> None:
    fill(empty, 12, {3: 0.1})
    write(empty, [Given(NIGHTS[5], [score(None)])])
    rewrite(
        empty,
        f"INSERT INTO gates BY NAME SELECT '{NIGHTS[3]}' AS batch, 'volume' AS gate, 1 AS value, "
        "1 AS usual, 9 AS distance, 1 AS allowed, false AS passed, '' AS text, 3 AS baseline",
    )
    found = usual(empty)
    assert [row["usual_count"] for row in found.values()] == [0, 1, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9]
    assert found[NIGHTS[5]]["value"] is None
    assert found[NIGHTS[11]]["usual"] == pytest.approx(
        median(quiet(at) for at in range(11) if at not in (3, 5)), rel=1e-12
    )


def test_a_release_begins_it_anew(empty: Settings) -> None:
    fill(empty, 20, {at: quiet(at, 0.85) for at in range(10, 20)})
    rewrite(
        empty,
        f"INSERT INTO markers BY NAME SELECT '{NIGHTS[10]}' AS batch, 'v2' AS text, "
        "'mark' AS source, TIMESTAMP '2026-01-01' AS created_at",
    )
    found = usual(empty)
    assert [row["usual_count"] for row in found.values()] == [*range(10), *range(10)]
    middle, _ = brute([quiet(at, 0.85) for at in range(10, 19)])
    assert found[NIGHTS[19]]["usual"] == pytest.approx(middle, rel=1e-12)
