"""Random logs through files, SQL and chunks of lists, against the slow version of every metric."""

from dataclasses import dataclass, field
from fractions import Fraction
from math import isclose, log2
from types import ModuleType
from typing import Any

import brute_force as brute
import numpy as np
import pytest
import slow_comparison
import slow_list_native
import slow_quality
import slow_top_k
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from logs import Found, Row, Rows, every_measure, scored_file

from metrics import FAMILIES, METRICS, UNIT, UNKNOWN, Family, Measure, Metric
from metrics.families import COMPARISON, FAIRNESS, LIST_NATIVE, QUALITY, TOP_K
from metrics.list_native.inequality import GINI
from pipeline.counts.exact_sums import scaled_sums

SLOW: dict[Family, ModuleType] = {
    QUALITY: slow_quality,
    COMPARISON: slow_comparison,
    TOP_K: slow_top_k,
    LIST_NATIVE: slow_list_native,
}
Part = tuple[str, str]


@dataclass
class Log:
    """A log as delivered, the same rows as the slow versions take them, and the settings."""

    delivered: Rows
    rows: Rows
    items: Rows
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def parts(self) -> dict[Part, Rows]:
        found: dict[Part, Rows] = {("all", "all"): self.rows}
        for row in self.rows:
            found.setdefault(("device", row["device"]), []).append(row)
        return found

    @property
    def context(self) -> dict[str, Any]:
        """What the slow versions want to know beside the rows."""
        return {
            "relevant_from": self.settings["relevant_from"],
            "unknown_counts": self.settings["unknown_group"]["in_aggregations"],
            "groups": {brute.group_of(row, "group") for row in self.rows},
            "target": self.settings["targets"]["group"],
            "catalogue": brute.catalogue_sizes(self.items, "group"),
            "reference_length": {
                name: max(0, *(row["rank"] for row in rows), *depths)
                for name, rows in brute.lists_of(self.rows).items()
                if (depths := [row["reference_rank"] or 0 for row in rows]) and any(depths)
            },
        }


@st.composite
def logs(draw: st.DrawFn, holes: bool) -> Log:
    size = draw(st.integers(2, 14))
    group = st.sampled_from(["a", "b", "b", "c", None])
    people = [{"item_id": f"i{at:02}", "group": draw(group)} for at in range(size)]
    gaps = draw(st.sampled_from(["reject", "compact", "keep"]))
    grade = draw(
        st.sampled_from(
            [
                st.sampled_from([0.0, 1.0]),
                st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]),
                st.floats(0.001, 1.0),
                st.just(0.0),
            ]
        )
    )
    click = st.one_of(st.none(), st.sampled_from([0.0, 1.0]))
    delivered: Rows = []
    rows: Rows = []
    for number in range(draw(st.integers(1, 5))):
        device, query = draw(st.sampled_from(["app", "web"])), draw(st.sampled_from("qr"))
        order = draw(st.permutations(range(size)))[: draw(st.integers(1, size))]
        elsewhere = draw(st.permutations(range(1, 2 * size)))
        rank = 0
        for position, at in enumerate(order, start=1):
            rank += 1 if gaps == "reject" else draw(st.sampled_from([1, 1, 3]))
            row: Row = {
                "list_id": f"l{number}",
                "query_id": query,
                "rank": rank,
                "device": device,
                **people[at],
                "relevance": draw(grade),
                "click": draw(click),
                "reference_rank": draw(st.sampled_from([None, elsewhere[at], elsewhere[at]])),
                "propensity": draw(st.sampled_from([0.25, 0.5, 1.0])),
                "predicted_click": draw(st.sampled_from([0.0, 0.3, 0.9])),
            }
            if holes and draw(st.booleans()):
                row[draw(st.sampled_from(["relevance", "propensity", "predicted_click"]))] = None
            delivered.append(row)
            rows.append({**row, "rank": position if gaps == "compact" else rank})
    said = {
        "ranks": {"gaps": gaps},
        "relevant_from": draw(st.sampled_from([0.25, 0.5, 1.0])),
        "unknown_group": {"in_aggregations": draw(st.booleans())},
        "targets": {"group": {"a": 0.5, "b": 0.25, "nobody": 0.25}},
    }
    return Log(delivered, rows, people, said)


