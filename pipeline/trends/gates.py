"""The data gate: whether a batch is whole, and enough like those before it, to be judged.

A score says something about a ranker only where the data are what they were: a day with half its
rows, or without the labels of one group, moves fairness scores and nobody ranked differently.

Not here: validation of single rows (``pipeline.log``), and what becomes of a batch that fails
(``pipeline.monitoring``).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from metrics import UNKNOWN
from pipeline.settings.sections import Gate

GATES = ("joined", "volume", "list_length", "group_mix", "unknown_share", "labels")

"""What is wrong most often explains what comes after it."""
ABSOLUTE = ("joined",)
"""Gates that compare a batch with no other."""


@dataclass(frozen=True)
class Facts:
    """What the gates look at: counts of one whole batch.

    ``relevance_known`` and ``click_known`` are counts of rows; ``unknown`` is the share of rows
    without a group, in [0, 1], for each attribute; ``groups`` the rows of each group, for each
    attribute.  ``joined`` counts rows whose item the item table holds, None where nobody counted,
    and ``ids_differ`` says in words why few do, where that is plain.
    """

    rows: int
    lists: int
    relevance_known: int
    click_known: int
    unknown: Mapping[str, float]
    groups: Mapping[str, Mapping[str, int]]
    joined: int | None = None
    ids_differ: str | None = None


@dataclass(frozen=True)
class Gated:
    """What one gate says about a batch; (gate, attribute) is unique within a batch.

    ``value`` and ``usual`` are what it compared, ``distance`` how far they are apart as the gate
    measures it, and ``limit`` how far they may be; ``text`` says so in words.
    """

    gate: str
    attribute: str | None
    value: float
    usual: float
    distance: float
    limit: float
    passed: bool
    text: str


def tested(today: Facts, before: Sequence[Facts], limits: Gate) -> tuple[Gated, ...]:
    """Every gate that can be tested, in the order of ``GATES`` and of attributes' names.

    Takes the facts of a batch and of those that may serve as its baseline, oldest first, of which
    the last ``limits.window`` count; only ``ABSOLUTE`` ones are tested while there are fewer than
    ``limits.least``.  What is usual is their median.  A gate without a limit, and one whose usual
    value is unknown or 0, is not tested.

    ``joined`` is the share of rows whose item the item table does not hold; what it is compared
    with is that all of them do.
    ``volume`` compares rows and lists: the share that is missing, or that is too much of today's;
    with 0.5, between half and twice the usual.  ``list_length`` compares rows per list, as a share
    of the usual.  ``group_mix`` is the total variation distance from the usual shares of groups,
    those without a group left out: the share of rows that would have to change group.
    ``unknown_share`` is the rise of the share of rows without a group, and ``labels`` the fall of
    the share of rows whose relevance, or click, is known.  Of rows and lists, and of relevance and
    click, the one that is further off speaks for its gate.
    """
    tested_gates: list[Gated] = []
    if limits.joined is not None:
        tested_gates += _joined(today, limits.joined)
    baseline = before[-limits.window :]
    if len(baseline) < limits.least:
        return tuple(tested_gates)
    if limits.volume is not None:
        tested_gates += _furthest(_volumes(today, baseline, limits.volume))
    if limits.list_length is not None:
        tested_gates += _list_lengths(today, baseline, limits.list_length)
    if limits.group_mix is not None:
        tested_gates += _group_mixes(today, baseline, limits.group_mix)
    if limits.unknown_share is not None:
        tested_gates += _unknown_shares(today, baseline, limits.unknown_share)
    if limits.labels is not None:
        tested_gates += _furthest(_labels(today, baseline, limits.labels))
    return tuple(tested_gates)


def _gated(
    gate: str,
    attribute: str | None,
    value: float,
    usual: float,
    distance: float,
    limit: float,
    text: str,
) -> Gated:
    return Gated(gate, attribute, value, usual, distance, limit, distance <= limit, text)


def _furthest(found: Iterator[Gated]) -> list[Gated]:
    """The one that is furthest off, the first of equals; none of none."""
    every = list(found)
    return [max(every, key=lambda gated: gated.distance)] if every else []


def _joined(today: Facts, least: float) -> Iterator[Gated]:
    if today.rows and today.joined is not None:
        share, apart = today.joined / today.rows, today.rows - today.joined
        text = (
            f"{apart:,} of {today.rows:,} rows name an item that the item table does not hold: "
            f"{share:.1%} join, the limit is {least:.0%}"
        )
        if share < least and today.ids_differ:
            text += f"; ids differ in {today.ids_differ}"
        yield _gated("joined", None, share, 1.0, 1.0 - share, 1.0 - least, text)


def _volumes(today: Facts, baseline: Sequence[Facts], limit: float) -> Iterator[Gated]:
    amounts: tuple[tuple[str, Callable[[Facts], int]], ...] = (
        ("rows", lambda facts: facts.rows),
        ("lists", lambda facts: facts.lists),
    )
    for name, amount in amounts:
        value, usual = amount(today), median(amount(facts) for facts in baseline)
        if usual > 0:
            more = value > usual
            distance = 1.0 - (usual / value if more else value / usual)
            comparison = (
                f"{value / usual:.2g} times as many, the limit is {1 / (1 - limit):.2g} times"
                if more
                else f"{distance:.1%} fewer, the limit is {limit:.0%}"
            )
            text = f"{value:,} {name}, usually {usual:,.0f}: {comparison}"
            yield _gated("volume", None, value, usual, distance, limit, text)


def _list_lengths(today: Facts, baseline: Sequence[Facts], limit: float) -> Iterator[Gated]:
    lengths = [facts.rows / facts.lists for facts in baseline if facts.lists]
    if today.lists and lengths and (usual := median(lengths)) > 0:
        value = today.rows / today.lists
        distance = abs(value - usual) / usual
        side = "longer" if value > usual else "shorter"
        text = (
            f"{value:.1f} rows in a list, usually {usual:.1f}: "
            f"{distance:.1%} {side}, the limit is {limit:.0%}"
        )
        yield _gated("list_length", None, value, usual, distance, limit, text)


def _group_mixes(today: Facts, baseline: Sequence[Facts], limit: float) -> Iterator[Gated]:
    for attribute in sorted(today.groups):
        shares = _shares(today.groups[attribute])
        past = [
            past_shares
            for facts in baseline
            if (past_shares := _shares(facts.groups.get(attribute, {})))
        ]
        names = sorted({*shares, *(name for past_shares in past for name in past_shares)})
        if not (shares and past):
            continue
        middle = {
            name: median(past_shares.get(name, 0.0) for past_shares in past) for name in names
        }
        total = sum(middle.values())
        if total == 0:
            continue
        share_changes = {name: shares.get(name, 0.0) - middle[name] / total for name in names}
        distance = sum(abs(share) for share in share_changes.values()) / 2.0
        # Rounded, so that of two groups that moved as far the first in name order is told.
        most = max(names, key=lambda name: round(abs(share_changes[name]), 12))
        value, usual = shares.get(most, 0.0), middle[most] / total
        text = (
            f"{attribute}: {distance:.1%} of rows changed group, the limit is {limit:.0%}; "
            f"most of all {most}, {value:.1%} of rows, usually {usual:.1%}"
        )
        yield _gated("group_mix", attribute, value, usual, distance, limit, text)


def _shares(rows: Mapping[str, int]) -> dict[str, float]:
    """Shares of groups among the rows that have one; empty if none has."""
    known = {name: count for name, count in rows.items() if name != UNKNOWN}
    total = sum(known.values())
    return {name: count / total for name, count in known.items()} if total else {}


def _unknown_shares(today: Facts, baseline: Sequence[Facts], limit: float) -> Iterator[Gated]:
    for attribute in sorted(today.unknown):
        past = [facts.unknown[attribute] for facts in baseline if attribute in facts.unknown]
        if past:
            value, usual = today.unknown[attribute], median(past)
            text = (
                f"{attribute}: {value:.1%} of rows without a group, usually {usual:.1%}; "
                f"the limit is {limit:.0%} more"
            )
            rise = max(0.0, value - usual)
            yield _gated("unknown_share", attribute, value, usual, rise, limit, text)


def _labels(today: Facts, baseline: Sequence[Facts], limit: float) -> Iterator[Gated]:
    labelled: tuple[tuple[str, Callable[[Facts], int]], ...] = (
        ("relevance", lambda facts: facts.relevance_known),
        ("click", lambda facts: facts.click_known),
    )
    for name, known in labelled:
        past = [known(facts) / facts.rows for facts in baseline if facts.rows]
        if today.rows and past and (usual := median(past)) > 0:
            value = known(today) / today.rows
            text = (
                f"{name} known for {value:.1%} of rows, usually {usual:.1%}; "
                f"the limit is {limit:.0%} less"
            )
            yield _gated("labels", None, value, usual, max(0.0, usual - value), limit, text)
