"""From a printed label back to what it names: ``AWRF(p=0.1)@10.MaxMinDiff``.

Not here: printing labels, which is done by what they name (``base``).
"""

import re
from difflib import get_close_matches

from metrics import catalogue
from metrics.base import Measure, ScoreName
from metrics.families import FAMILIES
from metrics.terms import Value

_LABEL = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z0-9_]*)"
    r"(?:\((?P<given>[^()]*)\))?"
    r"(?:@(?P<k>[0-9]{1,9}))?"
    r"(?:\.(?P<aggregation>[A-Za-z]+))?"
)


class LabelError(ValueError):
    """A label that names no metric; the text says what is wrong and what is nearest."""


def _near(word: str, words: list[str]) -> str | None:
    """The one of ``words`` that is most like ``word``, None where none is like it."""
    by_case = {each.casefold(): each for each in words}
    found = get_close_matches(word.casefold(), list(by_case), n=1, cutoff=0.5)
    return by_case[found[0]] if found else None


def _value(text: str) -> Value:
    if text in ("true", "false"):
        return text == "true"
    try:
        return float(text)
    except ValueError:
        return text


def _given(text: str) -> dict[str, Value]:
    given: dict[str, Value] = {}
    for piece in filter(None, (each.strip() for each in text.split(","))):
        name, equals, value = (part.strip() for part in piece.partition("="))
        if not equals or not value:
            raise LabelError(f"{piece!r} is not of the form name=value")
        if name in given:
            raise LabelError(f"{name} is given twice")
        given[name] = _value(value)
    return given


def parse_score(label: str) -> ScoreName:
    """The score that ``label`` names; without an aggregation, the measure as a whole.

    LabelError names the nearest metric or aggregation when there is no such score.

    >>> parse_score("AWRF(p=0.10).MaxMinDiff").label
    'AWRF(p=0.1).MaxMinDiff'
    """
    match = _LABEL.fullmatch(label.strip())
    if match is None:
        raise LabelError(f"{label!r} is not a label; one looks like AWRF(p=0.1)@10.MaxMinDiff")
    metric = catalogue.BY_NAME.get(match["name"])
    if metric is None:
        if match["name"] in {family.name for family in FAMILIES}:
            raise LabelError(
                f"{label}: {match['name']} is a family of metrics, where one metric is wanted, "
                "and takes neither parameters nor a cut-off"
            )
        families = [family.name for family in FAMILIES]
        near = _near(match["name"], [*catalogue.BY_NAME, *families])
        hint = f"; did you mean {near}?" if near else "; `evenrank metrics` lists them"
        raise LabelError(f"there is no metric {match['name']}{hint}")
    try:
        measure = metric.at(
            k=int(match["k"]) if match["k"] else None, **_given(match["given"] or "")
        )
    except ValueError as error:
        raise LabelError(f"{label}: {error}") from None
    if match["aggregation"] is None:
        return ScoreName(measure, None)
    ways = {way.name: way for way in measure.ways}
    if not ways:
        raise LabelError(f"{label}: {metric.name} is one number and takes no aggregation")
    if match["aggregation"] not in ways:
        kind = "aggregation" if metric.per_group else "reading"
        near = _near(match["aggregation"], list(ways))
        hint = f"; did you mean {near}?" if near else f"; there are {', '.join(ways)}"
        raise LabelError(f"{label}: there is no {kind} {match['aggregation']}{hint}")
    return ScoreName(measure, ways[match["aggregation"]])


def parse_measures(named: str, cutoff: int | None = None) -> list[Measure]:
    """The measures that ``named`` stands for: one label, or a family with all its metrics.

    ``cutoff`` is that of a family's metrics which cannot do without one.
    """
    family = [metric for metric in catalogue.METRICS if metric.family.name == named.strip()]
    if not family and named.strip() in catalogue.BY_NAME and cutoff is not None:
        family = [catalogue.BY_NAME[named.strip()]]
    if not family:
        return [parse_measure(named)]
    return [
        each.at(cutoff) if cutoff is not None and each.needs_cutoff else each.usual
        for each in family
    ]


def parse_measure(label: str) -> Measure:
    """The measure that ``label`` names; LabelError when there is none or an aggregation follows."""
    score = parse_score(label)
    if score.aggregation is not None:
        raise LabelError(f"{label}: leave out .{score.aggregation.name}; all are computed")
    return score.measure
