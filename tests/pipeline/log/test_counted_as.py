"""Values that count as groups: in every format, from log or item table, and how many rows did."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from stores import DAY, Rows, audit, deliver, in_batch, in_history, ranking, write_csv

import pipeline
from pipeline.errors import DataRefused
from pipeline.integrity.recompute import Recomputed, recompute
from pipeline.log.ingest import Ingested
from pipeline.runs.batches import run_batch
from pipeline.runs.in_memory import check_files, score_files
from pipeline.runs.steps import ingest_batch
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of

HOSTILE = "m'\"];--\n{x}\u00e9"
GROUPS = {"Female": "F", HOSTILE: "M", "n/a": "unknown"}
VALUES = {"gender": GROUPS}
DELIVERED = ["Female", "F", " Female\t", "M", HOSTILE, "n/a", "Other", "FEMALE"]
MEANT = ["F", "F", "F", "M", "M", None, "Other", "FEMALE"]


def checked(folder: Path, rows: Rows, **said: Any) -> Ingested:
    return check_files(audit(folder, **said), [write_csv(folder / "log.csv", rows)], None)


def ingested(settings: Settings) -> Ingested:
    found = ingest_batch(settings, DAY, "run")
    store = store_of(settings)
    store.staged(DAY, "run").rename(store.batch(DAY))
    return found


def groups(settings: Settings, column: str = "gender") -> dict[str, int]:
    rows = in_batch(settings, f"SELECT {column} AS g, count(*) AS n FROM ranking_log GROUP BY g")
    return {row["g"]: row["n"] for row in rows}


def frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Lists as they are delivered, and with the groups that they mean."""
    delivered, meant = (
        [
            row
            for at in range(3)
            for row in ranking(f"q{at}", [*genders[at:], *genders[:at]], region=["n", "s"] * 4)
        ]
        for genders in (DELIVERED, MEANT)
    )
    return pd.DataFrame(delivered), pd.DataFrame(meant)


def test_only_what_the_settings_name_is_another_group(tmp_path: Path) -> None:
    settings = audit(tmp_path, values=VALUES)
    deliver(tmp_path, ranking("a", DELIVERED))
    found = ingested(settings)
    assert groups(settings) == {"F": 3, "M": 2, "unknown": 1, "Other": 1, "FEMALE": 1}
    assert found.unknown_rows == {"gender": 1}


def test_intersections_and_slices(tmp_path: Path) -> None:
    settings = audit(
        tmp_path,
        attributes=["gender", "region", ["gender", "region"]],
        slices=["device"],
        values={"gender": {"Female": "F"}, "region": {"north": "n"}},
    )
    deliver(tmp_path, ranking("a", ["Female", "F"], region=["north", "n"], device="Female"))
    assert ingested(settings).unknown_rows == {"gender": 0, "region": 0, "gender*region": 0}
    assert groups(settings) == {"F": 2}
    assert groups(settings, "region") == {"n": 2}
    assert groups(settings, "device") == {"Female": 2}
    assert in_batch(settings, "SELECT count(*) AS n FROM log_cells") == [{"n": 1}]


@pytest.mark.slow
def test_scores_are_those_of_the_groups_that_are_meant(tmp_path: Path) -> None:
    delivered, meant = frames()
    attributes = ["gender", "region", ["gender", "region"]]
    expected = pipeline.score(meant, attributes, groups=True)
    said = {"values": VALUES}
    found = pipeline.score(delivered, attributes, groups=True, settings=said)
    pd.testing.assert_frame_equal(found, expected)
    assert set(found[found.attribute == "gender"].group_value) == {
        "F", "M", "unknown", "Other", "FEMALE",
    }  # fmt: skip
    of_items = ["item_id", "gender", "region"]
    for log in (delivered.drop(columns=["gender", "region"]), delivered.drop(columns="gender")):
        items = delivered[of_items]
        pd.testing.assert_frame_equal(
            pipeline.score(log, attributes, items=items, groups=True, settings=said), expected
        )
    written = [tmp_path / f"log.{format}" for format in ("csv", "jsonl", "parquet")]
    rows = delivered.to_dict("records")
    write_csv(written[0], rows)
    written[1].write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    pyarrow.parquet.write_table(pyarrow.Table.from_pandas(delivered), written[2])
    evidence = {"resamples": 0, "noise_draws": 0}
    settings = audit(tmp_path, attributes=attributes, values=VALUES, evidence=evidence)
    of_formats = [score_files(settings, [path], None) for path in written]
    assert of_formats[0].groups == of_formats[1].groups == of_formats[2].groups
    assert [row["value"] for row in of_formats[0].groups] == [
        None if pd.isna(value) else value for value in expected["value"]
    ]


