"""The tables behind noise floors, and logs for which there is no floor, or nothing to draw."""

from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fair_logs import floors, random_log, rows_of, scores_of
from logs import DAY, Rows, audit, deliver

from pipeline.counts.mix_counts import MOST_GROUPS, SAMPLED_LISTS
from pipeline.runs.steps import ingest_batch, measure_batch
from pipeline.settings.audit import Settings
from pipeline.store.batch_files import opened
from pipeline.store.paths import store_of
from schemas.counts import MIX_COUNTS, MIX_PAIRS

SLICED = {"slices": ["device"], "attributes": ["group", "region", ["group", "region"]]}


def mixed_log(seed: int, lists: int, first: int = 0) -> Rows:
    chance = np.random.default_rng(seed)
    rows = rows_of(random_log(seed, lists, {"a": 0.5, "b": 0.3, "c": 0.1, ".": 0.1}, 6))
    devices = chance.choice(["web", "app"], lists, p=[0.8, 0.2])
    for row in rows:
        number = int(row["list_id"].split()[1])
        row["device"] = str(devices[number])
        row["region"] = "xy"[int(chance.random() < 0.3)]
        row["list_id"] = f"list {number + first}"
        row["item_id"] = f"{first}.{row['item_id']}"
    return rows


def measured(folder: Path, rows: Rows, **said: Any) -> dict[str, Rows]:
    """The mix tables of a batch, rows in order."""
    settings = audit(folder, **{**SLICED, **said})
    deliver(settings, rows)
    ingest_batch(settings, DAY, "run")
    measure_batch(settings, DAY, "run")
    return mixes(settings)


def mixes(settings: Settings) -> dict[str, Rows]:
    with opened(settings, store_of(settings).staged(DAY, "run"), read_only=True) as connection:
        return {
            name: connection.sql(f"FROM batch.{name} ORDER BY ALL").to_arrow_table().to_pylist()
            for name in ("mix_counts", "mix_pairs", "mix_sample")
        }


def lists_of(rows: Rows, attribute: str) -> dict[tuple[str, str], dict[str, Counter[str]]]:
    """Rows of each group in each list, by slice."""
    found: dict[tuple[str, str], dict[str, Counter[str]]] = {}
    for row in rows:
        parts = [row["group"] or "unknown", row["region"]]
        group = {"group": parts[0], "region": parts[1]}.get(attribute, "*".join(parts))
        if attribute == "group*region" and "unknown" in parts:
            group = "unknown"
        for part in (("all", "all"), ("device", row["device"])):
            found.setdefault(part, {}).setdefault(row["list_id"], Counter())[group] += 1
    return found


def test_tables_against_a_slow_count(tmp_path: Path) -> None:
    rows = mixed_log(5, 90)
    tables = measured(tmp_path, rows)
    assert {row["attribute"] for row in tables["mix_counts"]} == {"group", "region", "group*region"}
    for attribute in ("group", "region", "group*region"):
        for (name, value), lists in lists_of(rows, attribute).items():
            counts: Counter[tuple[Any, ...]] = Counter()
            product: Counter[tuple[Any, ...]] = Counter()
            shared: dict[tuple[Any, ...], float] = {}
            for held in lists.values():
                n = held.total()
                counts.update((group, n, own) for group, own in held.items())
                for one, other in combinations(sorted(held), 2):
                    key = one, other, n
                    product[key] += held[one] * held[other]
                    part = (n + 1) / ((n - held[one]) * (n - held[other]))
                    shared[key] = shared.get(key, 0.0) + part
            here = {
                table: [
                    row
                    for row in tables[table]
                    if (row["slice"], row["slice_value"], row["attribute"])
                    == (name, value, attribute)
                ]
                for table in tables
            }
            assert counts == {
                (row["group_value"], row["length"], row["own"]): row["lists"]
                for row in here["mix_counts"]
            }
            pairs = {
                (row["group_value"], row["other_value"], row["length"]): row
                for row in here["mix_pairs"]
            }
            assert product == {key: int(row["product"]) for key, row in pairs.items()}
            for key, row in pairs.items():
                assert int(row["pair_product"]) / 2**60 == pytest.approx(shared[key], rel=1e-12)
            sample: dict[int, Counter[str]] = {}
            for row in here["mix_sample"]:
                sample.setdefault(row["list"], Counter())[row["group_value"]] = row["own"]
                assert row["length"] >= row["own"]
            assert len(sample) == min(SAMPLED_LISTS, len(lists))
            left = Counter(frozenset(held.items()) for held in lists.values())
            assert not Counter(frozenset(held.items()) for held in sample.values()) - left


def test_tables_add_up(tmp_path: Path) -> None:
    one, other = mixed_log(5, 40), mixed_log(6, 30, first=40)
    added = measured(tmp_path / "both", one + other)
    apart = [measured(tmp_path / name, rows) for name, rows in (("one", one), ("other", other))]
    for table in (MIX_COUNTS, MIX_PAIRS):
        sums: dict[Any, Counter[str]] = {}
        for rows in (each[table.name] for each in apart):
            for row in rows:
                key = tuple(row[name] for name in table.key)
                sums.setdefault(key, Counter()).update(
                    {name: int(row[name]) for name in table.names if name not in table.key}
                )
        assert sums == {
            tuple(row[name] for name in table.key): Counter(
                {name: int(row[name]) for name in table.names if name not in table.key}
            )
            for row in added[table.name]
        }


