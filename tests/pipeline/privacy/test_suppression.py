"""What leaves the store tells nothing of too few: published copy, history command, alerts."""

import csv
import json
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner
from histories import put, rewrite, score, small_audit
from stores import Rows, audit, deliver, in_history, lists, ranking, read
from suppressed_tables import List, Tables

from pipeline.cli.main import main
from pipeline.history.queries import breaches, labelled, verdicts
from pipeline.monitoring.alerts import alerts, gated_batches
from pipeline.monitoring.delivery import deliver as send
from pipeline.privacy.small_cells import Block, hidden
from pipeline.publish.copy import publish
from pipeline.runs.batches import run_batch
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of
from schemas.history import COUNTS_OF_HISTORY, HISTORY_TABLES, SUPERSEDED
from schemas.judged import JUDGED_OF
from schemas.scores import FAIRNESS_HISTORY
from schemas.views import VIEWS

DAY, NEXT = "2026-01-05", "2026-01-06"
K = 5
TOLD = (
    *("value", "worst_group", "best_group", "lower", "upper", "expected", "p_noise"),
    *JUDGED_OF.values(),
    *("judged_groups", "thin_groups", "assured", "detectable", "lists_needed"),
    *("against_chance", "against_chance_lower", "against_chance_upper"),
)
"""Columns of a score that say something of its groups."""
_CELLS = "SELECT slice, slice_value, attribute, group_value, n FROM v_groups"


def day(phone: int = 12, tablet: str = "FMMM") -> Rows:
    """Devices with many lists, but for tablets: two of women and men, and three of men."""
    return lists(
        *(ranking(f"p{n}", "MMFF", device="phone", shop="a") for n in range(phone)),
        *(ranking(f"d{n}", "MMFF", device="desk", shop="b") for n in range(30)),
        *(ranking(f"t{n}", tablet, device="tablet", shop="b") for n in range(2)),
        *(ranking(f"u{n}", "MMM", device="tablet", shop="a") for n in range(4)),
        *(ranking(f"w{n}", "MF", device="watch", shop="a") for n in range(2)),
    )


def shopping(folder: Path, k: int = K, **said: Any) -> Settings:
    deliver(folder, day(), batch=DAY)
    deliver(folder, day(13), batch=NEXT)
    settings = audit(
        folder,
        slices=["device", "shop"],
        metrics=["EXP", "nDCG", "Pairwise"],
        thresholds={"EXP.MinMaxRatio": {"min": 0.99}},
        privacy={"min_cell": k},
        **said,
    )
    for batch in (DAY, NEXT):
        assert run_batch(settings, batch).status == "done"
    return settings


@pytest.fixture(name="settings", scope="module")
def _settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    settings = shopping(tmp_path_factory.mktemp("shop"))
    publish(settings)
    return settings


def copied(settings: Settings, query: str) -> Rows:
    return read(store_of(settings).dashboard, query)


def test_slices_of_too_few_are_not_there(settings: Settings) -> None:
    for view in ("v_history", "v_groups", "v_trends", "v_alerts"):
        found = copied(settings, f"SELECT DISTINCT slice_value FROM {view} WHERE slice = 'device'")
        # Watches have two lists; six of tablets are the fewest that hide them.
        assert {row["slice_value"] for row in found} <= {"phone", "desk"}, view
    shown = copied(settings, "SELECT DISTINCT slice_value FROM v_history")
    assert {row["slice_value"] for row in shown} == {"all", "phone", "desk", "a", "b"}


def test_a_block_with_a_small_cell_has_no_numbers(settings: Settings) -> None:
    """Women are in two lists of tablets and two of watches, so phones hide them."""
    rows = copied(settings, f"FROM v_history WHERE slice = 'device' AND batch = '{DAY}'")
    told = {(row["slice_value"], row["attribute"]) for row in rows if row["value"] is not None}
    assert told == {("phone", None), ("desk", None), ("desk", "gender")}
    left_out = [row for row in rows if row["reason"] == "suppressed"]
    assert {row["slice_value"] for row in left_out} == {"phone"}
    for row in left_out:
        assert row["attribute"] == "gender"
        assert row["reason"] == "suppressed"
        said = row["status"], row["status_reason"]
        assert said in (("insufficient", "suppressed"), ("not_judged", None))
        assert {row[name] for name in TOLD} == {None}
    groups = copied(settings, "SELECT DISTINCT slice, slice_value FROM v_groups")
    assert {tuple(row.values()) for row in groups} == {
        ("all", "all"),
        ("device", "desk"),
        ("shop", "a"),
        ("shop", "b"),
    }


