"""What resamples are made of: weights that stay what they are, and sums without rounding."""

import os
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from places import ROOT
from scipy import stats
from slow_resampling import bucket_of

from pipeline.counts.bucket_sums import BucketTotals
from pipeline.scores.evidence.randomness import poisson_weights
from pipeline.scores.evidence.resampling import exact_product
from schemas.counts import BUCKETS


def added(numbers: Any, cuts: int, order: Any) -> dict[Any, Any]:
    """Sums of (code, bucket, value, weight) that come in so many chunks, by key."""
    totals: BucketTotals[str] = BucketTotals()
    for chunk in np.array_split(order, cuts):
        code, bucket, value, weight = (column[chunk] for column in numbers)
        totals.add(("a", "b", "c"), code, bucket, value, weight)
    return {key: [each.tolist() for each in found] for key, *found in totals.totals()}


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e5])
def test_sums_by_bucket_are_exact_in_any_order_and_chunks(
    size: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(8)
    count = 4000
    numbers = (
        rng.integers(0, 2, count),
        rng.integers(0, 50, count),
        rng.normal(size=count) * size,
        rng.random(count) * size,
    )
    found = added(numbers, 1, np.arange(count))
    for waiting in (50_000, 10):
        monkeypatch.setattr("pipeline.counts.bucket_sums._WAITING", waiting)
        for cuts in (7, 200):
            assert added(numbers, cuts, rng.permutation(count)) == found
    # The key that no number has, has no sums.
    assert set(found) == {"a", "b"}
    for code, key in enumerate("ab"):
        for bucket, *sums in zip(*found[key], strict=True):
            here = (numbers[0] == code) & (numbers[1] == bucket)
            exact = [float(sum(map(Fraction, column[here].tolist()))) for column in numbers[2:]]
            assert sums == pytest.approx(exact, rel=1e-12, abs=1e-13)


def test_weights_are_poisson_of_mean_one() -> None:
    weights = poisson_weights(3, 200, BUCKETS)
    most = 6
    counts = np.bincount(np.minimum(weights, most).astype(int).ravel(), minlength=most + 1)
    law = stats.poisson(1)
    expected = [*law.pmf(range(most)), law.sf(most - 1)]
    assert stats.chisquare(counts, np.array(expected) * weights.size).pvalue > 1e-3
    # Neither resamples nor buckets know of each other.
    rows, columns = np.corrcoef(weights[:50]), np.corrcoef(weights[:, :50].T)
    for found, length in ((rows, BUCKETS), (columns, 200)):
        off = found[np.triu_indices_from(found, 1)]
        assert stats.kstest(off * np.sqrt(length), "norm").pvalue > 1e-3


def test_weights_belong_to_seed_resample_and_bucket() -> None:
    few, many = poisson_weights(3, 5, BUCKETS), poisson_weights(3, 50, BUCKETS)
    assert (few == many[:5]).all()
    assert (poisson_weights(3, 5, 100) == few[:, :100]).all()
    assert (poisson_weights(4, 5, BUCKETS) != few).any()
    assert not few.flags.writeable


def test_the_stream_is_the_one_that_stored_seeds_mean() -> None:
    """A change here changes every stored interval that anyone wants to compute again."""
    assert poisson_weights(1, 2, 12).astype(int).tolist() == STREAM
    assert poisson_weights(2**63 - 1, 1, 12).astype(int).tolist() == LAST_SEED
    assert [bucket_of(name) for name in ("q1", "query 7", "Zoë")] == [194, 163, 258]


STREAM = [[0, 2, 0, 0, 2, 0, 2, 0, 1, 0, 0, 2], [0, 4, 3, 1, 2, 1, 0, 3, 3, 2, 0, 1]]
LAST_SEED = [[3, 0, 1, 1, 2, 4, 0, 1, 0, 1, 1, 0]]


def whole_product(weights: Any, sums: Any) -> list[list[float]]:
    """The same sums in whole numbers of any length."""
    found = []
    for column in sums.T.tolist():
        size = float(np.abs(column).sum())
        shift = 48 - int(np.frexp(size)[1])
        parts = [round(np.ldexp(each, shift)) for each in column]
        found.append(
            [
                float(
                    np.ldexp(
                        float(sum(int(w) * p for w, p in zip(row, parts, strict=True))), -shift
                    )
                )
                for row in weights.tolist()
            ]
        )
    return [list(row) for row in zip(*found, strict=True)]


SUMS = {
    "plain": lambda rng: rng.random((300, 3)),
    "mixed signs": lambda rng: rng.normal(size=(300, 3)) * 1e9,
    "all scales": lambda rng: 10.0 ** rng.uniform(-300, 300, (300, 3)),
    "smallest": lambda rng: rng.random((300, 2)) * 1e-300,
    "subnormal": lambda rng: rng.random((300, 2)) * 1e-310,
    "largest": lambda rng: rng.random((300, 2)) * 1e303,
    "one": lambda rng: np.eye(300, 2) * np.pi,
    "nothing": lambda rng: np.zeros((300, 2)),
    "cancelling": lambda rng: np.concatenate([np.full((150, 1), 1e18), np.full((150, 1), -1e18)]),
}


@pytest.mark.parametrize("kind", SUMS)
def test_products_are_exact(kind: str) -> None:
    sums = SUMS[kind](np.random.default_rng(5))
    weights = np.array(poisson_weights(1, 20, len(sums)))
    weights[0] = 16
    assert exact_product(weights, sums).tolist() == whole_product(weights, sums)


PRODUCT = """
import hashlib, numpy as np
from pipeline.counts.bucket_sums import BucketTotals
from pipeline.scores.evidence.randomness import poisson_weights
from pipeline.scores.evidence.resampling import exact_product
rng = np.random.default_rng(3)
sums = rng.random((4096, 70)) * 10.0 ** rng.uniform(-9, 9, 70)
print(hashlib.sha256(exact_product(poisson_weights(1, 400, 4096), sums).tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_products_do_not_depend_on_threads() -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", PRODUCT],
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2")
    }
    assert len(digests) == 1
