"""Which score a verdict is about: the same rule for rows and in SQL, for rows of any age."""

from typing import Any

import duckdb
import pytest

from schemas.judged import JUDGED_OF, as_judged, group_names, judged_sql

ALL = {"value": 0.2, "lower": 0.1, "upper": 0.3, "worst_group": "X", "best_group": "M"}
NOTHING = dict.fromkeys((*JUDGED_OF.values(), "judged_groups"))
FEWER = {
    "judged_value": 0.9,
    "judged_lower": None,
    "judged_upper": None,
    "judged_worst_group": "F",
    "judged_best_group": "M",
    "judged_groups": '["F", "M"]',
}
SHUT_OUT = {**NOTHING, "judged_groups": '["F", "M"]', "judged_worst_group": "F"}


@pytest.mark.parametrize(
    ("row", "value", "lower", "worst"),
    [
        (ALL, 0.2, 0.1, "X"),
        (ALL | NOTHING, 0.2, 0.1, "X"),
        (ALL | FEWER, 0.9, None, "F"),
        (ALL | SHUT_OUT, None, None, "F"),
        (ALL | NOTHING | {"judged_value": 0.4}, 0.4, None, None),
    ],
    ids=["older", "not judged", "fewer groups", "shut out", "without groups"],
)
def test_a_verdict_is_about_one_score_as_a_whole(
    row: dict[str, Any], value: float | None, lower: float | None, worst: str | None
) -> None:
    """No end of one score's interval stands beside the value of the other."""
    judged = as_judged(row)
    assert (judged["value"], judged["lower"], judged["worst_group"]) == (value, lower, worst)
    columns = ", ".join(
        f"{'NULL' if said is None else repr(said)} AS {name}"
        for name, said in (NOTHING | row).items()
    )
    asked = ", ".join(f"{sql} AS {name}" for name, sql in judged_sql().items())
    (found,) = duckdb.sql(f"SELECT {asked} FROM (SELECT {columns})").fetchall()
    assert [None if each is None else str(each) for each in found] == [
        None if judged[name] is None else str(judged[name]) for name in JUDGED_OF
    ]


def test_names_of_groups_are_told_as_they_are() -> None:
    assert group_names('["a,b", "\\u00e9", "\\"x\\""]') == ("a,b", "é", '"x"')
    assert group_names(None) == group_names("") == group_names("[]") == ()