def test_of_a_score_that_is_left_out_only_its_place_is_told(tmp_path: Path) -> None:
    """Every column that a score has, or will have, is left out unless it is named here."""
    safe = {*FAIRNESS_HISTORY.key, "label", "reason", "status", "status_reason", "revision"}
    safe |= {"verdict", "verdict_reason", "confidence", "seed", "queries", "lists", "rows"}
    safe |= {"run_id", "code_version", "config_hash", "input_hash", "computed_at"}
    kinds = {"DOUBLE": 0.5, "BIGINT": 7, "BOOLEAN": True, "VARCHAR": '["Ada"]'}
    row = {
        column.name: kinds[column.type]
        for column in FAIRNESS_HISTORY.columns
        if column.name not in safe
    }
    assert {*row} >= {*TOLD}
    for k in (0, K):
        settings = small_audit(tmp_path / str(k), privacy={"min_cell": k})
        put(settings, DAY, [score(0.5) | row], sizes={"Ada": 12, "M": 988})
        (told,) = labelled(settings)
        assert {name for name, value in told.items() if value is not None and name in row} == (
            set() if k else {*row}
        )
        assert k == 0 or "Ada" not in str(told)


def test_of_groups_that_something_is_taken_from_only_rows_are_told(settings: Settings) -> None:
    rows = copied(settings, "FROM v_groups")
    for name in ("lists", "queries", "effective_queries"):
        assert all(row[name] is None for row in rows), name
    assert all(row["n"] >= K for row in rows)
    scored = copied(settings, "FROM v_history WHERE attribute IS NOT NULL")
    assert {row["lists_undefined"] for row in scored} == {None}
    stored = in_history(settings, "FROM fairness_history WHERE attribute IS NOT NULL")
    assert {row["lists_undefined"] for row in stored} != {None}


def test_tables_that_tell_more_are_not_copied(settings: Settings) -> None:
    there = {row["name"] for row in copied(settings, "SHOW TABLES")}
    assert not there & {table.name for table in (*SUPERSEDED, *COUNTS_OF_HISTORY)}
    assert {view.name for view in VIEWS} <= there
    assert {row["result_hash"] for row in copied(settings, "FROM v_batches")} == {None}


def test_the_store_keeps_everything(settings: Settings) -> None:
    found = in_history(settings, "SELECT count(*) AS n FROM group_history WHERE n < 5")
    assert found[0]["n"] > 0
    assert in_history(settings, "FROM rank_counts LIMIT 1")


@pytest.mark.parametrize("form", ["table", "csv", "jsonl", "json"])
def test_the_history_command_tells_no_more(settings: Settings, form: str) -> None:
    path = settings.folder / "audit.yaml"
    path.write_text(json.dumps(settings.model_dump(mode="json", exclude={"folder"})), "utf-8")
    how = ["--json"] if form == "json" else ["--format", form]
    said = CliRunner().invoke(main, ["history", "--slice", "device", *how, "-c", str(path)])
    assert said.exit_code == 0, said.output
    assert "tablet" not in said.output
    assert "watch" not in said.output
    assert "phone" in said.output
    assert form == "table" or "suppressed" in said.output
    if form == "csv":
        rows = [row for row in csv.DictReader(StringIO(said.output)) if row["attribute"]]
        assert {row["slice_value"] for row in rows if row["value"]} == {"desk"}


def test_no_filter_looks_behind(settings: Settings) -> None:
    assert labelled(settings, "slice_value = 'phone' AND status = 'breach'") == []
    assert labelled(settings, "slice_value = 'phone' AND attribute IS NOT NULL AND value > 0") == []
    assert labelled(settings, "slice_value = 'tablet'") == []
    shown = {(row["slice"], row["slice_value"]) for row in breaches(settings, [DAY])}
    assert ("all", "all") in shown
    assert ("device", "phone") not in shown
    assert verdicts(settings, [DAY])["breach"] > len(breaches(settings, [DAY]))