def test_rows_are_counted_and_told(tmp_path: Path) -> None:
    rows = [*ranking("a", DELIVERED), *ranking("b", ["Female", "F"])]
    (note,) = checked(tmp_path, rows, values=VALUES).notes
    assert note == (
        "gender: 5 rows with 3 values count as the groups that `values` in the settings names"
    )
    (note,) = checked(tmp_path, rows, values=VALUES, privacy={"show_values": True}).notes
    assert note == (
        "gender: 3 rows with 'Female' count as 'F'; "
        f"1 row with {HOSTILE!r} counts as 'M'; 1 row with 'n/a' counts as 'unknown'"
    )
    assert checked(tmp_path, ranking("a", "FM"), values=VALUES).notes == ()


def test_many_values_are_cut(tmp_path: Path) -> None:
    values = {"gender": {f"v{at}": "F" for at in range(12)}}
    rows = ranking("a", [f"v{at}" for at in range(12)])
    (note,) = checked(tmp_path, rows, values=values, privacy={"show_values": True}).notes
    assert note.endswith("; and so on for 2 more values")


def test_rejected_rows_are_not_counted(tmp_path: Path) -> None:
    bad, twice = ranking("b", ["Female", "F"]), ranking("c", ["Female", "F"])
    bad[1]["relevance"] = 7
    twice[1]["item_id"] = twice[0]["item_id"]
    rows = [*ranking("a", ["Female", "F"]), *bad, *twice]
    said = {"values": VALUES, "privacy": {"show_values": True}}
    for policy, expected in (("drop_list", 1), ("drop_row", 2)):
        rejects = {"policy": policy, "max_rejected_share": 0.99}
        found = checked(tmp_path, rows, rejects=rejects, **said)
        assert found.notes[0].startswith(f"gender: {expected} row")
        assert len(found.notes) == 1


def test_rows_are_counted_where_items_have_the_values(tmp_path: Path) -> None:
    rows = [*ranking("a", "FF"), *ranking("b", "FF")]
    for at, row in enumerate(rows):
        del row["gender"]
        row["item_id"] = "xy"[at % 2]
    items = [{"item_id": "x", "gender": " Female"}, {"item_id": "y", "gender": "M"}]
    log, table = write_csv(tmp_path / "log.csv", rows), write_csv(tmp_path / "items.csv", items)
    settings = audit(tmp_path, values=VALUES, privacy={"show_values": True})
    assert check_files(settings, [log], table).notes == (
        "gender: 2 rows with 'Female' count as 'F'",
    )


def test_group_sizes_are_of_the_groups_that_are_meant(tmp_path: Path) -> None:
    items = [{"item_id": f"a-{at}", "gender": each} for at, each in enumerate(DELIVERED, start=1)]
    write_csv(tmp_path / "items.csv", items)
    rows = ranking("a", DELIVERED)
    for row in rows:
        del row["gender"]
    deliver(tmp_path, rows)
    settings = audit(tmp_path, items="items.csv", values=VALUES)
    ingested(settings)
    sizes = in_batch(settings, "FROM group_sizes")
    assert {tuple(row.values()) for row in sizes} == {
        ("gender", "F", 3),
        ("gender", "M", 2),
        ("gender", "unknown", 1),
        ("gender", "Other", 1),
        ("gender", "FEMALE", 1),
    }
    assert groups(settings)["F"] == 3


def test_a_closed_list_is_of_groups_that_are_meant(tmp_path: Path) -> None:
    closed = {"groups": {"gender": ["F", "M"]}, "values": VALUES}
    rows = ranking("a", ["Female", "M", "n/a", HOSTILE])
    assert checked(tmp_path, rows, **closed).lists == 1
    with pytest.raises(DataRefused, match="gender: 1 row in 1 group that `groups`"):
        checked(tmp_path, ranking("a", ["Female", "M", "FEMALE"]), **closed)


@pytest.mark.slow
def test_days_are_due_again_when_it_changes(tmp_path: Path) -> None:
    plain = audit(tmp_path, metrics=["EXP"])
    mapped = audit(tmp_path, metrics=["EXP"], values=VALUES)
    deliver(tmp_path, ranking("a", ["Female", "F", "M"]))
    assert run_batch(plain, DAY).revision == 1
    assert run_batch(audit(tmp_path, metrics=["EXP"], values={}), DAY).status == "unchanged"
    # Each day is computed again under the settings that it was computed under.
    assert list(recompute(mapped, [])) == [Recomputed(DAY, same=True, from_rows=True)]
    outcome = run_batch(mapped, DAY)
    assert (outcome.status, outcome.revision) == ("done", 2)
    assert outcome.notes[0].startswith("gender: 1 row with 1 value counts as")
    rows = in_history(plain, "SELECT DISTINCT group_value FROM group_history ORDER BY 1")
    assert [row["group_value"] for row in rows] == ["F", "M"]
    assert list(recompute(plain, [])) == [Recomputed(DAY, same=True, from_rows=True)]
