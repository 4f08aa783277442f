"""Names and labels of metrics and scores in the settings: parsed, and checked against each other.

Not here: the grammar of labels, which is that of ``metrics``.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from metrics import WHOLE, ScoreName, parse_score
from pipeline.settings.sections import T, Threshold
from schemas.rules import LOGGED, POSITION

JOIN = "*"
"""Joins the names, and the values, of an intersection of attributes."""

ESCAPE = chr(92)
"""A backslash stands before each of these two signs within a part of an intersection."""

_RESERVED = {column.name for column in (*LOGGED, POSITION)} | {WHOLE}
_NAME = re.compile(
    r"^[^\s*\x00-\x1f\ud800-\udfff](?:[^*\x00-\x1f\ud800-\udfff]*[^\s*\x00-\x1f\ud800-\udfff])?$"
)


def parts_of(attribute: str, group: str) -> dict[str, str]:
    r"""The value of each attribute that a group of an attribute, or of an intersection, has.

    A group that cannot be parted is one of the whole.

    >>> parts_of("region*gender", r"A\*B*C")
    {'region': 'A*B', 'gender': 'C'}
    """
    names, values = attribute.split(JOIN), [""]
    for sign in re.findall(r"\\.|.", group, re.DOTALL):
        if sign == JOIN:
            values.append("")
        else:
            values[-1] += sign[-1]
    if 1 < len(names) == len(values):
        return dict(zip(names, values, strict=True))
    return {attribute: group}


def repeated(names: Iterable[str]) -> list[str]:
    """Problems with names that stand more than once."""
    return [f"{name} stands twice" for name, count in Counter(names).items() if count > 1]


def wrong_names(names: Iterable[str]) -> list[str]:
    """Problems with names that no slice or attribute can have."""
    problems = []
    for name in names:
        if name.casefold() in _RESERVED:
            problems.append(f"{name} has a meaning of its own and cannot be a slice or attribute")
        elif not _NAME.fullmatch(name) or len(name) > 200:
            problems.append(f"{name!r} cannot name a column ('*' joins intersections)")
    return problems


def parsed_labels(labels: Iterable[str], parse: Callable[[str], T]) -> tuple[list[T], list[str]]:
    """What labels parse to, and what is wrong with those that name nothing."""
    parsed: list[T] = []
    problems: list[str] = []
    for label in labels:
        try:
            parsed.append(parse(label))
        except ValueError as error:
            problems.append(str(error))
    return parsed, problems


def score_with_a_side(label: str, computed: Sequence[str] | None) -> ScoreName:
    """The score that a label names, if it is computed and has an unfair side; else ValueError."""
    score = parse_score(label)
    if computed is not None and score.measure.label not in computed:
        raise ValueError(
            f"{label}: {score.measure.label} is not computed; add it to metrics or leave this out"
        )
    ways = score.measure.ways
    if score.aggregation is None and ways:
        said = ways[0].name if score.measure.metric.per_group else ways[-1].name
        raise ValueError(f"{label}: say which, as in {label}.{said}")
    if score.alarm is None:
        raise ValueError(f"{label} has no unfair side, so it cannot be judged or followed")
    return score


def judged_score(label: str, threshold: Threshold, computed: Sequence[str] | None) -> str:
    """The printed label of the score that a threshold is about; ValueError if it cannot be."""
    score = score_with_a_side(label, computed)
    limit = threshold.min if score.alarm == "low" else threshold.max
    right, wrong = ("min", "max") if score.alarm == "low" else ("max", "min")
    if limit is None:
        raise ValueError(f"{label} is unfair when {score.alarm}: give {right}, not {wrong}")
    if limit not in score.range:
        raise ValueError(f"{label} lies in {score.range}; a limit of {limit:g} says nothing")
    return score.label