def through_a_file(log: Log, wanted: list[Measure]) -> Found:
    return scored_file(
        log.delivered,
        items=log.items,
        slices=["device"],
        metrics=[measure.label for measure in wanted],
        **log.settings,
    )


def agrees(value: float | None, expected: Any) -> bool:
    if value is None or expected is None:
        return value is expected
    return isclose(value, float(expected), rel_tol=1e-9, abs_tol=1e-13)


def gini(rows: Rows, catalogue: dict[str, int] | None) -> float:
    """Half the mean difference of two items' exposure, over its mean, pair by pair."""
    exposures: dict[str, float] = {}
    for row in rows:
        exposures[row["item_id"]] = exposures.get(row["item_id"], 0.0) + brute.exposure(row["rank"])
    x = [*exposures.values()]
    x += [0.0] * (sum((catalogue or {}).values()) - len(x))
    return sum(abs(a - b) for a in x for b in x) / (2 * len(x) * sum(x))


def expected_of(measure: Measure, rows: Rows, log: Log, reading: str | None) -> Any:
    if measure.metric is GINI:
        whole = measure.given["items"] == "catalogue"
        return gini(rows, log.context["catalogue"] if whole else None)
    whole_columns = measure.columns - measure.metric.partial
    unknown = any(row[column] is None for row in rows for column in whole_columns)
    if measure.uses_lists and unknown:
        return {} if measure.metric.per_group else None
    label = measure.label + (f".{reading}" if reading else "")
    attribute = "group" if measure.metric.grouped else None
    return SLOW[measure.metric.family].score(label, rows, attribute, **log.context)


def check(found: Found, log: Log, wanted: list[Measure]) -> None:
    names = {brute.group_of(row, "group") for row in log.rows}
    for (part, rows), measure in ((each, m) for each in log.parts.items() for m in wanted):
        where = (part, measure.label)
        if measure.metric.per_group:
            expected = expected_of(measure, rows, log, None)
            here = found.groups[(*part, "group", measure.label)]
            there = names | set(log.context.get(measure.expects or "", ()))
            there -= set() if log.context["unknown_counts"] or UNKNOWN in names else {UNKNOWN}
            assert set(here) == there, where
            for name in there:
                assert agrees(here[name]["value"], expected.get(name)), (where, name, here[name])
                assert (here[name]["reason"] is None) == (here[name]["value"] is not None)
            continue
        about = "group" if measure.metric.grouped else None
        for score in measure.scores():
            row = found.scores[(*part, about, score.label)]
            reading = score.aggregation.name if score.aggregation else None
            compared = names if log.context["unknown_counts"] else names - {UNKNOWN}
            if measure.metric.grouped and len(compared) < 2:
                assert row["reason"] == "one_group", where
                continue
            expected = expected_of(measure, rows, log, reading)
            assert agrees(row["value"], expected), (where, row, expected)


def test_gini_by_hand() -> None:
    # Two items share all exposure alike; a third is never shown; the fourth has no list.
    rows: Rows = [
        {"list_id": f"l{number}", "item_id": item, "rank": rank, "group": item}
        for number, order in enumerate(["ab", "ba"])
        for rank, item in enumerate(order, start=1)
    ]
    items = [{"item_id": item, "group": item} for item in "abc"]
    found = scored_file(rows, items=items, metrics=["Gini", "Gini(items=catalogue)"])
    assert found.score("Gini", None)["value"] == 0.0
    # Of three items, one has nothing and two have x each: 2 (1 0 + 2 x + 3 x) / (3 2x) - 4 / 3.
    assert agrees(found.score("Gini(items=catalogue)", None)["value"], 10 / 6 - 4 / 3)
    alone = scored_file(rows[:2], metrics=["Gini"]).score("Gini", None)["value"]
    assert agrees(alone, (1 - 1 / log2(3)) / (1 + 1 / log2(3)) / 2)


def of_family(family: Family) -> list[Metric]:
    return [metric for metric in METRICS if metric.family is family]


@pytest.mark.parametrize("holes", [False, True], ids=["whole", "holes"])
@pytest.mark.parametrize("family", [*SLOW], ids=lambda family: family.name)
@examples(8, few=2)
@given(st.data(), st.sampled_from([1, 2, 5]), st.sampled_from([0.3, 0.9]))
def test_random_logs(
    family: Family, holes: bool, data: st.DataObject, k: int, weight: float
) -> None:
    log = data.draw(logs(holes))
    wanted = list(every_measure(weight, weight, k, of_family(family)))
    check(through_a_file(log, wanted), log, wanted)


