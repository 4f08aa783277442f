"""Which of a score's two values its verdict is about: the rule, for rows and for SQL, once.

A row has the score of all groups, and beside it that of the groups with enough evidence, which its
verdict is about.  Rows without a verdict, and those written before there were two, have only one.

Not here: the columns (``scores``), and which groups have enough (``pipeline.scores``).
"""

import json
from collections.abc import Mapping

from schemas.columns import Row

JUDGED_OF = {
    "value": "judged_value",
    "lower": "judged_lower",
    "upper": "judged_upper",
    "worst_group": "judged_worst_group",
    "best_group": "judged_best_group",
}
"""What is told of all groups, and the column with the same of the judged groups."""
_HAS = ("judged_value", "judged_groups")
"""One of them says something where a row has a second score: one without a value has groups."""


def as_judged(row: Mapping[str, object]) -> Row:
    """A row of fairness_history with the score that its verdict is about as its value.

    >>> as_judged({"value": 0.2, "judged_value": 0.9, "judged_groups": '["F", "M"]'})["value"]
    0.9
    >>> as_judged({"value": 0.2, "judged_value": None, "judged_groups": None})["value"]
    0.2
    """
    if all(row.get(name) is None for name in _HAS):
        return dict(row)
    said = {**row, **{name: row.get(of) for name, of in JUDGED_OF.items()}}
    if "reason" in row and said["value"] is not None:
        # Why the score of all groups has no value says nothing of this one.
        said["reason"] = None
    return said


def judged_sql() -> Mapping[str, str]:
    """SQL of each judged column, filled with what is told of all groups where it says nothing."""
    apart = " OR ".join(f"{name} IS NOT NULL" for name in _HAS)
    return {of: f"CASE WHEN {apart} THEN {of} ELSE {name} END" for name, of in JUDGED_OF.items()}


def group_names(text: object) -> tuple[str, ...]:
    """The names in a column of groups, none for null.

    >>> group_names('["F", "M"]'), group_names(None)
    (('F', 'M'), ())
    """
    return tuple(json.loads(str(text))) if text else ()