def test_tables_do_not_depend_on_the_order_of_rows(tmp_path: Path) -> None:
    rows = mixed_log(5, 60)
    mixed = [rows[at] for at in np.random.default_rng(1).permutation(len(rows))]
    assert measured(tmp_path / "one", rows) == measured(tmp_path / "two", mixed, threads=2)


# --- Where there is no floor, or nothing to draw


def test_too_many_groups_to_count_in_pairs(tmp_path: Path) -> None:
    groups = [f"g{at:02}" for at in range(MOST_GROUPS + 1)]
    lists = random_log(2, 80, dict.fromkeys(groups, 1 / len(groups)))
    assert not measured(tmp_path, rows_of(lists, device="web", region="x"))["mix_pairs"]
    found = floors(rows_of(lists), ["EXP", "ARP", "NDKL"])
    for label in ("EXP.MinMaxRatio", "ARP.MaxMinDiff"):
        row = found.score(label)
        assert row["value"] is not None
        assert (row["expected"], row["noise_limit"], row["p_noise"]) == (None, None, None)
    assert 0.001 < found.score("NDKL")["p_noise"] < 0.999


def test_many_groups_that_never_meet() -> None:
    lists = [(f"g{at:02}",) * (1 + at % 3) for at in range(MOST_GROUPS + 5)]
    row = floors(rows_of(lists), ["EXP"]).score("EXP.MinMaxRatio")
    # No list can change: what is, is what must be.
    assert row["expected"] == pytest.approx(row["value"], rel=1e-12)
    assert row["noise_limit"] == pytest.approx(row["value"], rel=1e-12)
    assert row["p_noise"] == 1.0


@pytest.mark.parametrize("lists", [["a", "b", "a"], ["aaa", "bb", "bbbbb"], ["a", "bb"]])
def test_lists_that_cannot_change(lists: list[str]) -> None:
    said = {"targets": {"group": {"a": 0.3, "b": 0.7}}}
    labels = ["EXP", "AWRF", "ERBE@2", "ARP", "NDKL", "NDKL(reference=target)", "Skew@1"]
    found = floors(rows_of([tuple(each) for each in lists]), labels, **said)
    known = 0
    for measure, aggregation, row in scores_of(found):
        if row["value"] is None or row["expected"] is None:
            continue
        known += 1
        assert row["expected"] == pytest.approx(row["value"], rel=1e-9, abs=1e-9), measure
        if aggregation != "LTwo":
            assert row["noise_limit"] == pytest.approx(row["value"], rel=1e-9, abs=1e-9)
            assert row["p_noise"] == 1.0, f"{measure}.{aggregation}"
    assert known >= 15
    assert found.score("ARP.MaxMinDiff")["reason"] is not None


def test_two_groups_that_stay_and_two_that_change() -> None:
    # The largest and the smallest value are those of lists of one group: chance moves neither.
    lists = [tuple("a"), tuple("a"), tuple("bbbbbbbbbbbb"), tuple("cdcd"), tuple("ccd")]
    row = floors(rows_of(lists), ["EXP"]).score("EXP.MinMaxRatio")
    assert row["p_noise"] == 1.0
    assert row["expected"] == pytest.approx(row["value"], rel=1e-12)


def test_gaps_that_are_kept() -> None:
    rows = rows_of(random_log(3, 40, {"a": 0.5, "b": 0.5}))
    closed = floors(rows, ["EXP", "ARP", "NDKL"])
    for row in rows:
        row["rank"] = 3 * row["rank"] - 2
    kept = floors(rows, ["EXP", "ARP", "NDKL"], ranks={"gaps": "keep"})
    assert kept.score("EXP.MinMaxRatio")["value"] is not None
    assert kept.score("EXP.MinMaxRatio")["expected"] is None
    for label in ("ARP.MaxMinDiff", "NDKL"):
        for name in ("value", "expected", "noise_limit", "p_noise"):
            assert kept.score(label)[name] == closed.score(label)[name]
    compacted = floors(rows, ["EXP"], ranks={"gaps": "compact"})
    assert compacted.score("EXP.MinMaxRatio") == closed.score("EXP.MinMaxRatio")


def test_metrics_without_a_floor() -> None:
    rows = rows_of(random_log(3, 40, {"a": 0.5, "b": 0.5}), click=0)
    labels = ["EXPRU", "IAA", "nDCG@3", "GroupnDCG@3", "TPR@3", "Gini", "FairDCG@3"]
    known = [label for label in labels if label != "FairDCG@3"]
    for measure, _, row in scores_of(floors(rows, known)):
        assert row["expected"] is None, measure


def test_no_draws_no_floor() -> None:
    rows = rows_of(random_log(3, 40, {"a": 0.5, "b": 0.5}))
    row = floors(rows, ["EXP", "NDKL"], draws=0).score("NDKL")
    assert (row["expected"], row["p_noise"]) == (None, None)


def test_a_group_of_the_catalogue_that_is_never_shown() -> None:
    rows = rows_of(random_log(3, 40, {"a": 0.5, "b": 0.5}))
    items = [{"item_id": row["item_id"], "group": row["group"]} for row in rows]
    items.append({"item_id": "hidden", "group": "z"})
    found = floors(rows, ["EXP(denominator=catalogue)"], items=items)
    ratio = found.score("EXP(denominator=catalogue).MinMaxRatio")
    # Where positions cannot help, chance expects nothing else.
    assert (ratio["value"], ratio["expected"], ratio["p_noise"]) == (0.0, 0.0, 1.0)
    difference = found.score("EXP(denominator=catalogue).MaxMinDiff")
    assert 0.01 < difference["p_noise"] < 0.99
