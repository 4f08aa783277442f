"""Groups against each other: mirrors, scales, groups that come late or come and go."""

import numpy as np
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st

from pipeline.settings.sections import Trends
from pipeline.trends import Comparisons, comparisons, follow, spoken

LONG = 80


def groups(seed: int, count: int, rows: int = LONG) -> np.ndarray:
    """Values of groups of a fair score: around 1, within a few percent."""
    return np.exp(np.random.default_rng(seed).normal(0, 0.02, (rows, count)))


def of(values: np.ndarray, *, is_ratio: bool = True, tested: int = 1) -> Comparisons:
    return comparisons(values, is_ratio=is_ratio, window=56, tested=tested)


def followed(values: np.ndarray, **said: bool) -> tuple[Comparisons, object]:
    made = of(values, **said)
    every = np.ones(made.values.shape, dtype=bool)
    unfair = np.zeros(len(made.group), dtype=np.int64)
    return made, follow(made.values, every, None, unfair, Trends())


def test_by_hand() -> None:
    values = np.array([[1.0, 2.0, 6.0]])
    found = of(values)
    assert found.values[0].tolist() == pytest.approx(
        [np.log(1 / 4), np.log(2 / 3.5), np.log(6 / 1.5)]
    )
    assert of(values, is_ratio=False).values[0].tolist() == [-3.0, -1.5, 4.5]
    assert found.group.tolist() == [0, 1, 2]
    assert found.mirror.tolist() == [-1, -1, -1]


def test_two_groups_are_one_series() -> None:
    found = of(groups(1, 2))
    assert (found.group.tolist(), found.mirror.tolist()) == ([0], [1])


def test_one_of_two_groups_that_comes_and_goes_is_still_the_mirror_of_the_other() -> None:
    values = groups(12, 2)
    values[::5, 0] = np.nan
    found = of(values)
    there = np.isfinite(found.values).any(axis=0)
    assert (found.group[there].tolist(), found.mirror[there].tolist()) == ([0], [1])


@examples(30, few=5)
@given(st.integers(0, 10_000), st.booleans())
def test_mirrored_groups_give_the_mirrored_series(seed: int, is_ratio: bool) -> None:
    values = groups(seed, 2)
    values[-5:, 0] *= 0.9
    (one, this), (other, that) = (
        followed(each, is_ratio=is_ratio) for each in (values, values[:, ::-1])
    )
    np.testing.assert_array_equal(other.values, -one.values)
    assert that.worse.p_value == this.worse.p_value
    assert that.worse.sign == -this.worse.sign
    assert that.worse.distance == this.worse.distance


@examples(30, few=5)
@given(st.integers(0, 10_000), st.integers(2, 5), st.floats(0.001, 1000))
def test_the_scale_of_values_does_not_matter(seed: int, count: int, scale: float) -> None:
    values = groups(seed, count)
    _, before = followed(values)
    for each, is_ratio in ((scale * values, True), (scale * values, False), (values + 3, False)):
        _, after = followed(each, is_ratio=is_ratio)
        if not is_ratio:
            _, other = followed(values, is_ratio=False)
            np.testing.assert_allclose(after.worse.deviate, other.worse.deviate, atol=1e-6)
        else:
            np.testing.assert_allclose(after.worse.deviate, before.worse.deviate, atol=1e-6)


def test_a_group_without_any_value_of_its_own_is_infinitely_far_behind() -> None:
    values = groups(3, 2)
    values[-1, 0] = 0.0
    _, found = followed(values)
    assert found.worse.sign[0] == -1
    assert found.worse.p_value[0] < 1e-12


def test_a_group_that_comes_late_moves_no_other_series() -> None:
    values = groups(4, 3)
    late = values.copy()
    late[:60, 2] = np.nan
    for rows in (61, 70, LONG):
        with_it, without = of(late[:rows]), of(values[:rows, :2])
        np.testing.assert_array_equal(with_it.values[:, 0], without.values[:, 0])
    # It is followed itself, against both, from its own first batch on.
    own = with_it.values[:, with_it.group.tolist().index(2)]
    assert np.isnan(own[:60]).all()
    np.testing.assert_allclose(
        own[60:], np.log(late[60:, 2] / late[60:, :2].mean(axis=1)), atol=1e-12
    )


