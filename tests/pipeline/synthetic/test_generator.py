"""Synthetic logs: the same every time, fair on ordinary days, wrong where they say so."""

import random
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest

from metrics.fairness import FAIRNESS_METRICS
from pipeline import score
from pipeline.synthetic import marketplace as generator
from pipeline.synthetic.marketplace import LONGEST, SHORTEST, GeneratedLogs, Incidents, generate

START = date(2026, 1, 1)
DAYS = 30
LISTS = 400
UNFAIR, BROKEN, MISSING = date(2026, 1, 19), date(2026, 1, 12), date(2026, 1, 24)


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> GeneratedLogs:
    """Thirty days with the usual incidents."""
    return generate(tmp_path_factory.mktemp("month"), start=START, days=DAYS, lists=LISTS)


def folder(out: Path, day: date) -> Path:
    return out / "logs" / day.isoformat()


def table(out: Path, day: date) -> pyarrow.Table:
    """The day's rows, in the order of its files."""
    parts = sorted(folder(out, day).glob("part-*.parquet"), key=lambda p: int(p.stem[5:]))
    return pyarrow.concat_tables(pyarrow.parquet.read_table(part) for part in parts)


def frame(out: Path, day: date) -> pd.DataFrame:
    """The day's rows with the groups of their items."""
    items = pyarrow.parquet.read_table(out / "items.parquet").to_pandas()
    return table(out, day).to_pandas().merge(items, on="item_id", how="left", validate="m:1")


def exposure_ratio(rows: pd.DataFrame, attribute: str) -> float:
    """EXP.MinMaxRatio, from its definition: worst over best mean of 1 / log2(rank + 1)."""
    exposure = 1 / np.log2(rows["rank"] + 1)
    means = exposure.groupby(rows[attribute]).mean()
    return float(means.min() / means.max())


