"""Laws that hold for every declared metric, whatever it measures.

Nothing here names a metric unless the law is about what is special to it, so a metric added to the
catalogue is held to all of them.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import isclose, log2
from typing import Any

import pytest
from cases import examples
from hypothesis import assume, given
from hypothesis import strategies as st
from logs import TEN, Found, Row, Rows, again, every_measure, same, scored_file

from metrics import AGGREGATIONS, METRICS, parse_measures, parse_score

FEW = examples(6, few=2)
K = 3
TARGET = {"a": 0.5, "b": 0.25, "d": 0.25}
LABELS = [measure.label for measure in every_measure(p=0.3, decay=0.6, k=K, metrics=METRICS)]
TEN_LABELS = [measure.label for measure in every_measure(p=0.3, decay=0.6, k=K)]
PLAIN = [metric.usual.label for metric in METRICS]
GROUPED = [metric.usual.label for metric in METRICS if metric.per_group]


@dataclass(frozen=True)
class Log:
    """Rows, and the item table that holds all of their items."""

    rows: Rows
    items: Rows

    def found(self, labels: list[str] = LABELS, rows: Rows | None = None) -> Found:
        return scored_file(
            self.rows if rows is None else rows,
            items=self.items,
            metrics=labels,
            targets={"group": TARGET},
        )


@st.composite
def logs(draw: st.DrawFn, binary: bool | None = None, groups: str = "abc.") -> Log:
    size = draw(st.integers(3, 10))
    group = st.sampled_from([*groups.replace(".", ""), *([None] if "." in groups else [])])
    items = [{"item_id": f"i{at}", "group": draw(group)} for at in range(size)]
    graded = not (draw(st.booleans()) if binary is None else binary)
    shares = st.sampled_from([0.0, 0.125, 0.3, 0.7, 1.0] if graded else [0.0, 1.0])
    rows: Rows = []
    for number in range(draw(st.integers(1, 4))):
        order = draw(st.permutations(range(size)))[: draw(st.integers(1, size))]
        elsewhere = draw(st.permutations(range(1, size + 3)))
        rows += [
            {"list_id": f"l{number}", "query_id": f"q{number % 2}", **items[at], "rank": rank,
             "relevance": draw(shares), "click": draw(shares), "reference_rank": elsewhere[at],
             "propensity": draw(st.sampled_from([0.25, 1.0])), "predicted_click": draw(shares)}
            for rank, at in enumerate(order, start=1)
        ]  # fmt: skip
    return Log(rows, items)


def close(one: float | None, other: float | None, slack: float) -> bool:
    if one is None or other is None:
        return one is other
    return isclose(one, other, rel_tol=1e-12, abs_tol=slack)


def values_of(found: Found) -> dict[Any, Row]:
    return {(*key, name): row for key, rows in found.groups.items() for name, row in rows.items()}


@FEW
@given(st.data())
def test_values_lie_in_their_declared_range(data: st.DataObject) -> None:
    log = data.draw(logs())
    found = log.found()
    for (*_, label), row in found.scores.items():
        assert (row["value"] is None) == (row["reason"] is not None)
        if row["value"] is not None:
            assert row["value"] in parse_score(label).range, (label, row)
    for (*_, label, _name), row in values_of(found).items():
        assert (row["value"] is None) == (row["reason"] is not None)
        if row["value"] is not None:
            assert row["value"] in parse_score(label).measure.metric.range, (label, row)


@FEW
@given(st.data(), st.randoms(use_true_random=False), st.sampled_from(LABELS))
def test_neither_the_order_of_rows_nor_what_else_is_computed_changes_a_bit(
    data: st.DataObject, chance: Any, label: str
) -> None:
    log = data.draw(logs())
    shuffled = list(log.rows)
    chance.shuffle(shuffled)
    whole = same(log.found())
    assert same(log.found(rows=shuffled)) == whole
    alone = same(log.found([label]))
    assert alone == {key: whole[key] for key in alone}


@FEW
@given(st.data())
def test_new_names_only_rename(data: st.DataObject) -> None:
    log = data.draw(logs(groups="abc"))
    # The new names stand in another order, and none was there before.
    renamed = {"a": "zeta", "b": "eta", "c": "theta", "d": "delta"}
    before = log.found(PLAIN)
    rows, items = (
        [{**row, "group": renamed[row["group"]]} for row in table]
        for table in (log.rows, log.items)
    )
    target = {renamed[name]: share for name, share in TARGET.items()}
    after = scored_file(rows, items=items, metrics=PLAIN, targets={"group": target})
    names = set()
    for label in GROUPED:
        old, new = before.values(label), after.values(label)
        assert set(new) == {renamed[name] for name in old}
        for name, value in old.items():
            other = new[renamed[name]]
            # Others are added up in the order of their names, which may show in the last bits.
            same = isinstance(value, float) and isclose(value, other, rel_tol=1e-12, abs_tol=1e-14)
            assert same or value == other, (label, name)
        names |= set(old)
        for (*key, scored_as), row in before.scores.items():
            if not scored_as.startswith(f"{label}."):
                continue
            other = after.scores[(*key, scored_as)]  # type: ignore[index]
            # The mean of three values depends on their order in its last bits.
            slack = 1e-14 * max((abs(v) for v in old.values() if isinstance(v, float)), default=0)
            assert close(row["value"], other["value"], slack)
            if len(names) == 2 or not row["reason"]:
                assert (row["reason"] or "").split(":")[0] == (other["reason"] or "").split(":")[0]
            for who in ("worst_group", "best_group"):
                assert (row[who] is None) == (other[who] is None)
                if row[who]:
                    assert close(new[other[who]], old[row[who]], 1e-14)
    for metric in METRICS:
        for name in metric.usual.scores() if not metric.per_group else ():
            attribute = "group" if metric.grouped else None
            one, two = (each.score(name.label, attribute)["value"] for each in (before, after))
            assert close(one, two, 1e-14), name.label


@FEW
@given(st.data(), st.sampled_from([2, 4, 3]))
def test_volume_changes_nothing(data: st.DataObject, times: int) -> None:
    log = data.draw(logs())
    before = log.found()
    rows = [row for copy in range(times) for row in again(log.rows, f"copy {copy}")]
    after = log.found(rows=rows)
    assert set(before.scores) == set(after.scores)
    for one, two in ((before.scores, after.scores), (values_of(before), values_of(after))):
        for key, row in one.items():
            other = two[key]
            assert other["reason"] == row["reason"], key
            assert other["lists"] == times * row["lists"]
            if times in (2, 4):
                # Counts double, their quotients stay: not one bit may differ.
                assert other["value"] == row["value"], key
            else:
                assert close(row["value"], other["value"], 1e-13), key
            for who in ("worst_group", "best_group"):
                assert times == 3 or row.get(who) == other.get(who)


@FEW
@given(st.data())
def test_moving_up_never_makes_a_group_worse(data: st.DataObject) -> None:
    log = data.draw(logs(groups="abc"))
    pairs = [
        (upper, lower)
        for upper, lower in pairwise(log.rows)
        if upper["list_id"] == lower["list_id"] and upper["group"] != lower["group"]
    ]
    assume(pairs)
    upper, lower = data.draw(st.sampled_from(pairs))
    swapped = {id(upper): lower["rank"], id(lower): upper["rank"]}
    moved = [{**row, "rank": swapped.get(id(row), row["rank"])} for row in log.rows]
    before, after = log.found(TEN_LABELS), log.found(TEN_LABELS, moved)
    for key, values in before.groups.items():
        for name, row in values.items():
            other = after.groups[key][name]
            assert other["reason"] == row["reason"]
            if row["value"] is None:
                continue
            gain = other["value"] - row["value"]
            if name == lower["group"]:
                assert gain >= 0, (key, name)
                # EXPRU compares clicks with relevance, wherever they are.
                assert gain > 0 or "@" in key[-1] or key[-1] == "EXPRU", (key, name)
            elif name == upper["group"]:
                assert gain <= 0, (key, name)
            else:
                assert gain == 0, (key, name)


@FEW
@given(st.data())
def test_groups_that_change_places_are_treated_alike(data: st.DataObject) -> None:
    log = data.draw(logs(groups="abc"))
    # Every list three times, each group once in the place of each other.
    turns = [str.maketrans("abc", turned) for turned in ("abc", "bca", "cab")]
    rows = [
        {**row, "list_id": f"{turn} {row['list_id']}", "group": row["group"].translate(how)}
        for turn, how in enumerate(turns)
        for row in log.rows
    ]
    found = scored_file(rows, metrics=[each for each in LABELS if "catalogue" not in each])
    for key, values in found.groups.items():
        first = values["a"]
        assert {(row["value"], row["reason"]) for row in values.values()} == {
            (first["value"], first["reason"])
        }, key
    for (*_, label), row in found.scores.items():
        fairest = parse_score(label).fairest
        if row["value"] is None or row["attribute"] is None or row["aggregation"] is None:
            continue
        assert row["worst_group"] is row["best_group"] is None
        if fairest is not None and parse_score(label).measure.ways == AGGREGATIONS:
            assert row["value"] == fairest, label


@FEW
@given(st.data())
def test_a_deeper_cutoff_never_takes_away_and_the_deepest_cuts_nothing(data: st.DataObject) -> None:
    log = data.draw(logs())
    deepest = max(row["rank"] for row in log.rows)
    depths = [k for k in (1, 2, 4) if k < deepest] + [deepest]
    cut = {
        each.label: [each.metric.at(k, **dict(each.parameters)).label for k in depths]
        for each in every_measure(0.3, 0.6)
        if each.metric.cutoff and each.k is None
    }
    found = log.found([*cut, *(label for labels in cut.values() for label in labels)])
    for whole, labels in cut.items():
        values = [found.values(label) for label in labels]
        assert values[-1] == found.values(whole)
        for shallow, deep in pairwise(values):
            for name, value in shallow.items():
                assert isinstance(value, str) or value <= deep[name]


@FEW
@given(st.data())
def test_both_denominators_agree_on_full_rankings_of_one_pool(data: st.DataObject) -> None:
    log = data.draw(logs(groups="abc"))
    offered = [
        metric
        for metric in METRICS
        if "denominator" in {parameter.name for parameter in metric.parameters}
    ]
    assert offered
    rows = [
        {"list_id": str(number), **item, "rank": rank}
        for number in range(3)
        for rank, item in enumerate(data.draw(st.permutations(log.items)), start=1)
    ]
    pairs = {metric.usual.label: metric.at(denominator="catalogue").label for metric in offered}
    found = log.found([*pairs, *pairs.values()], rows)
    for label, other in pairs.items():
        for name, value in found.values(label).items():
            assert close(value, found.values(other)[name], 0.0)


def test_single_numbers_reach_their_fairest_value() -> None:
    # Lists of one group each differ from no mix; relevance that equals exposure leaves no gap.
    rows: Rows = [
        {"list_id": name, "item_id": f"{name}{rank}", "group": name, "rank": rank,
         "relevance": 1 / log2(rank + 1)}
        for name in "ab"
        for rank in range(1, 6)
    ]  # fmt: skip
    found = scored_file(rows, metrics=["NDKL", "IAA"])
    for label, attribute in (("NDKL", "group"), ("IAA", None)):
        assert found.score(label, attribute)["value"] == parse_score(label).fairest


def test_where_the_top_is_bad_the_worst_group_is_another() -> None:
    rows: Rows = [
        {"list_id": "l", "item_id": str(rank), "rank": rank, "group": group, "relevance": 1.0,
         "click": 1.0 / rank}
        for rank, group in enumerate("aab", start=1)
    ]  # fmt: skip
    grouped = [metric.usual.label for metric in TEN if metric.per_group]
    good, bad = (scored_file(rows, metrics=grouped, top_of_list=side) for side in ("good", "bad"))
    for key, row in good.scores.items():
        other = bad.scores[key]
        assert other["value"] == row["value"]
        assert (row["worst_group"], row["best_group"]) == ("b", "a"), key
        assert (other["worst_group"], other["best_group"]) == ("a", "b"), key


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_declaration_is_whole(metric: Any) -> None:
    assert metric.title
    assert metric.formula
    assert metric.source
    assert metric.range.low < metric.range.high
    optional = {"relevance", "click", "reference_rank", "propensity", "predicted_click"}
    assert metric.usual.columns | metric.partial <= optional
    assert metric in [each.metric for each in parse_measures(metric.family.name)]
    for parameter in metric.parameters:
        assert parameter.text
        assert parameter.accept(parameter.default) == parameter.default
    for score in metric.usual.scores():
        low, high = score.range.low, score.range.high
        assert low < high
        assert score.alarm in ("low", "high", None)
        if score.fairest is not None:
            assert score.fairest in score.range
            # There is something worse than the best on the side that is bad.
            assert score.alarm is not None
            assert score.fairest > low if score.alarm == "low" else score.fairest < high