def test_once_it_is_always_there_the_others_are_compared_with_it() -> None:
    values = groups(5, 3, 160)
    values[:60, 2] = np.nan
    found = of(values)
    assert found.group.tolist() == [0, 1, 2]
    np.testing.assert_allclose(
        found.values[60:, 0], np.log(values[60:, 0] / values[60:, 1:].mean(axis=1)), atol=1e-12
    )


def test_a_group_that_comes_and_goes_is_no_yardstick() -> None:
    values = groups(6, 3)
    values[::3, 2] = np.nan
    found = of(values)
    assert np.isfinite(found.values[:, 0]).all()
    np.testing.assert_array_equal(found.values[:, 0], of(values[:, :2]).values[:, 0])


def test_each_batch_has_the_yardsticks_of_its_own_night() -> None:
    values = groups(7, 3, 160)
    values[:60, 2] = np.nan
    every = of(values, tested=160)
    assert (every.speaks.sum(axis=1) >= 2).all()
    for row in (50, 90, 159):
        alone = of(values[: row + 1])
        told = np.flatnonzero(every.speaks[row])
        np.testing.assert_array_equal(every.group[told], alone.group)
        np.testing.assert_array_equal(every.values[: row + 1, told], alone.values)


def test_nights_without_values_are_passed_over() -> None:
    values = groups(8, 2)
    values[10:20] = np.nan
    values[40] = np.nan
    values[-3:, 0] *= 0.8
    _, found = followed(values)
    assert found.worse.p_value[0] < 1e-6
    # Of 56 nights before the newest 14, eleven are missing.
    assert found.baseline[0] == 56 - 11


# -- what series say of a score


def test_the_group_that_moved_furthest_speaks_for_the_score() -> None:
    values = groups(9, 4)
    values[-4:, 2] *= 0.8
    made, found = followed(values)
    said = spoken(found, np.zeros(4, dtype=np.int64), np.ones(4, dtype=bool), 1)
    assert made.group[said.of_worse[0]] == 2
    assert said.worse.sign[0] == -1
    # Four looks at one score are paid for.
    assert said.worse.p_value[0] == pytest.approx(4 * found.worse.p_value.min())


def test_a_gap_that_closes_is_better_and_beyond_it_worse_again() -> None:
    behind = groups(10, 2)
    behind[:, 0] *= 0.7
    wider, closes, beyond = behind.copy(), behind.copy(), behind.copy()
    wider[-3:, 0] *= 0.8
    closes[-3:, 0] *= 1.3
    beyond[-3:, 0] *= 2.5
    _, found = followed(wider)
    assert (found.worse.p_value[0] < 1e-6, found.better.p_value[0]) == (True, 1.0)
    _, found = followed(closes)
    assert found.better.p_value[0] < 1e-6
    assert found.better.sign[0] == 1
    assert found.worse.p_value[0] == 1.0
    _, found = followed(beyond)
    assert found.worse.p_value[0] < 1e-6
    assert found.worse.sign[0] == 1


def test_near_equality_either_side_is_worse() -> None:
    for factor, sign in ((0.8, -1), (1.25, 1)):
        values = groups(11, 2)
        values[-3:, 0] *= factor
        _, found = followed(values)
        assert found.worse.p_value[0] < 1e-6
        assert found.worse.sign[0] == sign
        assert not found.better.p_value[0] < 1


def test_groups_that_never_move_raise_nothing_by_rounding() -> None:
    values = np.tile([0.1 + 0.2, 0.3, 0.7 / 3], (LONG, 1))
    values[::2] *= 1 + 1e-15
    with np.errstate(all="raise"):
        _, found = followed(values)
    assert (np.abs(found.worse.deviate) < 0.01).all()
    assert (found.worse.p_value > 0.05).all()
