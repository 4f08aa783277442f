"""Why biased rankings cannot be generated as asked: every reason at once, with what to change.

Not here: what may be asked at all (``biased_request``), generating it (``biased``,
``biased_period``).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from math import isfinite
from typing import get_args

from pipeline.synthetic.biased_orders import apportioned
from pipeline.synthetic.biased_request import (
    BiasedIncidents,
    BiasedRequest,
    Clicks,
    Judgements,
    Order,
    Slices,
    shares_of,
)
from pipeline.synthetic.files import calendar_of, calendar_problems, least_problems, misplaced
from schemas.rules import LOGGED, MAX_RANK, POSITION

_CHOICES = {
    "order": get_args(Order),
    "relevance": get_args(Judgements),
    "clicks": get_args(Clicks),
}
_RESERVED = {column.name for column in (*LOGGED, POSITION)} | {"propensity", "all"}


def problems_of_rankings(asked: BiasedRequest) -> list[str]:
    """Why there are no such rankings."""
    problems = _share_problems("groups", asked.groups, least=2)
    problems += _outside("phi", asked.phi, 0, 1)
    problems += _size_problems(asked)
    for name, choices in _CHOICES.items():
        if getattr(asked, name) not in choices:
            problems.append(f"{name} is {getattr(asked, name)!r}: choose {_or(choices)}")
    problems += _column_problems(asked.attribute, asked.slices)
    for name, values in asked.slices.items():
        if not isinstance(values, str):
            twice = [value for value, n in Counter(list(values)).items() if n > 1]
            problems += [f"slice {name}: {value} stands twice" for value in twice]
        problems += _share_problems(f"slice {name}", shares_of(values), least=1)
    problems += _outside("correlation", asked.correlation, -1, 1)
    ends = [asked.mean_relevance + sign * asked.group_gap / 2 for sign in (1, -1)]
    if not all(0 < mean < 1 for mean in ends):
        problems.append(
            f"mean_relevance {asked.mean_relevance:g} and group_gap {asked.group_gap:g} give the "
            f"groups means from {ends[0]:g} to {ends[1]:g}: all have to lie between 0 and 1"
        )
    problems += _outside("click_noise", asked.click_noise, 0, 1)
    if not (isfinite(asked.eta) and asked.eta >= 0):
        problems.append(f"eta is {asked.eta:g}: give 0 (no position bias) or more")
    if asked.propensity and asked.clicks == "none":
        problems.append("propensity comes from the click model: choose clicks log or power")
    if asked.seed < 0:
        problems.append(f"seed is {asked.seed}: give 0 or more")
    return problems


def problems_of_period(
    start: date,
    days: int,
    lists: int,
    incidents: BiasedIncidents,
    slices: Slices,
    chunk_lists: int | None = None,
) -> list[str]:
    """Why there is no such period, or why these incidents cannot happen in it."""
    problems = calendar_problems(start, days) + least_problems(lists, chunk_lists)
    placed = [
        *(("unfair", day) for day in incidents.unfair),
        *(("broken", day) for day in incidents.broken),
        *(("missing", day) for day in incidents.missing),
    ]
    problems += misplaced(placed, calendar_of(start, days))
    for day, phi in incidents.unfair.items():
        problems += _outside(f"phi of the unfair day {day}", phi, 0, 1)
    for name, value in incidents.only.items():
        if name not in slices:
            problems.append(f"unfair only where {name} is {value}: {name} is no slice")
        elif value not in shares_of(slices[name]):
            known = _or([*shares_of(slices[name])])
            problems.append(f"unfair only where {name} is {value}: its values are {known}")
    if incidents.only and not incidents.unfair:
        problems.append("unfair only in some lists, but on no day: name an unfair day")
    return problems


def _size_problems(asked: BiasedRequest) -> list[str]:
    fewest, most = asked.lengths
    problems = []
    if asked.items < 1:
        problems.append(f"items is {asked.items}: give 1 or more")
    if not 1 <= fewest <= most:
        shown = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        problems.append(f"length is {shown}: give 1 or more, the fewest rows first")
    elif most > MAX_RANK:
        problems.append(f"length is {most}: the deepest rank is {MAX_RANK}")
    if 1 <= asked.items < most:
        problems.append(
            f"length is {most}, but there are {asked.items} items: "
            "a list holds an item once, give fewer rows or more items"
        )
    elif asked.candidates is not None and not most <= asked.candidates <= asked.items:
        problems.append(
            f"candidates is {asked.candidates}: give {most} (the length) to {asked.items} (items)"
        )
    shares = list(asked.groups.values())
    if asked.items >= 1 and shares and not _wrong_shares(shares):
        counts = apportioned(shares, asked.items)
        problems += [
            f"group {name}: its share of {asked.items} items is less than one item, "
            "give more items or a larger share"
            for (name, share), count in zip(asked.groups.items(), counts, strict=True)
            if share > 0 and count == 0
        ]
    return problems


def _share_problems(what: str, shares: Mapping[str, float], least: int) -> list[str]:
    problems = []
    if len(shares) < least:
        wanted = "at least one value" if least == 1 else f"shares of {least} or more"
        problems.append(f"{what}: give {wanted}")
    problems += [
        f"{what}: {name!r} is no name: it has to be text, not empty, without space around it"
        for name in shares
        if not isinstance(name, str) or not name or name != name.strip()
    ]
    problems += [
        f"{what}: {name} has the share {share}: give a number from 0 on"
        for name, share in shares.items()
        if not (isfinite(share) and share >= 0)
    ]
    if shares and not problems and _wrong_shares([*shares.values()]):
        problems.append(f"{what}: no share is above 0")
    return problems


def _wrong_shares(shares: Sequence[float]) -> bool:
    """Whether these cannot be made to add up to one."""
    return not (all(isfinite(share) and share >= 0 for share in shares) and sum(shares) > 0)


def _column_problems(attribute: str, slices: Slices) -> list[str]:
    """Names that the log cannot have; readers take no notice of case."""
    names = [("attribute", attribute), *(("slice", name) for name in slices)]
    problems = [
        f"{what} {name!r} is no column name: not empty, no space around it, no '*'"
        for what, name in names
        if not name or name != name.strip() or "*" in name
    ]
    problems += [
        f"{what} {name}: the log has a column of that name, choose another"
        for what, name in names
        if name.casefold() in _RESERVED
    ]
    count = Counter(name.casefold() for _, name in names)
    problems += [f"the column {name} is asked for twice" for name, n in count.items() if n > 1]
    return problems


def _outside(name: str, value: float, low: float, high: float) -> list[str]:
    return [] if low <= value <= high else [f"{name} is {value:g}: give {low:g} to {high:g}"]


def _or(choices: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(choices[:-1]), choices[-1]]))