def test_every_other_family_has_a_slow_version() -> None:
    assert {*SLOW, FAIRNESS} == set(FAMILIES)


def test_lists_in_chunks_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists cut by the edge of a chunk, and longer than one, count as if there were no chunks."""
    rows: Rows = [
        {"list_id": f"l{number}", "item_id": str(rank), "rank": rank, "device": "app",
         "group": "ab"[(rank * rank + number) % 2], "relevance": (rank * 7 + number) % 5 / 4}
        for number, length in enumerate([3, 5000, 1, 2048, 2047, 2, 4097])
        for rank in range(1, length + 1)
    ]  # fmt: skip
    labels = ["nDCG@10", "AP", "GroupR@5", "Kendall(reference=relevance)", "TPR(per=list)@3"]

    def values(**changed: Any) -> dict[Any, Any]:
        for name, value in changed.items():
            monkeypatch.setattr(f"pipeline.counts.list_stats.{name}", value)
        return {key: row["value"] for key, row in scored_file(rows, metrics=labels).scores.items()}

    whole = values()
    assert None not in whole.values()
    assert values(CHUNK_ROWS=2048, _DENSE_CELLS=1) == whole


def test_lists_without_a_value_are_counted() -> None:
    rows: Rows = [
        {"list_id": str(number), "item_id": str(rank), "rank": rank, "group": "ab"[rank % 2],
         "relevance": float(number < 2 and rank == 2)}
        for number in range(5)
        for rank in (1, 2)
    ]  # fmt: skip
    found = scored_file(rows, metrics=["RR", "GroupR@1", "EXP"])
    row = found.score("RR", None)
    assert (row["value"], row["lists"], row["lists_undefined"]) == (0.5, 5, 3)
    assert found.score("EXP.MinMaxRatio")["lists_undefined"] is None
    assert {row["lists"] for row in found.groups["all", "all", "group", "GroupR@1"].values()} == {2}


def test_scaled_sums_are_exact() -> None:
    """Each value is rounded once, towards the nearest multiple, whatever its sign or size."""
    chance = np.random.default_rng(4)
    sizes = 10.0 ** chance.uniform(-19, 9, 5000)
    values = np.concatenate(
        [sizes * chance.choice([-1.0, 1.0], 5000), [-0.0, 2.0**-61, -(2.0**-61)]]
    )
    cell = chance.integers(0, 7, len(values))
    wanted = [0] * 7
    for at, value in zip(cell.tolist(), values.tolist(), strict=True):
        wanted[at] += round(Fraction(value) * UNIT)
    assert scaled_sums(values, cell, 7) == wanted


def test_who_has_all_there_is_does_not_hide_who_has_nothing() -> None:
    """A shut-out group breaches limits, though some of its numbers have no logarithm or ratio."""
    rows: Rows = [
        {"list_id": str(number), "item_id": str(rank), "rank": rank, "group": "MF"[rank > 10]}
        for number in range(20)
        for rank in range(1, 21)
    ]
    limits = {"DisparateImpact@10.Min": {"min": 0.8}, "Skew@10.MinSkew": {"min": -0.2}}
    found = scored_file(rows, metrics=["DisparateImpact@10", "Skew@10"], thresholds=limits)
    impact, skew = (found.score(label) for label in limits)
    assert (impact["value"], impact["worst_group"], impact["status"]) == (0.0, "F", "breach")
    assert (skew["value"], skew["reason"], skew["status"]) == (None, "not_on_top: F", "breach")
    assert found.score("Skew@10.MaxSkew")["value"] is None


def test_a_reference_that_ends_early_is_no_agreement() -> None:
    rows: Rows = [
        {"list_id": "a", "item_id": str(rank), "rank": rank, "group": "ab"[rank % 2],
         "reference_rank": 1 if rank == 1 else None}
        for rank in range(1, 11)
    ]  # fmt: skip
    found = scored_file(rows, metrics=["AO"]).score("AO", None)["value"]
    assert agrees(found, sum(1 / depth for depth in range(1, 11)) / 10)
    rows[1]["reference_rank"] = 1
    assert scored_file(rows, metrics=["AO"]).score("AO", None)["reason"] == "not_enough_items"
