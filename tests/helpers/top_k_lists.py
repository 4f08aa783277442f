"""Logs for tests of a top-k cut, what they score, and the labels of the family."""

from collections.abc import Sequence
from math import isclose
from typing import Any

import numpy as np
import pytest
from counted import by_group, evaluated
from hypothesis import strategies as st
from rankings import Row

from metrics import Evaluation
from metrics.top_k import TOP_K_METRICS

RATES = ("SelectionRate", "TPR", "FPR", "FNR", "FOR")
DIFFERENCES = (
    "StatisticalParity",
    "EqualOpportunity",
    "PredictiveEquality",
    "FNRDifference",
    "FORDifference",
    "AverageOdds",
)
COMPARISONS = (*DIFFERENCES, "DisparateImpact")
ALPHAS = (-2.5, -1, 0, 0.25, 0.5, 1, 2, 3.5)
NAMES = [metric.name for metric in TOP_K_METRICS if metric.name != "GeneralizedEntropy"]


def labels(k: int) -> list[str]:
    """Every metric at ``k``, of the batch and of lists."""
    entropies = [f"GeneralizedEntropy(alpha={alpha}" for alpha in ALPHAS]
    return [
        *(f"{name}@{k}" for name in NAMES),
        *(f"{name}(per=list)@{k}" for name in NAMES),
        *(f"{name})@{k}" for name in entropies),
        *(f"{name},per=list)@{k}" for name in entropies),
    ]


def rows_of(*words: str) -> list[Row]:
    """Lists of letters, top first: the letter is the group, capital where relevant, x unknown."""
    return [
        {
            "list_id": f"l{number:03}",
            "item_id": f"{number}.{rank}",
            "rank": rank,
            "group": None if letter in "xX" else letter.lower(),
            "relevance": float(letter.isupper()),
        }
        for number, word in enumerate(words)
        for rank, letter in enumerate(word, start=1)
    ]


def values(label: str, *words: str) -> Any:
    """Value or reason by group, or the one number or its reason."""
    return values_of(label, rows_of(*words))


def values_of(label: str, rows: Sequence[Row]) -> Any:
    """The same of any rows."""
    found = evaluated(label, rows)
    if found.values is None:
        return found.scores[0].reason or found.scores[0].value
    return by_group(found)


def both(name: str, k: int) -> list[str]:
    return [f"{name}@{k}", f"{name}(per=list)@{k}"]


def agree(expected: object) -> Any:
    return pytest.approx(expected, rel=1e-12, abs=1e-15)


@st.composite
def logs(draw: st.DrawFn, *, whole: bool = False, groups: str = "abc.") -> list[Row]:
    letters = [None if letter == "." else letter for letter in groups]
    graded = draw(st.booleans())
    grades = st.sampled_from([0.0, 0.25, 0.5, 1.0] if graded else [0.0, 1.0])
    relevance = grades if whole or draw(st.integers(0, 4)) else st.none() | grades
    constant = draw(st.sampled_from([None, None, None, 0.0, 1.0]))
    rows = []
    for number in range(draw(st.integers(1, 5))):
        rank = 0
        for _ in range(draw(st.integers(1, draw(st.sampled_from([3, 8, 30]))))):
            rank += draw(st.sampled_from([1, 1, 1, 2, 5]))
            rows.append({
                "list_id": f"l{number}",
                "item_id": str(rank),
                "rank": rank,
                "group": draw(st.sampled_from(letters)),
                "relevance": draw(relevance) if constant is None else constant,
            })  # fmt: skip
    return rows


def same(found: float | None, expected: float | None) -> bool:
    if found is None or expected is None:
        return found is expected
    return isclose(found, expected, rel_tol=1e-9, abs_tol=1e-13)


def numbers(found: Evaluation) -> Any:
    """Values as plain loops give them, None for each that has a reason."""
    if found.values is None:
        return found.scores[0].value
    return {
        name: None if np.isnan(value) else float(value)
        for name, value in zip(found.groups, found.values.values, strict=True)
    }
