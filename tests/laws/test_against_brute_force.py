"""Random logs, scored twice: through SQL counts, and the slow and obvious way."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from math import isclose
from random import Random
from typing import Any

import brute_force as brute
import pytest
from brute_force import Number, Undefined
from cases import examples
from hypothesis import event, given
from hypothesis import strategies as st
from logs import Found, Row, Rows, every_measure, scored, scored_file

from metrics import AGGREGATIONS, UNKNOWN, GroupMetric, Measure

TOWNS = ("A", "B", "unknown")
ATTRIBUTES: list[str | list[str]] = ["group", ["group", "town"]]
# Down to the values at which nearly all attention stands on the first rank, or none falls off.
EXTREMES = (0.01, 0.1, 0.35, 0.75, 0.99)


@dataclass
class Log:
    """A log as delivered, the same rows as the reference takes them, and what is said about it."""

    delivered: Rows
    rows: Rows
    items: Rows | None
    settings: dict[str, Any] = field(default_factory=dict)
    unknown_counts: bool = False


@st.composite
def logs(draw: st.DrawFn, relevance: str) -> Log:
    names = [f"g{at}" for at in range(draw(st.integers(1, 20)))]
    size = draw(st.integers(1, 24))
    group = st.sampled_from([*names, *names, None, ""])
    people = [
        {"item_id": f"i{at}", "group": draw(group), "town": draw(st.sampled_from([*TOWNS, None]))}
        for at in range(size)
    ]
    known = draw(st.integers(1, size)) if draw(st.booleans()) else None
    items = None if known is None else people[:known]
    clicks = draw(st.sampled_from(["graded", "holes", "none"]))
    gaps = draw(st.sampled_from(["reject", "compact", "keep"]))
    # A relevance is stored as a whole number of 2^-60, so one of 1e-3 keeps 15 digits.
    graded = st.one_of(st.just(0.0), st.just(1.0), st.floats(0.001, 1.0))
    values = {
        "binary": st.sampled_from([0.0, 1.0]),
        "graded": graded,
        "zero": st.just(0.0),
        "holes": st.one_of(st.none(), graded),
    }
    delivered: Rows = []
    expected: Rows = []
    from_items = items is not None and draw(st.booleans())
    for number in range(draw(st.integers(1, 6))):
        device = draw(st.sampled_from(["app", "web", None]))
        order = draw(st.permutations(range(size)))[: draw(st.integers(1, min(size, 15)))]
        rank = 0
        for position, at in enumerate(order, start=1):
            rank += 1 if gaps == "reject" else draw(st.sampled_from([1, 1, 1, 2, 7]))
            row: Row = {
                "list_id": f"l{number}", "item_id": f"i{at}", "rank": rank, "device": device
            }  # fmt: skip
            if relevance != "none":
                row["relevance"] = draw(values[relevance])
            if clicks != "none":
                row["click"] = draw(values[clicks])
            own = people[at]
            if from_items:
                own = own if at < len(items or ()) else {"group": None, "town": None}
            joined = {"group": own["group"], "town": own["town"]}
            delivered.append(row if from_items else {**row, **joined})
            place = position if gaps == "compact" else rank
            expected.append({**row, **joined, "rank": place, "device": device or "unknown"})
    said: dict[str, Any] = {"ranks": {"gaps": gaps}}
    if draw(st.booleans()):
        # "none of ours" is a group that the target knows and no log ever shows.
        share = draw(st.sampled_from([0.0, 0.25, 0.5]))
        said["targets"] = {"group": {names[0]: 1 - share, "none of ours": share}}
    if draw(st.booleans()):
        said["missing_relevance"] = said["missing_click"] = "zero"
        for row in expected:
            for name in {"relevance", "click"} & set(row):
                row[name] = row[name] or 0.0
    unknown_counts = draw(st.booleans())
    said["unknown_group"] = {"in_aggregations": unknown_counts}
    event(f"ranks {gaps}")
    return Log(delivered, expected, items, said, unknown_counts)


def agrees(value: float | None, expected: float, slack: float) -> bool:
    return value is not None and isclose(value, expected, rel_tol=1e-9, abs_tol=slack)


def number_slack(metric: str) -> float:
    """Absolute slack of a metric's own number.

    Group values are sums of positive terms: none.  A divergence or a gap near 0 is what is left of
    numbers near 1 that cancel, on either side.
    """
    return {"NDKL": 1e-13, "IAA": 1e-14}.get(metric, 0.0)


def aggregation_slack(name: str, values: list[float]) -> float:
    """Absolute slack of an aggregation: differences of nearly equal values are rounding."""
    largest = max(values, default=0.0)
    return {
        "MaxMinDiff": 1e-14 * largest,
        "MaxAbsDiff": 1e-14 * largest,
        "MeanAbsDev": 1e-14 * largest,
        "Variance": 1e-14 * largest**2,
    }.get(name, 0.0)


def expected_values(
    measure: Measure, log: Log, part: Rows, attribute: str | list[str]
) -> Mapping[str, Number]:
    shown = {brute.group_of(row, attribute) for row in log.rows}
    if measure.expects and log.unknown_counts and log.items:
        # Where unknown is a group like others, it is one of the item table, too.
        shown |= {UNKNOWN} & set(brute.catalogue_sizes(log.items, attribute))
    return brute.group_values(
        measure.metric.name,
        part,
        attribute,
        k=measure.k,
        catalogue=log.items,
        groups=shown,
        batch=log.rows,
        **dict(measure.parameters),
    )


def check_groups(
    found: Mapping[str, Row], expected: Mapping[str, Number], part: Rows, attribute: Any
) -> None:
    assert list(found) == list(expected)
    for name, value in expected.items():
        row = found[name]
        mine = [each for each in part if brute.group_of(each, attribute) == name]
        assert row["n"] == len(mine)
        assert row["lists"] == len({each["list_id"] for each in mine})
        if isinstance(value, Undefined):
            assert (row["value"], row["reason"]) == (None, value.reason), name
        else:
            assert row["reason"] is None, name
            assert agrees(row["value"], value, 0.0), (name, row["value"], value)


def check_extremes(row: Row, compared: Mapping[str, float]) -> None:
    """Worst and best group, exact unless values tie but for rounding."""
    worst, best = row["worst_group"], row["best_group"]
    low, high = min(compared.values()), max(compared.values())
    if worst is None or best is None:
        assert worst is best
        assert isclose(low, high, rel_tol=1e-12)
        return
    for name, value in ((worst, low), (best, high)):
        tied = [each for each in compared if isclose(compared[each], value, rel_tol=1e-12)]
        assert name in tied


def should_be_there(log: Log, attribute: str) -> set[str]:
    expected = {
        *log.settings.get("targets", {}).get(attribute, ()),
        *log.settings.get("groups", {}).get(attribute, ()),
    }
    if log.items is not None:
        names = attribute.split("*")
        expected |= set(brute.catalogue_sizes(log.items, names if len(names) > 1 else names[0]))
    return expected


def check_aggregated(
    found: Found, key: tuple[str, str, str], measure: Measure, log: Log, values: Any
) -> None:
    compared = brute.compared_values(values, unknown_counts=log.unknown_counts)
    if measure.expects is None:
        # A group without rows is compared only where something says that it should be there.
        there = should_be_there(log, key[2])
        compared = {
            name: value
            for name, value in compared.items()
            if name in there or value != Undefined("group_absent")
        }
    undefined = [value for value in compared.values() if isinstance(value, Undefined)]
    numbers = [value for value in compared.values() if not isinstance(value, Undefined)]
    for aggregation in AGGREGATIONS:
        row = found.scores[(*key, f"{measure.label}.{aggregation.name}")]
        if len(compared) < 2:
            expected: Number = Undefined("one_group")
        elif undefined:
            name = next(each for each in compared if isinstance(compared[each], Undefined))
            everywhere = not numbers and len(set(undefined)) == 1
            reason = undefined[0].reason
            expected = Undefined(reason if everywhere else f"{reason}: {name}")
        else:
            expected = brute.aggregate(aggregation.name, numbers)
        if isinstance(expected, Undefined):
            assert (row["value"], row["reason"]) == (None, expected.reason), aggregation.name
        else:
            assert row["reason"] is None, aggregation.name
            slack = aggregation_slack(aggregation.name, numbers)
            assert agrees(row["value"], expected, slack), (row, expected)
        if not undefined and len(compared) > 1:
            check_extremes(row, compared)
        else:
            assert row["worst_group"] is row["best_group"] is None


def expected_number(measure: Measure, log: Log, part: Rows, attribute: str | list[str]) -> Number:
    given = dict(measure.parameters)
    if measure.metric.name == "IAA":
        return brute.single_value("IAA", part, **given)
    reference: Any = given["reference"]
    groups = {brute.group_of(row, attribute) for row in log.rows}
    if reference == "target":
        reference = log.settings.get("targets", {}).get("group") if attribute == "group" else None
        if reference is None:
            return Undefined("target_missing")
        groups |= set(reference)
    if reference == "catalogue":
        if log.items is None:
            return Undefined("catalogue_missing")
        # One group shown beside a catalogue of two is a comparison: that is what it is for.
        groups |= set(brute.catalogue_sizes(log.items, attribute))
    return brute.single_value(
        "NDKL", part, attribute, reference=reference, catalogue=log.items, groups=groups
    )


def through_a_frame(log: Log, wanted: list[Measure]) -> Found:
    return scored(
        log.delivered,
        ATTRIBUTES,
        items=log.items,
        slices=["device"],
        metrics=[measure.label for measure in wanted],
        settings=log.settings,
    )


def through_a_file(log: Log, wanted: list[Measure]) -> Found:
    return scored_file(
        log.delivered,
        items=log.items,
        attributes=ATTRIBUTES,
        slices=["device"],
        metrics=[measure.label for measure in wanted],
        **log.settings,
    )


def check(found: Found, log: Log, wanted: list[Measure]) -> None:
    parts = {("all", "all"): log.rows}
    for row in log.rows:
        parts.setdefault(("device", row["device"]), []).append(row)
    keys = set()
    for (part, rows), attribute in product(parts.items(), ATTRIBUTES):
        name = attribute if isinstance(attribute, str) else "*".join(attribute)
        for measure in wanted:
            if isinstance(measure.metric, GroupMetric):
                values = expected_values(measure, log, rows, attribute)
                key = (*part, name)
                check_groups(found.groups[(*key, measure.label)], values, rows, attribute)
                check_aggregated(found, key, measure, log, values)
                keys |= {(*key, each.label) for each in measure.scores()}
                continue
            of_items = measure.metric.name == "IAA"
            single = (*part, None if of_items else name, measure.label)
            keys.add(single)
            if of_items and attribute != "group":
                continue
            row = found.scores[single]
            expected = expected_number(measure, log, rows, attribute)
            assert row["worst_group"] is row["best_group"] is None
            if isinstance(expected, Undefined):
                assert (row["value"], row["reason"]) == (None, expected.reason), measure.label
            else:
                assert row["reason"] is None, measure.label
                slack = number_slack(measure.metric.name)
                assert agrees(row["value"], expected, slack), (measure.label, row, expected)
    assert set(found.scores) == keys


@pytest.mark.parametrize("relevance", ["binary", "graded", "zero", "holes", "none"])
@examples(8, few=2)
@given(st.data(), st.sampled_from(EXTREMES), st.sampled_from(EXTREMES), st.integers(1, 12))
def test_random_logs(relevance: str, data: st.DataObject, p: float, decay: float, k: int) -> None:
    log, wanted = data.draw(logs(relevance)), list(every_measure(p, decay, k))
    check(through_a_file(log, wanted), log, wanted)


def test_many_groups_in_many_lists() -> None:
    chance = Random(20)
    people = [
        {"item_id": str(at), "group": f"g{at % 20}", "town": chance.choice(TOWNS)}
        for at in range(60)
    ]
    rows = [
        {**item, "list_id": f"l{number}", "rank": rank, "device": "ab"[number % 2],
         "relevance": chance.randrange(2), "click": chance.random()}
        for number in range(16)
        for rank, item in enumerate(chance.sample(people, chance.randint(20, 40)), start=1)
    ]  # fmt: skip
    target = {f"g{at}": 1 / 20 for at in range(20)}
    log = Log(rows, rows, people, {"targets": {"group": target}})
    wanted = list(every_measure(0.3, 0.9, 10))
    check(through_a_frame(log, wanted), log, wanted)


@pytest.mark.parametrize("decay", [0.01, 0.99])
def test_weights_of_any_size(decay: float) -> None:
    # 100 ranks deep: at 0.01 the last weight is near 1e-198, far below any scaled integer.
    rows: Rows = [
        {"list_id": str(number), "item_id": str(at), "rank": at, "group": "abc"[(at + number) % 3],
         "town": "A", "device": "app", "relevance": 1.0, "click": 0.5}
        for number in range(2)
        for at in range(1, 101)
        # The first group stands at the very end only.
        if (at + number) % 3 or at > 90
    ]  # fmt: skip
    log = Log(rows, rows, None, {"ranks": {"gaps": "keep"}})
    wanted = list(every_measure(decay, decay, 95))
    check(through_a_frame(log, wanted), log, wanted)
