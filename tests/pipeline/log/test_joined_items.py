"""How many rows join the item table, why others do not, and where that is kept."""

from pathlib import Path
from typing import Any

import duckdb
import pytest
from damaged import of_before
from histories import rewrite
from stores import DAY, Row, Rows, audit, deliver, in_batch, in_history, ranking, write_csv

from pipeline.history.manifest import manifest
from pipeline.integrity.rebuild import rebuild
from pipeline.integrity.verify import verify
from pipeline.log.ingest import Ingested
from pipeline.monitoring.assess import assess
from pipeline.privacy.hashed_ids import keyed_hash
from pipeline.runs.batches import run_batch
from pipeline.runs.in_memory import check_files
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of

LOOSE = {"max_rejected_share": 0.99}


def shown(list_id: str, items: list[str], **more: Any) -> Rows:
    """A list of some items, whose log does not say their group."""
    rows = ranking(list_id, ["-"] * len(items), item_id=items, **more)
    return [{name: value for name, value in row.items() if name != "gender"} for row in rows]


def item_table(folder: Path, *ids: str) -> Path:
    rows = [{"item_id": each, "gender": "FM"[at % 2]} for at, each in enumerate(ids)]
    return write_csv(folder / "items.csv", rows)


def checked(folder: Path, rows: Rows, *ids: str, **said: Any) -> Ingested:
    """What becomes of rows beside an item table with these ids, without a store."""
    path = write_csv(folder / "checked.csv", rows)
    return check_files(audit(folder, rejects=LOOSE, **said), [path], item_table(folder, *ids))


def joined(settings: Settings) -> Row:
    (row,) = in_history(settings, "SELECT status, rows_joined, ids_differ_in FROM batches")
    return row


# -- the number


def test_rows_are_counted_not_items(tmp_path: Path) -> None:
    rows = [*shown("a", ["x", "y"]), *shown("b", ["x", "z"]), *shown("c", ["x", "never"])]
    found = checked(tmp_path, rows, "x", "y", "shown nowhere")
    assert (found.rows_accepted, found.rows_joined, found.ids_differ_in) == (6, 4, None)


def test_rows_that_were_looked_at_closely_and_those_that_were_not(tmp_path: Path) -> None:
    """Lists that are dropped, let in after a look, out of order, or with an item twice."""
    bad, twice = shown("bad", ["x", "y"]), shown("twice", ["x", "x"])
    bad[0]["rank"] = 0
    apart = [row for pair in zip(shown("a", ["x", "n"]), shown("b", ["x", "y"]), strict=True)
             for row in pair]  # fmt: skip
    found = checked(tmp_path, [*apart, *bad, *twice, *shown("c", ["y", "m"])], "x", "y")
    assert (found.rows_accepted, found.rows_joined) == (6, 4)
    found = checked(tmp_path, [*apart, *bad, *twice], "x", "y")
    assert (found.rows_accepted, found.rows_joined) == (4, 3)
    one = shown("one", ["n", "x"])
    one[0]["relevance"] = 7
    dropping = {"policy": "drop_row", **LOOSE}
    path = write_csv(tmp_path / "log.csv", [*apart, *one])
    found = check_files(audit(tmp_path, rejects=dropping), [path], item_table(tmp_path, "x", "y"))
    assert (found.rows_accepted, found.rows_joined) == (5, 4)


def test_an_item_without_a_group_is_in_the_table_all_the_same(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "log.csv", shown("a", ["x", "y"]))
    items = write_csv(tmp_path / "items.csv", [{"item_id": "x", "gender": ""}])
    found = check_files(audit(tmp_path), [path], items)
    assert (found.rows_joined, found.unknown_rows) == (1, {"gender": 2})


def test_nothing_is_joined_where_no_attribute_comes_from_an_item_table(tmp_path: Path) -> None:
    """The log's own groups come first, and a table that nothing is taken from may be any."""
    deliver(tmp_path, ranking("a", "FM"))
    settings = audit(tmp_path)
    assert run_batch(settings, DAY).status == "done"
    assert joined(settings) == {"status": "done", "rows_joined": None, "ids_differ_in": None}
    assert in_history(settings, "FROM gates") == []
    path = write_csv(tmp_path / "log.csv", ranking("a", "FM"))
    found = check_files(audit(tmp_path), [path], item_table(tmp_path, "other"))
    assert (found.rows_joined, found.notes) == (None, ())


# -- why few join


@pytest.mark.parametrize(
    ("logged", "held", "differ"),
    [
        ("3.0", "3", "decimals"),
        ("3", "3.00", "decimals"),
        ("7", "007", "zeros"),
        (" x", "x", "spaces"),
        ("x", "x\u00a0", "spaces"),
        ("Ab", "aB", "case"),
        ("07.0", " 7", "several"),
        ("3.5", "3", None),
        ("q", "z", None),
        ("10", "1", None),
    ],
)
def test_what_ids_differ_in(tmp_path: Path, logged: str, held: str, differ: str | None) -> None:
    found = checked(tmp_path, shown("a", [logged]), held)
    assert (found.rows_joined, found.ids_differ_in) == (0, differ)
    (note,) = found.notes
    assert note.startswith("1 of 1 rows name an item that items.csv does not hold")
    assert ("ids differ" in note) == (differ is not None)


