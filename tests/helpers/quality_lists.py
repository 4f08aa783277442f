"""Lists for tests of ranking quality, what a label says of them, and the labels."""

from collections.abc import Sequence
from typing import Any

import pytest
from counted import evaluated
from rankings import Row, batch_value, per_list, rankings

BINARY = ("RR", "RR@3", "P@3", "R@3", "F1@3", "AP", "AP@3", "hit@3", "AR@3")
GRADED = (
    *("CG@3", "CG(gain=exp)@3", "DCG@3", "DCG(gain=exp)@40", "nDCG", "nDCG@3"),
    *("nDCG(gain=exp)", "nDCG(gain=exp)@3"),
    *("RScore(d=0.0,alpha=5.0)", "RScore(d=0.5,alpha=1.5)"),
)
JURITY = ("JurityPrecision@3", "JurityRecall@3", "JurityMAP@3", "JurityNDCG@3")
DEEP = ("P@40", "R@40", "F1@40", "AR@40", "hit@1", "JurityPrecision@40", "JurityMAP@40")
CLICKS = tuple(
    f"CTR{method}{k}" for method in ("", "(method=ips)", "(method=dr)") for k in ("", "@3")
)
GROUPED = (
    *("GroupP@3", "GroupP@40", "GroupP(of=group)@3", "GroupP(of=group)@40"),
    *("GroupR@3", "GroupR@40", "GroupR(of=group)@3", "GroupR(of=group)@40"),
    *("GroupnDCG", "GroupnDCG@3", "GroupnDCG(of=group)", "GroupnDCG(of=group)@3"),
    *("GroupnDCG(gain=exp)@3", "GroupnDCG(of=group,gain=exp)"),
)
OF_RELEVANCE = (*BINARY, *GRADED, *JURITY, *DEEP)
LABELS = (*OF_RELEVANCE, *CLICKS, *GROUPED)


def shown(*lists: Sequence[float | None], ranks: Sequence[int] | None = None) -> list[Row]:
    """Rows of lists given by relevance in the order shown."""
    return [
        {
            "list_id": f"{number:05}",
            "item_id": f"i{at}",
            "rank": ranks[at] if ranks else at + 1,
            "relevance": value,
        }
        for number, values in enumerate(lists)
        for at, value in enumerate(values)
    ]


def of(label: str, *lists: Sequence[float], ranks: Sequence[int] | None = None) -> Any:
    """The batch value of lists given by relevance."""
    return float(batch_value(per_list(label, rankings(shown(*lists, ranks=ranks)))))


def reason(label: str, rows: Sequence[Row]) -> str | None:
    """Why a batch has no value."""
    return evaluated(label, rows).scores[0].reason


def near(expected: Any) -> Any:
    return pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)
