"""Files of rankings with a known bias: what is written, incidents, and what cannot be."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from biased_logs import GROUPS, START, contents, exposures, frame

from pipeline.synthetic import biased_days as biased_day
from pipeline.synthetic.biased import BiasedRankings
from pipeline.synthetic.biased_period import biased_table, generate_biased
from pipeline.synthetic.biased_request import BiasedIncidents
from pipeline.synthetic.files import CannotGenerate
from pipeline.synthetic.marketplace import Incidents, generate

# -- files


def test_files_hold_the_same_rows_as_tables(tmp_path: Path) -> None:
    rankings = BiasedRankings(GROUPS, 0.5, slices={"market": ["de", "fr"]})
    lines: list[str] = []
    written = generate_biased(
        tmp_path, rankings, start=START, days=2, lists=40, progress=lines.append
    )
    assert pyarrow.parquet.read_table(written.items).equals(rankings.item_table())
    assert [str(path.relative_to(tmp_path)) for path in written.files] == [
        "logs/2026-01-01/part-0.parquet",
        "logs/2026-01-02/part-0.parquet",
    ]
    for path, day in zip(written.files, written.days, strict=True):
        rows = biased_table(rankings, 40, day=day).drop_columns(["group"])
        assert pyarrow.parquet.read_table(path).equals(rows)
    assert (written.lists, written.rows) == (80, 2 * 40 * 20)
    assert lines == ["2026-01-01  40 lists  800 rows", "2026-01-02  40 lists  800 rows"]


def test_a_large_day_is_split_into_files_between_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(biased_day, "PART_ROWS", 650)
    rankings = BiasedRankings(GROUPS, 0.5)
    written = generate_biased(tmp_path, rankings, start=START, days=1, lists=70, chunk_lists=9)
    parts = [pyarrow.parquet.read_table(path) for path in written.files]
    assert [len(part) for part in parts] == [32 * 20, 32 * 20, 6 * 20]
    assert pyarrow.concat_tables(parts).equals(biased_table(rankings, 70).drop_columns(["group"]))


def test_one_table_is_held_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, held, sizes = [1], [], []  # the items are drawn before the lists
    draw, write = biased_day.BiasedDay.next_lists, pyarrow.parquet.ParquetWriter.write_table

    def counted_draw(self: Any, first: int, end: int) -> Any:
        drawn[0] += 1
        return draw(self, first, end)

    def counted_write(self: Any, table: Any, **more: Any) -> None:
        held.append(drawn[0])
        drawn[0] -= 1
        sizes.append(pyarrow.total_allocated_bytes())
        write(self, table, **more)

    rankings = BiasedRankings(GROUPS, 0.5)
    monkeypatch.setattr(biased_day.BiasedDay, "next_lists", counted_draw)
    monkeypatch.setattr(pyarrow.parquet.ParquetWriter, "write_table", counted_write)
    generate_biased(tmp_path, rankings, start=START, days=1, lists=20_000, chunk_lists=500)
    assert held == [1] * 41
    assert max(sizes[21:]) < 1.5 * max(sizes[1:21])


def test_incidents_happen_on_their_days(tmp_path: Path) -> None:
    days = [START + timedelta(n) for n in range(5)]
    rankings = BiasedRankings({"F": 0.4, "M": 0.6}, 1.0, slices={"market": ["de", "fr"]})
    lines: list[str] = []
    written = generate_biased(
        tmp_path,
        rankings,
        start=START,
        days=5,
        lists=600,
        incidents=BiasedIncidents(
            unfair={days[1]: 0.1, days[2]: 0.0},
            broken=[days[3]],
            missing=[days[4]],
            only={"market": "de"},
        ),
        progress=lines.append,
    )
    assert written.days == tuple(days[:4])
    assert not (tmp_path / "logs" / "2026-01-05").exists()
    notes = ["", "phi 0.1 in market de", "phi 0 in market de", "some wrong rows"]
    assert [line.partition("rows")[2].strip() for line in lines[:4]] == notes
    assert lines[4] == "2026-01-05  no log"
    items = rankings.item_table().to_pandas()
    usual, unfair, stacked, broken = (
        pyarrow.parquet.read_table(path).to_pandas().merge(items, on="item_id", how="left")
        for path in written.files
    )
    ratios = []
    for rows in (usual, unfair, stacked):
        means = {market: exposures(own) for market, own in rows.groupby("market")}
        ratios.append([means[market].min() / means[market].max() for market in ("de", "fr")])
    assert ratios[0][0] > 0.95
    assert 0.6 > ratios[1][0] > ratios[2][0]
    assert min(of_fr for _, of_fr in ratios) > 0.95

    whole = frame(rankings, 600, day=days[3])
    assert (broken["relevance"] == 1.2).sum() == 1
    assert broken["relevance"].isna().sum() == 1
    assert broken.duplicated(["list_id", "item_id"]).sum() == 1
    by_list = broken.groupby("list_id")["rank"]
    assert ((by_list.max() - by_list.size()) == 1).sum() == 1
    touched = broken[["rank", "relevance", "item_id"]] != whole[["rank", "relevance", "item_id"]]
    assert 4 <= touched.any(axis=1).sum() <= 20
    same = ["list_id", "query_id", "click", "market"]
    pd.testing.assert_frame_equal(broken[same], whole[same])


@pytest.mark.parametrize("length", [1, 2, 5])
def test_faults_fit_into_short_lists(tmp_path: Path, length: int) -> None:
    rankings = BiasedRankings(GROUPS, 0.5, length=length)
    incidents = BiasedIncidents(broken=[START])
    written = generate_biased(
        tmp_path, rankings, start=START, days=1, lists=400, incidents=incidents
    )
    rows = pyarrow.parquet.read_table(written.files[0]).to_pandas()
    assert (rows["relevance"] == 1.2).sum() == rows["relevance"].isna().sum() == 1
    assert rows.duplicated(["list_id", "item_id"]).sum() == (length > 1)
    assert (rows.groupby("list_id")["rank"].max() > length).sum() == (length > 1)


def test_a_day_does_not_depend_on_the_others(tmp_path: Path) -> None:
    rankings = BiasedRankings(GROUPS, 0.5)
    generate_biased(tmp_path / "a", rankings, start=START, days=3, lists=30)
    generate_biased(tmp_path / "b", rankings, start=START + timedelta(2), days=1, lists=30)
    name = "logs/2026-01-03/part-0.parquet"
    assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_it_takes_the_place_of_other_generated_logs_only(tmp_path: Path) -> None:
    generate(tmp_path / "a", start=START, days=2, lists=20, incidents=Incidents())
    rankings = BiasedRankings(GROUPS, 0.5)
    missing = BiasedIncidents(missing=[START])
    for name in ("a", "b"):
        generate_biased(tmp_path / name, rankings, start=START, days=2, lists=20, incidents=missing)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    mine = tmp_path / "c" / "logs" / "2026-01-01" / "mine.csv"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(ValueError, match="not generated"):
        generate_biased(tmp_path / "c", rankings, start=START, days=2, lists=20)
    assert contents(tmp_path / "c") == {"logs/2026-01-01/mine.csv": b"mine"}


# -- what cannot be


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"groups": {"a": 1}}, "groups: give shares of 2 or more"),
        ({"groups": {"a": 1, "b": -0.1}}, "b has the share -0.1"),
        ({"groups": {"a": 1, "b": float("nan")}}, "b has the share nan"),
        ({"groups": {"a": 1, "b": float("inf")}}, "b has the share inf"),
        ({"groups": {"a": 0, "b": 0}}, "groups: no share is above 0"),
        ({"groups": {"a": 1, " b": 1}}, "' b' is no name"),
        ({"groups": {"a": 1, "": 1}}, "'' is no name"),
        ({"groups": {"a": 1e-5, "b": 1}}, "group a: its share of 2000 items is less than one"),
        ({"phi": -0.1}, "phi is -0.1: give 0 to 1"),
        ({"phi": 1.01}, "phi is 1.01: give 0 to 1"),
        ({"phi": float("nan")}, "phi is nan"),
        ({"items": 0}, "items is 0"),
        ({"items": 10}, "length is 20, but there are 10 items"),
        ({"length": 0}, "length is 0: give 1 or more"),
        ({"length": (9, 5)}, "length is 9 to 5: give 1 or more, the fewest"),
        ({"length": 1_000_001, "items": 2_000_000}, "the deepest rank is 1000000"),
        ({"candidates": 19}, "candidates is 19: give 20"),
        ({"candidates": 2001}, r"candidates is 2001: .* 2000 \(items\)"),
        ({"order": "biggest"}, "order is 'biggest': choose smallest, largest or given"),
        ({"relevance": "yes"}, "relevance is 'yes'"),
        ({"clicks": "eta"}, "clicks is 'eta'"),
        ({"attribute": "Rank"}, "attribute Rank: the log has a column"),
        ({"attribute": "a*b"}, "attribute 'a.b' is no column name"),
        ({"slices": {"propensity": ["x"]}}, "slice propensity: the log has"),
        ({"slices": {"group": ["x"]}}, "column group is asked for twice"),
        ({"slices": {"market": []}}, "slice market: give at least one value"),
        ({"slices": {"market": ["x", "x"]}}, "slice market: x stands twice"),
        ({"slices": {"market": {"x": -1}}}, "slice market: x has the share -1"),
        ({"slices": {"market": {"x": 0}}}, "slice market: no share is above 0"),
        ({"correlation": 1.1}, "correlation is 1.1: give -1 to 1"),
        ({"group_gap": 1.0}, "means from 1 to 0: all have to lie between"),
        ({"mean_relevance": float("nan")}, "mean_relevance nan"),
        ({"click_noise": 2}, "click_noise is 2"),
        ({"eta": -1.0}, "eta is -1"),
        ({"propensity": True, "clicks": "none"}, "propensity comes from the click model"),
        ({"seed": -1}, "seed is -1: give 0 or more"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_impossible_rankings_are_refused_with_a_reason(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(CannotGenerate, match=text) as refusal:
        BiasedRankings(**{"groups": GROUPS, "phi": 0.5, **wrong})
    assert len(refusal.value.problems) == 1


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"days": 0}, "days is 0"),
        ({"lists": 0}, "lists is 0"),
        ({"chunk_lists": 0}, "chunk_lists is 0"),
        ({"start": date.max, "days": 2}, "after 9999-12-31"),
        ({"incidents": BiasedIncidents(broken=[date(2025, 1, 1)])}, "broken day 2025-01-01 is not"),
        ({"incidents": BiasedIncidents({START: 0.1}, missing=[START])}, "two incidents"),
        ({"incidents": BiasedIncidents({START: 1.5})}, "unfair day 2026-01-01 is 1.5"),
        ({"incidents": BiasedIncidents({START: 0}, only={"x": "y"})}, "x is no slice"),
        ({"incidents": BiasedIncidents({START: 0}, only={"market": "us"})}, "values are de or fr"),
        ({"incidents": BiasedIncidents(only={"market": "de"})}, "name an unfair day"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_impossible_periods_are_refused_with_a_reason(
    tmp_path: Path, wrong: dict[str, Any], text: str
) -> None:
    rankings = BiasedRankings(GROUPS, 0.5, slices={"market": ["de", "fr"]})
    period: dict[str, Any] = {"start": START, "days": 3, "lists": 10, **wrong}
    with pytest.raises(CannotGenerate, match=text) as refusal:
        generate_biased(tmp_path / "out", rankings, **period)
    assert len(refusal.value.problems) == 1
    assert not (tmp_path / "out").exists()


def test_all_problems_come_at_once() -> None:
    with pytest.raises(ValueError, match="nothing was generated") as refusal:
        BiasedRankings({"a": -1, "b": 1}, 2.0, items=0, seed=-1, clicks="none", propensity=True)
    assert len(str(refusal.value).splitlines()) == 1 + 5
