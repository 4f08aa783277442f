"""Lists for tests of list-native fairness, what a label says of them, and the labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from counted import by_group, evaluated
from hypothesis import strategies as st
from rankings import per_list, rankings

from metrics import Rankings

LABELS = (
    "Skew(per=list)@3",
    "Skew(per=list)@10",
    "Skew(reference=target,per=list)@5",
    "Skew(reference=catalogue,per=list)@5",
    "rND(step=2)",
    "rND(step=5)",
    "rND",
    "rRD(step=2)",
    "rRD(step=5)",
    "rRD",
    "rKL(step=2)",
    "rKL(step=3)",
    "rKL",
    "FAIR@5",
    "FAIR@10",
    "FAIR(alpha=0.25,reference=target)@8",
    "FAIR(reference=catalogue)@10",
    "FAIRFirst@10",
    "FAIRFirst(alpha=0.25,reference=target)@8",
    "TargetAWRF",
    "TargetAWRF@3",
    "TargetAWRF(weight=geometric,p=0.3)",
    "TargetAWRF(reference=list)@5",
    "TargetAWRF(reference=catalogue)",
    "Pairwise",
    "Pairwise(pairs=inter)",
    "Pairwise(pairs=intra)",
    "Pairwise(over=lists)",
    "Pairwise(pairs=inter,over=lists)",
)
QUERY_LABELS = ("EEL(decay=0.5)", "EED(decay=0.5)", "EER(decay=0.5)", "EEL(decay=0.9)")
Row = dict[str, Any]


Row = dict[str, Any]


def close(expected: object) -> Any:
    return pytest.approx(expected, rel=1e-9, abs=1e-12)


def rows_of(text: str, relevance: Sequence[float] = (), name: str = "q") -> list[Row]:
    """One list with a group per letter; a dot is an item without a group."""
    return [
        {
            "list_id": name,
            "item_id": f"{name}{at}",
            "rank": at + 1,
            "group": None if letter == "." else letter,
            "relevance": relevance[at] if relevance else None,
        }
        for at, letter in enumerate(text)
    ]


def all_rows(*texts: str) -> list[Row]:
    """Lists with a group per letter."""
    return [row for at, text in enumerate(texts) for row in rows_of(text, name=f"q{at:05}")]


def lists_of(*texts: str, **context: Any) -> Rankings:
    return rankings(all_rows(*texts), "group", **context)


def of_list(label: str, text: str, **context: Any) -> Any:
    """What a label says of one list: a number, or a number per group."""
    lists = lists_of(text, **context)
    value = per_list(label, lists).value[0]
    if np.ndim(value) == 0:
        return float(value)
    return dict(zip(lists.groups.names, value.tolist(), strict=True))


def pooled(label: str, *texts: str, **context: Any) -> dict[str, Any]:
    """Group values of a label on the batch, or the reason why a group has none."""
    return by_group(evaluated(label, all_rows(*texts), **context))


@st.composite
def logs(draw: st.DrawFn) -> list[Row]:
    """Ragged lists of few or many groups, some of one grade of relevance only."""
    rows: list[Row] = []
    letters = draw(st.sampled_from(["AB", "ABC", "A", "AAAB", "ABCDEFGH"]))
    for q in range(draw(st.integers(1, 5))):
        length = draw(st.integers(1, 30))
        gap = draw(st.sampled_from([1, 1, 1, 2]))
        grades = draw(st.sampled_from([(0.0,), (1.0,), (0.0, 1.0), (0.0, 0.25, 0.5, 1.0)]))
        pool = letters + draw(st.sampled_from(["", ".", ".."]))
        for at in range(length):
            letter = draw(st.sampled_from(pool))
            rows.append(
                {
                    "query_id": f"q{q % 2}",
                    "list_id": f"l{q}",
                    "item_id": f"i{at}",
                    "rank": at * gap + 1,
                    "group": None if letter == "." else letter,
                    "relevance": draw(st.sampled_from(grades)),
                }
            )
    return rows
