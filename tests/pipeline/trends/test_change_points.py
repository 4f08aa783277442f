"""Change points: where and how much, against all divisions of a short series, and by law."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from ruptures import KernelCPD

from pipeline.trends import change_points
from pipeline.trends.change_points import segment_ends


def stepped(*levels: float, length: int = 20, noise: float = 0.1, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(level, noise, length) for level in levels])


def test_finds_each_change_with_the_means_around_it() -> None:
    values = stepped(1.0, 2.0, 0.5)
    first, second = change_points(values)
    assert (first.index, second.index) == (20, 40)
    assert (first.before, first.after) == pytest.approx((values[:20].mean(), values[20:40].mean()))
    assert first.after == second.before
    assert second.after == pytest.approx(values[40:].mean())


def test_missing_values_are_left_out_and_rows_keep_their_number() -> None:
    values = stepped(1.0, 2.0)
    gaps = np.insert(values, [0, 5, 20, 30], np.nan)
    (found,) = change_points(gaps)
    assert found.index == 23
    assert gaps[found.index] == values[20]


@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5])
def test_no_division_costs_less(seed: int) -> None:
    """In series without spikes; that of seed 3 has one."""
    values = stepped(0.0, 2.0, 1.0, length=9, noise=1.0, seed=seed)
    noise = np.median(np.abs(np.diff(values))) / (0.6745 * np.sqrt(2))
    penalty = 4.0

    def cost(edges: tuple[int, ...]) -> float:
        parts = np.split(values / noise, edges)
        return sum(((part - part.mean()) ** 2).sum() for part in parts) + penalty * len(edges)

    rows = len(values)
    divisions = [
        edges
        for changes in range(4)
        for edges in combinations(range(5, rows - 4), changes)
        if all(high - low >= 5 for low, high in pairwise(edges))
    ]
    found = change_points(values, least=5, penalty=penalty)
    assert tuple(point.index for point in found) == min(divisions, key=cost)


@pytest.mark.parametrize("rounding", [None, 0, 1])
def test_segments_are_those_of_ruptures(rounding: int | None) -> None:
    """Rounded values have many divisions that cost the same."""
    rng = np.random.default_rng(7)
    found, wanted = [], []
    for _ in range(300):
        size, least = int(rng.integers(14, 120)), int(rng.integers(1, 8))
        values = rng.normal(size=size) + np.cumsum(rng.random(size) < 0.05) * rng.normal()
        values = values if rounding is None else values.round(rounding)
        penalty = float(rng.choice([0.1, 1.0, 3.0 * np.log(size), 30.0]))
        found.append(segment_ends(values, least, penalty))
        kernel = KernelCPD(kernel="linear", min_size=least)
        wanted.append(kernel.fit(values[:, None]).predict(pen=penalty))
    assert found == wanted
    assert any(len(ends) > 2 for ends in found)


def test_units_and_origin_do_not_matter() -> None:
    values = stepped(1.0, 1.3, 0.9, noise=0.15, seed=3)
    before = change_points(values)
    after = change_points(1000 * values - 7)
    assert [point.index for point in after] == [point.index for point in before]
    assert [point.index for point in change_points(-values)] == [point.index for point in before]


@pytest.mark.parametrize("level", [0.0, 0.85])
def test_constants_and_short_series_have_none(level: float) -> None:
    assert change_points(np.full(60, level)) == []
    assert change_points(level + 1e-15 * np.arange(60)) == []
    assert change_points(np.full(60, np.nan)) == []
    assert change_points(stepped(0.0, 9.0, length=6)) == []
    assert change_points(np.array([])) == []


@pytest.mark.parametrize("size", [0.6, 2.0, 100.0])
@pytest.mark.parametrize("nights", [[0], [30], [30, 31], [29, 30, 31], [10, 40], [58, 59], [59]])
def test_wild_nights_are_no_change_of_level(nights: list[int], size: float) -> None:
    values = stepped(1.0, 1.0, 1.0)
    values[nights] += size
    assert change_points(values) == []


def test_wild_nights_beside_a_change_do_not_move_it() -> None:
    values = stepped(1.0, 2.0)
    values[[5, 26]] += [3.0, -3.0]
    (found,) = change_points(values)
    assert found.index == 20
    assert found.before == pytest.approx(np.delete(values[:20], 5).mean())


def test_changes_of_level_are_no_noise() -> None:
    values = stepped(0.0, 10.0, 0.0, 10.0, length=8, noise=1.0)
    assert [point.index for point in change_points(values)] == [8, 16, 24]


@pytest.mark.slow
@pytest.mark.parametrize("nights", [60, 365])
def test_quiet_series_rarely_have_any(nights: int) -> None:
    rng = np.random.default_rng(2)
    false = sum(bool(change_points(rng.normal(size=nights))) for _ in range(300))
    assert false <= 0.05 * 300