def contents(root: Path) -> dict[str, bytes]:
    """Every file below a folder, by relative name."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def ordinary_days() -> list[date]:
    every = (START + timedelta(offset) for offset in range(DAYS))
    return [day for day in every if day not in (UNFAIR, BROKEN, MISSING)]


def test_what_is_reported_is_what_was_written(month: GeneratedLogs) -> None:
    assert month.incidents == Incidents(unfair=UNFAIR, broken=BROKEN, missing=MISSING)
    assert len(month.days) == DAYS - 1
    assert month.lists == LISTS * (DAYS - 1)
    assert month.rows == sum(table(month.out, day).num_rows for day in month.days)
    assert set(contents(month.out)) == {
        str(path.relative_to(month.out)) for path in (month.items, *month.files)
    }


def test_columns_and_types(month: GeneratedLogs) -> None:
    rows = table(month.out, START)
    assert {field.name: str(field.type) for field in rows.schema} == {
        "list_id": "string",
        "query_id": "string",
        "item_id": "string",
        "rank": "int32",
        "relevance": "double",
        "click": "int8",
        "device": "string",
        "market": "string",
    }
    items = pyarrow.parquet.read_table(month.items)
    assert {str(field.type) for field in items.schema} == {"string"}
    assert items.column_names == ["item_id", "gender", "region"]
    assert len(items) == len(items["item_id"].unique()) == 2000
    assert set(items["gender"].to_pylist()) == {"F", "M", None}
    assert set(items["region"].to_pylist()) == {"north", "south", "east", "west"}
    assert 0.002 < items["gender"].null_count / len(items) < 0.03


@pytest.mark.parametrize("day", [START, UNFAIR])
def test_lists_are_whole_ragged_and_without_repeats(month: GeneratedLogs, day: date) -> None:
    rows = frame(month.out, day)
    lists = rows.groupby("list_id", sort=False)
    assert rows["list_id"].nunique() == LISTS
    assert (rows["rank"] == lists.cumcount() + 1).all()
    assert lists.size().between(SHORTEST, LONGEST).all()
    assert lists.size().nunique() == LONGEST - SHORTEST + 1
    assert not rows.duplicated(["list_id", "item_id"]).any()
    assert (rows["list_id"] != rows["list_id"].shift()).sum() == LISTS
    assert (lists[["query_id", "device", "market"]].nunique() == 1).all(axis=None)
    assert rows.loc[:, rows.columns != "gender"].notna().all(axis=None)
    assert set(rows["device"]) == {"mobile", "desktop", "tablet"}
    assert set(rows["market"]) == {"de", "fr", "us"}


def test_relevance_is_yes_or_no_and_clicks_follow_it_and_the_rank(month: GeneratedLogs) -> None:
    rows = pd.concat([frame(month.out, day) for day in ordinary_days()])
    assert set(rows["relevance"]) == {0.0, 1.0}
    assert 0.4 < rows["relevance"].mean() < 0.6
    assert set(rows["click"]) == {0, 1}
    clicked = rows.groupby(["rank", "relevance"])["click"].mean().unstack()
    assert (clicked[1.0] > 1.5 * clicked[0.0]).all()
    assert rows.groupby("rank")["click"].mean().iloc[:8].is_monotonic_decreasing
    relevance = rows.groupby("rank")["relevance"].mean()
    assert relevance[1] > relevance[4] > relevance[8] > relevance[16]


@pytest.mark.parametrize("day", [START, UNFAIR])
def test_every_fairness_metric_has_values_on_every_kind_of_day(
    month: GeneratedLogs, day: date
) -> None:
    scores = score(frame(month.out, day), attributes=["gender", "region"])
    wholes = scores[scores["aggregation"].isin(["MinMaxRatio", None])]
    assert {*wholes["metric"].map(lambda label: label.split("(")[0])} == {
        metric.name for metric in FAIRNESS_METRICS
    }
    assert wholes["value"].notna().all(), wholes[wholes["value"].isna()]


def test_popular_queries_return_with_similar_items(month: GeneratedLogs) -> None:
    rows = pd.concat([frame(month.out, day) for day in ordinary_days()])
    asked = rows.groupby("query_id")["list_id"].nunique().sort_values(ascending=False)
    assert asked.iloc[0] > 10 * asked.median()
    answers = rows[rows["query_id"] == asked.index[0]]
    assert answers["item_id"].nunique() <= 60


def test_an_item_is_judged_alike_whenever_its_query_is_asked(month: GeneratedLogs) -> None:
    rows = pd.concat([frame(month.out, day) for day in ordinary_days()[:5]])
    assert (rows.groupby(["query_id", "item_id"])["relevance"].nunique() == 1).all()


@pytest.mark.slow
def test_ordinary_days_treat_groups_alike(month: GeneratedLogs) -> None:
    gender = [exposure_ratio(frame(month.out, day), "gender") for day in ordinary_days()]
    region = [exposure_ratio(frame(month.out, day), "region") for day in ordinary_days()]
    assert min(gender) > 0.93
    assert np.mean(gender) > 0.97
    assert min(region) > 0.88


def test_the_unfair_day_stands_out_and_most_of_all_in_one_slice(month: GeneratedLogs) -> None:
    rows = frame(month.out, UNFAIR)
    worst = (rows["market"] == "de") & (rows["device"] == "mobile")
    assert exposure_ratio(rows, "gender") < 0.76
    assert exposure_ratio(rows[worst], "gender") < 0.65
    assert 0.70 < exposure_ratio(rows[~worst], "gender") < 0.85
    assert exposure_ratio(rows, "region") > 0.88
    means = (1 / np.log2(rows["rank"] + 1)).groupby(rows["gender"]).mean()
    assert means.idxmin() == "F"


@pytest.mark.parametrize("lists", [1, 40, 150, 250, 400, 3000])
def test_exactly_the_four_faults_are_planted(tmp_path: Path, lists: int) -> None:
    generate(tmp_path / "a", start=START, days=1, lists=lists, incidents=Incidents(broken=START))
    generate(tmp_path / "b", start=START, days=1, lists=lists, incidents=Incidents())
    broken, whole = frame(tmp_path / "a", START), frame(tmp_path / "b", START)

    assert (broken["relevance"] == 1.2).sum() == 1
    assert table(tmp_path / "a", START)["relevance"].null_count == 0
    assert broken["relevance"].isna().sum() == 1
    assert broken.duplicated(["list_id", "item_id"]).sum() == 1
    by_list = broken.groupby("list_id")["rank"]
    gaps = by_list.max() - by_list.size()
    assert gaps.value_counts().drop(0, errors="ignore").to_dict() == {1: 1}
    assert not broken.duplicated(["list_id", "rank"]).any()

    relevance = broken["relevance"].fillna(-1) != whole["relevance"]
    item = broken["item_id"] != whole["item_id"]
    moved = broken["rank"] != whole["rank"]
    assert (relevance.sum(), item.sum()) == (2, 1)
    same = ["list_id", "query_id", "click", "device", "market"]
    pd.testing.assert_frame_equal(broken[same], whole[same])
    touched = broken["list_id"].isin(broken.loc[relevance | item | moved, "list_id"])
    if lists >= 40:
        assert touched.mean() < 0.05


def test_a_missing_day_has_no_folder(month: GeneratedLogs) -> None:
    assert MISSING not in month.days
    assert not folder(month.out, MISSING).exists()


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, month: GeneratedLogs) -> None:
    generate(tmp_path, start=START, days=DAYS, lists=LISTS)
    assert contents(tmp_path) == contents(month.out)
    other = generate(tmp_path / "other", start=START, days=1, lists=LISTS, seed=8)
    assert not table(other.out, START).equals(table(month.out, START))


@pytest.mark.parametrize("day", [date(2026, 1, 5), UNFAIR, BROKEN])
def test_a_day_does_not_depend_on_the_others(
    tmp_path: Path, month: GeneratedLogs, day: date
) -> None:
    unfair, broken = (day if day == known else None for known in (UNFAIR, BROKEN))
    generate(
        tmp_path, start=day, days=1, lists=LISTS, incidents=Incidents(unfair=unfair, broken=broken)
    )
    assert contents(folder(tmp_path, day)) == contents(folder(month.out, day))
    assert (tmp_path / "items.parquet").read_bytes() == month.items.read_bytes()


def test_days_differ(month: GeneratedLogs) -> None:
    first, second = (table(month.out, START + timedelta(n)) for n in (0, 1))
    assert first["item_id"].to_pylist()[:100] != second["item_id"].to_pylist()[:100]
    assert not set(first["list_id"].to_pylist()) & set(second["list_id"].to_pylist())


@pytest.mark.parametrize("chunk_lists", [1, 7, 64, 10_000])
def test_chunks_do_not_show_in_the_rows(tmp_path: Path, chunk_lists: int) -> None:
    usual, chunked = (
        generate(
            tmp_path / name, start=START, days=1, lists=150, chunk_lists=size,
            incidents=Incidents(broken=START),
        )
        for name, size in (("usual", 50), ("chunked", chunk_lists))
    )  # fmt: skip
    expected, got = (frame(logs.out, START) for logs in (usual, chunked))
    pd.testing.assert_frame_equal(got, expected)
    row_groups = pyarrow.parquet.read_metadata(chunked.files[0]).num_row_groups
    assert row_groups == -(-150 // chunk_lists)


def test_a_large_day_is_split_into_files_between_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = generate(tmp_path / "whole", start=START, days=1, lists=100)
    monkeypatch.setattr(generator, "PART_LISTS", 30)
    split = generate(tmp_path / "split", start=START, days=1, lists=100, chunk_lists=8)
    assert [path.name for path in split.files] == [f"part-{n}.parquet" for n in range(4)]
    lists = [pyarrow.parquet.read_table(path)["list_id"].unique() for path in split.files]
    assert [len(ids) for ids in lists] == [30, 30, 30, 10]
    assert table(split.out, START).equals(table(whole.out, START))


def test_fewer_lists_are_the_first_of_more(tmp_path: Path, month: GeneratedLogs) -> None:
    few = generate(tmp_path, start=START, days=1, lists=50)
    assert table(tmp_path, START).equals(table(month.out, START).slice(0, few.rows))


def test_a_smaller_run_leaves_nothing_of_a_larger_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator, "PART_LISTS", 30)
    generate(tmp_path / "a", start=START, days=3, lists=100)
    missing = Incidents(missing=START + timedelta(1))
    generate(tmp_path / "a", start=START, days=3, lists=20, incidents=missing)
    generate(tmp_path / "b", start=START, days=3, lists=20, incidents=missing)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert not folder(tmp_path / "a", START + timedelta(1)).exists()


@pytest.mark.parametrize(
    "stranger", ["items.parquet", "logs/2026-01-02/part-0.parquet", "logs/2026-01-01/day.csv"]
)
@pytest.mark.parametrize("parquet", [True, False])
def test_real_files_are_never_replaced(tmp_path: Path, stranger: str, parquet: bool) -> None:
    path = tmp_path / stranger
    path.parent.mkdir(parents=True, exist_ok=True)
    if parquet:
        pyarrow.parquet.write_table(pyarrow.table({"item_id": ["mine"]}), path)
    else:
        path.write_text("mine")
    before = contents(tmp_path)
    with pytest.raises(ValueError, match=r"not generated(.|\n)*Nothing was written") as refusal:
        generate(tmp_path, start=START, days=2, lists=10)
    assert str(path) in str(refusal.value)
    assert contents(tmp_path) == before


def test_a_failure_leaves_neither_a_half_file_nor_a_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(pyarrow.parquet.ParquetWriter, "write_table", full_disk)
    with pytest.raises(OSError, match="No space left"):
        generate(tmp_path, start=START, days=1, lists=10)
    assert contents(tmp_path) == {}


def test_nothing_outside_the_folder_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "neighbour.txt").write_text("as it was")
    monkeypatch.chdir(tmp_path / "elsewhere")
    generate(tmp_path / "new" / "out", start=START, days=2, lists=10)
    names = [name for name in contents(tmp_path) if not name.startswith("new/out/")]
    assert names == ["neighbour.txt"]
    assert (tmp_path / "neighbour.txt").read_text() == "as it was"
    assert not list((tmp_path / "elsewhere").iterdir())


def test_global_random_state_is_neither_read_nor_changed(tmp_path: Path) -> None:
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), repr(np.random.get_state())
    generate(tmp_path / "a", start=START, days=1, lists=10)
    after = random.getstate(), repr(np.random.get_state())
    assert after == before
    np.random.seed(2)
    generate(tmp_path / "b", start=START, days=1, lists=10)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_progress_is_a_line_a_day(tmp_path: Path) -> None:
    lines: list[str] = []
    generate(tmp_path, start=START, days=8, lists=10, progress=lines.append)
    assert [line[:10] for line in lines] == [
        (START + timedelta(offset)).isoformat() for offset in range(8)
    ]
    assert [line for line in lines if "unfair" in line or "wrong" in line or "no log" in line] == [
        lines[2], lines[4], lines[5],
    ]  # fmt: skip


def test_incidents_are_spread_over_any_period() -> None:
    for days in range(1, 120):
        placed = Incidents.spread(START, days).dates()
        assert len(set(placed.values())) == (3 if days >= 8 else 0)
        assert all(START < day < START + timedelta(days) for day in placed.values())


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"days": 0}, "days is 0: give 1 or more"),
        ({"lists": 0}, "lists is 0: give 1 or more"),
        ({"lists": -5}, "lists is -5"),
        ({"items": LONGEST - 1}, "items is 29: a list holds up to 30 different items"),
        ({"seed": -1}, "seed is -1: give 0 or more"),
        ({"chunk_lists": 0}, "chunk_lists is 0"),
        ({"start": date(9999, 12, 31), "days": 2}, "after 9999-12-31"),
        ({"incidents": Incidents(unfair=date(2025, 12, 31))}, "unfair day 2025-12-31 is not"),
        ({"incidents": Incidents(unfair=START, missing=START)}, "two incidents on one day"),
    ],
)
def test_impossible_arguments_are_refused_with_a_reason(
    tmp_path: Path, wrong: dict[str, object], text: str
) -> None:
    arguments: dict[str, object] = {"start": START, "days": 3, "lists": 10, **wrong}
    with pytest.raises(ValueError, match=text):
        generate(tmp_path / "out", **arguments)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_several_problems_come_in_one_message(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"days is 0(.|\n)*lists is 0(.|\n)*items is 3"):
        generate(tmp_path, start=START, days=0, lists=0, items=3)


def test_the_smallest_market_works(tmp_path: Path) -> None:
    generate(tmp_path, start=START, days=1, lists=200, items=LONGEST)
    rows = frame(tmp_path, START)
    assert not rows.duplicated(["list_id", "item_id"]).any()
    assert rows.groupby("list_id").size().max() == LONGEST
