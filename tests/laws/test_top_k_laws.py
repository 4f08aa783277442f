"""Fairness of a top-k cut: against plain loops over random logs, and by law."""

from dataclasses import replace

import numpy as np
from counted import counts_of, evaluated, one_of
from hypothesis import assume, given
from hypothesis import strategies as st
from rankings import Row, batch_value, per_list, rankings
from slow_top_k import score
from top_k_lists import (
    COMPARISONS,
    RATES,
    agree,
    both,
    labels,
    logs,
    numbers,
    rows_of,
    same,
    values,
)

from metrics import evaluate, parse_measure
from metrics.top_k.entropy import MOST

# -- against plain loops


@given(logs(), st.integers(1, 9))
def test_agrees_with_plain_loops(rows: list[Row], k: int) -> None:
    for label in labels(k):
        measure = parse_measure(label)
        found, expected = evaluated(label, rows), score(label, rows, "group")
        if isinstance(expected, dict):
            mine = numbers(found)
            assert set(mine) == set(expected)
            assert all(same(mine[name], expected[name]) for name in mine), (label, mine, expected)
            assert found.values is not None
            for name, reason in zip(found.groups, found.values.reasons, strict=True):
                assert (reason is None) == (expected[name] is not None)
        else:
            assert same(numbers(found), expected), (label, numbers(found), expected)
        for each in found.scores:
            assert (each.value is None) == (each.reason is not None)
            if each.value is not None:
                assert each.value in each.name.range, label
        for value in (numbers(found) or {}).values() if isinstance(expected, dict) else ():
            assert value is None or value in measure.metric.range, label


@given(logs(whole=True), st.integers(1, 9))
def test_graded_relevance_is_cut_where_the_settings_say(rows: list[Row], k: int) -> None:
    for name in ("TPR", "FORDifference", "Theil"):
        expected = score(f"{name}@{k}", rows, "group", relevant_from=0.75)
        found = numbers(evaluated(f"{name}@{k}", rows, relevant_from=0.75))
        lists = rankings(rows, "group", relevant_from=0.75)
        apart = score(f"{name}(per=list)@{k}", rows, "group", relevant_from=0.75)
        each = batch_value(per_list(f"{name}(per=list)@{k}", lists))
        if isinstance(expected, dict) and isinstance(apart, dict):
            assert all(same(found[group], expected[group]) for group in expected)
            for at, group in enumerate(lists.groups.names):
                assert same(None if np.isnan(each[at]) else float(each[at]), apart[group])
        else:
            assert same(found, expected)  # type: ignore[arg-type]
            assert same(None if np.isnan(each) else float(each), apart)  # type: ignore[arg-type]


def test_agrees_with_plain_loops_on_many_groups_and_long_lists() -> None:
    chance = np.random.default_rng(3)
    letters = [*"abcdefghijklmnopqrstABCDEFGHIJKLMNOPQRSTx"]
    rows = rows_of(*("".join(chance.choice(letters, size=size)) for size in (1000, 1, 300, 60)))
    for name in (*RATES, *COMPARISONS, "Theil"):
        for label in both(name, 50):
            found, expected = numbers(evaluated(label, rows)), score(label, rows, "group")
            if isinstance(expected, dict):
                assert len(expected) == 21
                assert all(same(found[group], expected[group]) for group in expected), label
            else:
                assert same(found, expected), label


@given(logs(whole=True), st.integers(1, 9))
def test_the_unknown_group_takes_part_where_configured(rows: list[Row], k: int) -> None:
    counts = replace(counts_of(rows), unknown_counts=True)
    lists = rankings(rows, "group")
    everyone = np.ones(len(lists.groups.names), dtype=np.bool_)
    lists = replace(lists, grouping=replace(lists.groups, takes_part=everyone))
    for name in COMPARISONS:
        together, apart = both(name, k)
        expected = score(together, rows, "group", unknown_counts=True)
        found = numbers(evaluate(parse_measure(together), counts))
        assert isinstance(expected, dict)
        assert all(same(found[group], expected[group]) for group in expected)
        expected = score(apart, rows, "group", unknown_counts=True)
        assert isinstance(expected, dict)
        each = batch_value(per_list(apart, lists))
        for value, group in zip(each, lists.groups.names, strict=True):
            assert same(None if np.isnan(value) else float(value), expected[group])


# -- laws


@given(logs(whole=True, groups="ab."), st.integers(1, 9))
def test_of_two_groups_one_is_the_mirror_of_the_other(rows: list[Row], k: int) -> None:
    for name in COMPARISONS:
        for label in both(name, k):
            found = numbers(evaluated(label, rows))
            a, b = found.get("a"), found.get("b")
            if name != "DisparateImpact":
                assert a == (None if b is None else -b), label
            elif a and b:
                assert a * b == agree(1.0)
            else:
                assert not a
                assert not b


@given(logs(whole=True), st.integers(1, 9))
def test_one_list_is_the_batch(rows: list[Row], k: int) -> None:
    one = [row for row in rows if row["list_id"] == "l0"]
    for label in labels(k):
        measure = parse_measure(label)
        given_here = {**dict(measure.parameters), "per": "list"}
        apart = measure.metric.at(k, **given_here).label
        batch, alone = numbers(evaluated(label, one)), numbers(evaluated(apart, one))
        if evaluated(label, one).scores[0].reason == "zero_benefit":
            # Infinite where some benefit is not 0: it must not be left out beside other lists.
            assert alone in (MOST, None), label
        else:
            assert batch == alone, label