def test_what_explains_few_of_them_is_no_cause(tmp_path: Path) -> None:
    found = checked(tmp_path, shown("a", ["3.0", "p", "q", "r"]), "3")
    assert (found.rows_joined, found.ids_differ_in) == (0, None)


def test_a_few_new_items_are_no_news(tmp_path: Path) -> None:
    ids = [f"i{at}" for at in range(9)]
    found = checked(tmp_path, shown("a", [*ids, "I0"]), *ids)
    assert (found.rows_joined, found.ids_differ_in, found.notes) == (9, None, ())
    half = checked(tmp_path, shown("a", ["x", "new"]), "x")
    assert (half.rows_joined, half.notes) == (1, ())
    # What somebody could mend is told of any day on which more than a few do not join.
    (note,) = checked(tmp_path, shown("a", ["x", "y", "Z"]), "x", "y", "z").notes
    assert note.startswith("1 of 3 rows name")


def test_ids_are_quoted_only_where_the_settings_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENRANK_KEY", "sixteen bytes or more")
    rows = shown("a", ["anna@example.org"])
    (note,) = checked(tmp_path, rows, "x").notes
    assert "anna" not in note
    (note,) = checked(tmp_path, rows, "x", privacy={"show_values": True}).notes
    assert note.endswith("; one is 'anna@example.org'")
    hashed = {"show_values": True, "hash_ids": "item_id"}
    found = checked(tmp_path, rows, "x", privacy=hashed)
    assert "anna" not in found.notes[0]
    assert keyed_hash(b"sixteen bytes or more", "anna@example.org") not in found.notes[0]
    # Ids join as they are delivered, whatever becomes of them.
    assert checked(tmp_path, rows, "anna@example.org", privacy=hashed).rows_joined == 1


# -- where it is kept


@pytest.fixture
def dead(tmp_path: Path) -> Settings:
    """A day of which nothing joins."""
    item_table(tmp_path, "3", "4")
    deliver(tmp_path, shown("a", ["3.0", "4.0"]))
    return audit(tmp_path, items="items.csv", thresholds={"EXP.MinMaxRatio": {"min": 0.8}})


def test_file_and_history_have_it(dead: Settings) -> None:
    assert run_batch(dead, DAY).status == "done"
    kept = {"rows_joined": 0, "ids_differ_in": "decimals"}
    assert joined(dead) == {"status": "done", **kept}
    assert in_batch(dead, "SELECT rows_joined, ids_differ_in FROM batch_info") == [kept]
    run_batch(dead, DAY, from_counts=True, force=True)
    assert joined(dead) == {"status": "done", **kept}


@pytest.mark.slow
def test_a_later_attempt_that_gives_no_scores_opens_no_gate(dead: Settings) -> None:
    run_batch(dead, DAY)
    deliver(dead.folder, [{**row, "rank": 0} for row in shown("a", ["3", "4"])])
    assert run_batch(dead, DAY).status == "refused"
    kept = {"status": "refused", "rows_joined": 0, "ids_differ_in": "decimals"}
    assert joined(dead) == kept
    assess(dead, [DAY])
    assert in_history(dead, "SELECT gate, passed FROM gates") == [
        {"gate": "joined", "passed": False}
    ]
    assert verify(dead).problems == []
    for former in (True, False):
        if not former:
            store_of(dead).history.unlink()
        rebuild(dead)
        assess(dead)
        assert joined(dead) == kept
        assert verify(dead).problems == []


@pytest.mark.slow
def test_a_store_of_before_is_read_and_nothing_is_made_up(dead: Settings) -> None:
    """Files without the columns: they say nothing of how many rows joined."""
    run_batch(dead, DAY)
    with duckdb.connect(str(store_of(dead).history)) as connection:
        for table in ("rows_joined", "ids_differ_in"):
            connection.execute(f"ALTER TABLE batches DROP COLUMN {table}")
        connection.execute("DELETE FROM gates")
        connection.execute("UPDATE fairness_history SET status = verdict, status_reason = NULL")
    of_before(store_of(dead))
    assert manifest(dead)[DAY].rows_joined is None
    assert verify(dead).problems == []
    assess(dead, [DAY])
    assert joined(dead) == {"status": "done", "rows_joined": None, "ids_differ_in": None}
    assert in_history(dead, "FROM gates") == []
    run_batch(dead, DAY, force=True)
    assert joined(dead)["rows_joined"] == 0
    assert in_history(dead, "SELECT gate FROM gates WHERE NOT passed") == [{"gate": "joined"}]


def test_a_cause_that_nobody_knows_is_left_out(dead: Settings) -> None:
    """A store of a later version, or one that somebody edited."""
    run_batch(dead, DAY)
    rewrite(dead, "UPDATE batches SET ids_differ_in = 'moon'")
    assess(dead, [DAY])
    (gate,) = in_history(dead, "SELECT text FROM gates")
    assert gate["text"].endswith("the limit is 50%")