def test_alerts_are_told_of_what_is_told(settings: Settings) -> None:
    stored = in_history(settings, "FROM alerts")
    assert {row["slice_value"] for row in stored} >= {"all"}
    shown = alerts(settings, every=True)
    assert shown
    assert alerts(settings, batches=[DAY])
    for row in (*shown, *alerts(settings, batches=[DAY, NEXT]), *copied(settings, "FROM alerts")):
        assert row["slice_value"] not in ("phone", "tablet", "watch")
        for name in ("phone", "tablet", "watch"):
            assert name not in row["text"]
    assert any("The same in" in row["text"] for row in stored)
    assert not gated_batches(settings, [DAY])


@pytest.mark.slow
def test_notified_is_what_is_told(tmp_path: Path) -> None:
    told = tmp_path / "told.txt"
    settings = shopping(tmp_path, notify={"command": ["tee", "-a", str(told)]})
    rewrite(settings, "UPDATE alerts SET silent = false")
    sent = send(settings)
    text = told.read_text("utf-8")
    assert sent == len(alerts(settings)) > 0
    assert not [name for name in ("phone", "tablet", "watch") if name in text]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_copy_tells_exactly_what_the_rules_say(tmp_path: Path, seed: int) -> None:
    """So that what holds of the rules holds of the copy."""
    draw = Random(seed)
    tables = Tables(
        tuple(
            List(
                {"device": draw.choice("aabbc"), "shop": draw.choice("xyyyyy")},
                tuple((draw.choice("FFFM"), draw.choice("nnnnnns")) for _ in range(3)),
            )
            for _ in range(40)
        ),
        ("device", "shop"),
        ("gender", "region", "gender*region"),
    )
    rows = [
        ranking(f"q{n}", [gender for gender, _ in each.rows], **each.slices)
        for n, each in enumerate(tables.lists)
    ]
    for each, found in zip(tables.lists, rows, strict=True):
        for row, (_, region) in zip(found, each.rows, strict=True):
            row["region"] = region
    deliver(tmp_path, lists(*rows), batch=DAY)
    settings = audit(
        tmp_path,
        slices=["device", "shop"],
        attributes=["gender", "region", ["gender", "region"]],
        metrics=["EXP", "nDCG"],
        privacy={"min_cell": K},
    )
    run_batch(settings, DAY)
    publish(settings)
    out = hidden(*tables.sizes, K)
    assert out.blocks
    told = {
        (Block(*block), group): n
        for *block, group, n in (tuple(row.values()) for row in copied(settings, _CELLS))
        if n
    }
    assert told == {
        (block, group): number
        for block, groups in tables.cells.items()
        if block not in out.blocks
        for group, (number, _) in groups.items()
    }
    scored = copied(settings, "FROM v_history WHERE attribute IS NOT NULL")
    blocks = {Block(row["slice"], row["slice_value"], row["attribute"]) for row in scored}
    assert blocks == {block for block in tables.cells if block.place not in out.places}
    for row in scored:
        block = Block(row["slice"], row["slice_value"], row["attribute"])
        assert (row["reason"] == "suppressed") == (block in out.blocks)


@pytest.mark.slow
def test_off_nothing_is_left_out(tmp_path: Path) -> None:
    settings = shopping(tmp_path, k=0)
    publish(settings)
    for table in HISTORY_TABLES:
        query = f"SELECT count(*) AS n FROM {table.name}"
        assert copied(settings, query) == in_history(settings, query), table.name
    assert labelled(settings, "slice_value = 'watch'")


@pytest.mark.slow
def test_a_batch_of_too_few_is_left_out(tmp_path: Path) -> None:
    settings = shopping(tmp_path, k=1000)
    publish(settings)
    for name in ("v_history", "v_groups", "v_trends", "v_alerts", "v_gates", "v_change_points"):
        assert copied(settings, f"FROM {name}") == [], name
    for row in copied(settings, "FROM v_batches"):
        assert {row[name] for name in ("lists", "rows_read", "rows_accepted")} == {None}


@pytest.mark.slow
def test_views_keep_their_columns(settings: Settings, tmp_path: Path) -> None:
    plain = shopping(tmp_path, k=0)
    publish(plain)
    for view in VIEWS:
        query = f"DESCRIBE {view.name}"
        one, other = (
            [(row["column_name"], row["column_type"]) for row in copied(each, query)]
            for each in (settings, plain)
        )
        assert one == other, view.name