@given(logs(), st.integers(1, 9), st.sampled_from([2, 3, 7]))
def test_volume_changes_not_one_bit(rows: list[Row], k: int, times: int) -> None:
    copies = [
        {**row, "list_id": f"{copy} {row['list_id']}"} for copy in range(times) for row in rows
    ]
    for label in labels(k):
        before, after = numbers(evaluated(label, rows)), numbers(evaluated(label, copies))
        if "per=list" not in label:
            assert before == after, label
        elif isinstance(before, dict):
            assert all(same(before[name], after[name]) for name in before), label
        else:
            assert same(before, after), label


@given(logs(), st.data())
def test_a_cut_that_nobody_stands_below_has_no_value(rows: list[Row], data: st.DataObject) -> None:
    k = max(row["rank"] for row in rows) + data.draw(st.integers(0, 3))
    for label in labels(k):
        found = evaluated(label, rows)
        assert {each.value for each in found.scores} == {None}
        if found.values is not None:
            assert np.isnan(found.values.values).all()


def test_why_a_log_that_ends_at_the_cut_has_no_value() -> None:
    for name in (*RATES, *COMPARISONS, "Theil", "GeneralizedEntropy(alpha=2)"):
        found = evaluated(f"{name}@4", rows_of("aAbB", "AbB"))
        assert {each.reason for each in found.scores} == {"all_selected"}


def test_a_short_list_beside_longer_ones() -> None:
    # In the batch its candidates were all selected; of the lists it is left out.
    assert values("SelectionRate@2", "a", "aabb")["a"] == agree((1 + 2) / 3)
    found = evaluated("SelectionRate(per=list)@2", rows_of("a", "aabb"))
    assert numbers(found) == {"a": 1.0, "b": 0.0}
    assert found.lists is not None
    assert found.lists.tolist() == [1, 1]


@given(logs(whole=True, groups="abc"), st.integers(1, 9))
def test_groups_in_each_others_place_are_treated_alike(rows: list[Row], k: int) -> None:
    turns = [str.maketrans("abc", turned) for turned in ("abc", "bca", "cab")]
    alike = [
        {**row, "list_id": f"{turn} {row['list_id']}", "group": row["group"].translate(how)}
        for turn, how in enumerate(turns)
        for row in rows
    ]
    for name in (*RATES, *COMPARISONS):
        found = evaluated(f"{name}@{k}", alike)
        assert len({*numbers(found).values()}) == 1
        for each in found.scores:
            assert each.worst_group is each.best_group is None
            if each.value is not None and each.name.fairest is not None:
                assert each.value == each.name.fairest


@given(logs(whole=True), st.integers(1, 9))
def test_worst_over_groups_is_never_better_than_fair(rows: list[Row], k: int) -> None:
    found = evaluated(f"DisparateImpact@{k}", rows).scores[0]
    assume(found.value is not None)
    assert found.value is not None
    assert found.value <= 1.0 + 1e-12


def moved(rows: list[Row], at: int) -> list[Row]:
    """The row at ``at`` and the one before it change places."""
    upper, lower = rows[at - 1], rows[at]
    ranks = {id(upper): lower["rank"], id(lower): upper["rank"]}
    return [{**row, "rank": ranks.get(id(row), row["rank"])} for row in rows]


@given(logs(whole=True, groups="abc"), st.integers(1, 9), st.data())
def test_moving_up_never_makes_a_group_worse(rows: list[Row], k: int, data: st.DataObject) -> None:
    places = [
        at
        for at in range(1, len(rows))
        if rows[at]["list_id"] == rows[at - 1]["list_id"]
        and rows[at]["group"] != rows[at - 1]["group"]
    ]
    assume(places)
    at = data.draw(st.sampled_from(places))
    gainer, loser = rows[at]["group"], rows[at - 1]["group"]
    after = moved(rows, at)
    # False omission rates can rise with a row that is not relevant: one less to divide by.
    for name in (*RATES, *COMPARISONS):
        if name.startswith("FOR"):
            continue
        sign = -1 if name.startswith("FNR") else 1
        for label in both(name, k):
            one, two = numbers(evaluated(label, rows)), numbers(evaluated(label, after))
            for group, value in one.items():
                if value is None or two[group] is None:
                    # A ratio loses or gains its denominator, and nothing else does.
                    assert value is two[group] or name == "DisparateImpact"
                    continue
                gain = sign * (two[group] - value)
                assert gain >= -1e-12 or group != gainer, label
                assert gain <= 1e-12 or group != loser, label


# -- lists do not know each other


def test_a_list_has_the_same_bits_alone_and_among_a_thousand() -> None:
    chance = np.random.default_rng(5)
    words = ["".join(chance.choice([*"abcxABCX"], size=chance.integers(1, 40))) for _ in range(999)]
    words.append("Ab" * 500)
    lists = rankings(rows_of(*words), "group")
    for label in labels(7):
        if "per=list" not in label:
            continue
        together = per_list(label, lists)
        assert together.value.shape[0] == len(words)
        for at in [*range(0, 999, 37), 999]:
            alone = per_list(label, one_of(lists, at))
            assert alone.value.tobytes() == together.value[at : at + 1].tobytes(), label
            if together.weight is not None and alone.weight is not None:
                assert alone.weight.tobytes() == together.weight[at : at + 1].tobytes(), label
