"""What verify names: whatever is lost, torn, put back, edited or added in a store."""

import json
import os
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import duckdb
import pytest
from cases import some
from command import evenrank
from damaged import DAYS, change, every_byte, forged, put_at
from stores import read, write_settings

from pipeline.errors import StoreBusy
from pipeline.history.ledger import KEPT, Ledger
from pipeline.integrity.verify import verify
from pipeline.runs.batches import run_batch
from pipeline.settings.audit import Settings
from pipeline.store.paths import Store, store_of
from schemas.history import COUNTS_OF_HISTORY
from schemas.scores import FAIRNESS_HISTORY, GROUP_HISTORY

FIRST = f"batch = '{DAYS[0]}'"


def problems(settings: Settings) -> str:
    """Everything that is wrong, as one text."""
    return "\n".join(verify(settings).problems)


@pytest.mark.slow
def test_a_good_store_is_read_and_left_alone(settings: Settings, store: Store) -> None:
    before = every_byte(store.root)
    found = verify(settings)
    assert (found.problems, found.unfinished) == ([], [])
    assert (found.batches, found.revisions, found.files) == (3, 4, 4)
    lines = store.ledger.read_text().splitlines()
    assert found.head == (len(lines), json.loads(lines[-1])["hash"])
    assert found.bytes == sum(
        len(text) for name, (text, _) in before.items() if name.startswith(("batches", "refused"))
    )
    assert every_byte(store.root) == before


CHANGES = {
    "a score": (f"UPDATE fairness_history SET value = value + 1e-12 WHERE {FIRST}", DAYS[0]),
    "a verdict": (f"UPDATE fairness_history SET verdict = 'ok' WHERE {FIRST}", DAYS[0]),
    "a reason": (f"UPDATE fairness_history SET reason = 'none' WHERE {FIRST}", DAYS[0]),
    "an interval": (f"UPDATE fairness_history SET lower = 0 WHERE {FIRST}", DAYS[0]),
    "whose run": (f"UPDATE fairness_history SET run_id = 'me' WHERE {FIRST}", DAYS[0]),
    "a revision": (f"UPDATE fairness_history SET revision = 7 WHERE {FIRST}", "revision 7"),
    "another batch": (
        f"UPDATE fairness_history SET batch = '2026-02-01' WHERE {FIRST}",
        "2026-02-01, revision 1: is in the history, and not in the ledger",
    ),
    "a group": (f"UPDATE group_history SET n = n + 1 WHERE {FIRST}", DAYS[0]),
    "what was replaced": (
        "UPDATE superseded SET value = 0.5",
        f"{DAYS[1]}, revision 1: its scores or group values were changed",
    ),
    "groups replaced": (
        "UPDATE superseded_groups SET value = 0.5",
        f"{DAYS[1]}, revision 1: its scores or group values were changed",
    ),
    "a result removed": (
        "DELETE FROM superseded",
        f"{DAYS[1]}, revision 1: is gone from the history",
    ),
    "a batch removed": (f"DELETE FROM batches WHERE {FIRST}", f"{DAYS[0]}: is gone"),
    "rows read": (
        f"UPDATE batches SET rows_read = 0 WHERE {FIRST}",
        "batches of the history differ",
    ),
    "a status": ("UPDATE batches SET status = 'done'", "the manifest says status done"),
    "an input": (f"UPDATE batches SET input_hash = 'x' WHERE {FIRST}", "says input_hash x"),
    "a batch more": (
        "INSERT INTO batches SELECT * REPLACE ('2026-03-01' AS batch) FROM batches",
        "2026-03-01: is in the history, and not in the ledger",
    ),
    "an action": ("UPDATE alert_actions SET who = 'you'", "alert action"),
    "an action removed": ("DELETE FROM alert_actions", "is gone from the history"),
    "an action more": (
        "INSERT INTO alert_actions SELECT * REPLACE ('you' AS who) FROM alert_actions",
        "is not in the ledger",
    ),
    "a mark": ("UPDATE markers SET text = 'v9' WHERE source = 'mark'", "release marker"),
    "a status shown": (
        "UPDATE fairness_history SET status = 'ok' WHERE status = 'breach'",
        "status",
    ),
}
"""Changes of the history that nobody announced, and what must be said of each."""


TOGETHER = [list(CHANGES)[at::4] for at in range(4)]
"""A look at a store takes as long for one change as for several."""


@pytest.mark.parametrize("names", TOGETHER, ids=lambda names: names[0])
def test_changes_of_the_history_are_named(
    settings: Settings, store: Store, names: list[str]
) -> None:
    # A copy that goes with the changed history would be made by the next run.
    store.dashboard.unlink()
    change(store.history, *(CHANGES[name][0] for name in names))
    found = problems(settings)
    for name in names:
        assert CHANGES[name][1] in found, name


TABLES = (FAIRNESS_HISTORY, GROUP_HISTORY, *COUNTS_OF_HISTORY)


ONE = "WHERE rowid = (SELECT min(rowid) FROM {0})"


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [f"DELETE FROM {{0}} {ONE}", f"INSERT INTO {{0}} FROM {{0}} {ONE}"],
    ids=["removed", "added"],
)
def test_rows_removed_and_added_are_named(settings: Settings, store: Store, statement: str) -> None:
    store.dashboard.unlink()
    filled = [table.name for table in TABLES if read(store.history, f"FROM {table.name} LIMIT 1")]
    assert len(filled) >= len(TABLES) - 3
    change(store.history, *(statement.format(name) for name in filled))
    (text,) = [text for text in verify(settings).problems if text.startswith(f"{DAYS[0]}: f")]
    for name in filled:
        assert name in text


def _replace(store: Store, data: bytes) -> None:
    store.batch(DAYS[0]).write_bytes(data)


def _swap(store: Store) -> None:
    one, other = store.batch(DAYS[0]), store.batch(DAYS[1])
    first = one.read_bytes()
    shutil.copyfile(other, one)
    other.write_bytes(first)


def _instead(store: Store, make: Callable[[Path], object]) -> None:
    path = store.batch(DAYS[0])
    path.unlink()
    make(path)


HARM: dict[str, tuple[Callable[[Store], object], tuple[str, ...]]] = {
    "a file is another": (
        lambda store: change(store.batch(DAYS[0]), "UPDATE fairness_history SET value = 1"),
        (f"{DAYS[0]}.duckdb: its bytes were changed",),
    ),
    "a file is another day's": (
        _swap,
        (f"{DAYS[0]}.duckdb: its bytes were", f"{DAYS[1]}.duckdb: its bytes were"),
    ),
    "a file is empty": (lambda store: _replace(store, b""), ("its bytes were changed",)),
    "a file is gone": (
        lambda store: store.batch(DAYS[0]).unlink(),
        (f"{DAYS[0]}.duckdb: is missing; put it back from a backup",),
    ),
    "a file is a folder": (
        lambda store: _instead(store, Path.mkdir),
        (f"{DAYS[0]}.duckdb: cannot be read: Is a directory",),
    ),
    "a file leads nowhere": (
        lambda store: _instead(store, lambda path: path.symlink_to("nowhere")),
        (f"{DAYS[0]}.duckdb: cannot be read: No such file",),
    ),
    "a file more": (
        lambda store: shutil.copyfile(store.batch(DAYS[0]), store.batch("2026-02-01")),
        ("2026-02-01.duckdb: ledger.jsonl knows of no such batch",),
    ),
    "a log more": (
        lambda store: Path(f"{store.batch(DAYS[0])}.wal").write_bytes(b"\0" * 40),
        (f"{DAYS[0]}.duckdb.wal: does not belong there",),
    ),
    "refused rows": (
        lambda store: os.truncate(store.refused(DAYS[2]), 9_000),
        (f"{DAYS[2]}.duckdb: cannot be",),
    ),
    "refused rows lead nowhere": (
        lambda store: (store.root / "refused" / "x.duckdb").symlink_to("nowhere"),
        ("x.duckdb: cannot be",),
    ),
    "no history": (
        lambda store: store.history.unlink(),
        ("history.duckdb: is missing",),
    ),
    "a history of nothing": (
        lambda store: store.history.write_bytes(b""),
        ("history.duckdb: cannot be opened",),
    ),
    "a history that is none": (
        lambda store: store.history.write_bytes(b"none" * 9000),
        ("history.duckdb: cannot be opened",),
    ),
    "a folder for a history": (
        lambda store: (store.history.unlink(), store.history.mkdir()),
        ("history.duckdb: cannot be",),
    ),
    "half a history": (
        lambda store: os.truncate(store.history, store.history.stat().st_size // 2),
        ("history.duckdb",),
    ),
    "no ledger": (
        lambda store: store.ledger.unlink(),
        ("ledger.jsonl is missing, and the history needs it",),
    ),
    "a folder for a ledger": (
        lambda store: (store.ledger.unlink(), store.ledger.mkdir()),
        ("ledger.jsonl: cannot be read: Is a directory",),
    ),
    "a ledger cut": (
        lambda store: store.ledger.write_bytes(
            b"".join(store.ledger.read_bytes().splitlines(keepends=True)[:-2])
        ),
        ("ledger.jsonl was cut or replaced",),
    ),
    "a ledger edited": (
        lambda store: store.ledger.write_bytes(store.ledger.read_bytes().replace(b"me", b"us", 1)),
        ("ledger.jsonl: line ",),
    ),
    "a copy changed": (
        lambda store: change(store.dashboard, "UPDATE fairness_history SET value = 1"),
        ("dashboard.duckdb: fairness_history",),
    ),
    "a view changed": (
        lambda store: change(
            store.dashboard, "CREATE OR REPLACE VIEW v_groups AS FROM group_history WHERE n > 9"
        ),
        ("dashboard.duckdb: v_groups differ",),
    ),
    "a view more": (
        lambda store: change(store.dashboard, "CREATE VIEW v_more AS SELECT 1 AS one"),
        ("dashboard.duckdb: v_more differ",),
    ),
    "a table less": (
        lambda store: change(store.dashboard, "DROP TABLE trends"),
        ("dashboard.duckdb",),
    ),
    "a copy of another history": (
        lambda store: change(store.dashboard, "UPDATE ledger_head SET line = 999"),
        ("dashboard.duckdb: is no copy of this history",),
    ),
    "a copy that is none": (
        lambda store: store.dashboard.write_bytes(b"none" * 9000),
        ("dashboard.duckdb: cannot be opened",),
    ),
}
"""What happens to files, and what must be said of it."""


@pytest.mark.slow
@pytest.mark.parametrize("name", some(list(HARM), few=6))
def test_harm_to_files_is_named(settings: Settings, store: Store, name: str) -> None:
    harm, said = HARM[name]
    harm(store)
    before = every_byte(store.root)
    found = problems(settings)
    for each in said:
        assert each in found
    assert every_byte(store.root) == before


@pytest.mark.slow
def test_a_file_of_before_is_named(settings: Settings, store: Store, small_store: Settings) -> None:
    old = settings.folder / "old.duckdb"
    shutil.copyfile(store.batch(DAYS[0]), old)
    run_batch(settings, DAYS[0], force=True)
    assert verify(settings).problems == []
    shutil.copyfile(old, store.batch(DAYS[0]))
    assert f"{DAYS[0]}.duckdb: is an old one that was replaced since (line " in problems(settings)


@pytest.mark.slow
def test_an_older_history_and_a_newer_one_are_named(
    settings: Settings, store: Store, small_store: Settings
) -> None:
    run_batch(settings, DAYS[0], force=True)
    newer = store.history.read_bytes()
    shutil.copyfile(store_of(small_store).history, store.history)
    lost = f"lost what lines 29 and later of ledger.jsonl say it holds: {DAYS[0]}"
    assert lost in problems(settings)
    store.history.write_bytes(newer)
    shutil.copyfile(store_of(small_store).ledger, store.ledger)
    assert "ledger.jsonl was cut or replaced: the history is at its line 3" in problems(settings)


@pytest.mark.slow
def test_an_entry_forged_at_the_end_is_named(settings: Settings, store: Store) -> None:
    ledger = Ledger(store.ledger)
    end = ledger.end()
    assert end is not None
    said = {**ledger.read().kept[1], "batch": "2026-02-01", "sha256": "0" * 64}
    facts = {key: said[key] for key in said.keys() - {"event", "after", "line", "hash", "at"}}
    entry = ledger.announce("merge", end.entry["hash"], facts)
    ledger.close(entry, KEPT)
    assert "history.duckdb has lost" in problems(settings)
    put_at(store, entry)
    found = problems(settings)
    for said_of_it in (
        "2026-02-01: is gone from the history",
        "2026-02-01, revision 1: is gone from the history",
        "2026-02-01.duckdb: is missing",
    ):
        assert said_of_it in found


def test_an_entry_that_says_nothing_known_is_no_fault(settings: Settings, store: Store) -> None:
    ledger = Ledger(store.ledger)
    end = ledger.end()
    assert end is not None
    entry = ledger.announce("merge", end.entry["hash"], {"batch": ["what"]})
    ledger.close(entry, KEPT)
    put_at(store, entry)
    assert f"line {entry['line']} of the ledger says what no run has written" in problems(settings)


@pytest.mark.slow
def test_a_ledger_written_anew_is_told_by_a_line_noted_before(
    settings: Settings, store: Store
) -> None:
    noted = json.loads(store.ledger.read_text().splitlines()[10])["hash"]
    assert verify(settings, expect=noted).problems == []
    at = next(line["line"] for line in Ledger(store.ledger).read().kept if line["event"] == "mark")
    marker = {"batch": DAYS[1], "text": "v9", "source": "mark", "created_at": "2026-01-01T00:00:00"}
    forged(store, at, marker=marker)
    change(
        store.history,
        "UPDATE markers SET text = 'v9', created_at = '2026-01-01' WHERE source = 'mark'",
    )
    store.dashboard.unlink()
    assert verify(settings).problems == []
    forged(store, 1, actions=[])
    assert verify(settings, expect=noted).problems == []
    forged(store, 1, at=datetime.now().isoformat())
    assert verify(settings, expect=noted).problems == [
        f"{store.ledger}: has no line {noted}: lines were removed"
    ]


def test_a_store_of_nothing_is_fine(tmp_path: Path, small_store: Settings) -> None:
    found = verify(small_store.model_copy(update={"folder": tmp_path}))
    assert (found.problems, found.files, found.head) == ([], 0, None)


def test_a_busy_store_is_not_looked_at(settings: Settings, store: Store) -> None:
    with duckdb.connect(str(store.history)), pytest.raises(StoreBusy):
        verify(settings)


@pytest.fixture
def config(settings: Settings) -> Path:
    """The same audit as the command finds it."""
    return write_settings(
        settings.folder,
        "attributes: [gender]\nslices: [device]\nmetrics: [EXP, NDKL, IAA]\n"
        "thresholds: {EXP.MinMaxRatio: {min: 1.0}}\n",
    )


@pytest.mark.slow
def test_the_command_says_all_is_well(config: Path, store: Store) -> None:
    result = evenrank("verify", "--config", config)
    assert result.exit_code == 0, result.output
    assert "nothing is lost, torn or changed" in result.stdout
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    quiet = evenrank("verify", "--quiet", "--config", config)
    assert (quiet.exit_code, quiet.output) == (0, "")
    said = json.loads(evenrank("verify", "--json", "--config", config).stdout.splitlines()[-1])
    assert said["ok"] is True
    assert said["problems"] == said["unfinished"] == []
    assert said["head"][1] == json.loads(store.ledger.read_text().splitlines()[-1])["hash"]


@pytest.mark.slow
def test_the_command_names_what_is_wrong(config: Path, store: Store) -> None:
    store.batch(DAYS[0]).unlink()
    result = evenrank("verify", "--quiet", "--json", "--config", config)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"evenrank: {store.batch(DAYS[0])}: is missing")
    said = json.loads(result.stdout)
    assert (said["ok"], len(said["problems"])) == (False, 1)
    assert evenrank("verify", "--expect", "f" * 64, "--config", config).exit_code == 1


def test_the_command_without_a_store_and_with_a_busy_one(config: Path, store: Store) -> None:
    with duckdb.connect(str(store.history)):
        busy = evenrank("verify", "--config", config)
    assert (busy.exit_code, "in use by" in busy.stderr) == (75, True)
    assert evenrank("verify", "--batch", DAYS[0], "--config", config).exit_code == 2
    shutil.rmtree(store.root)
    absent = evenrank("verify", "--config", config)
    assert (absent.exit_code, "there is no store yet" in absent.stderr) == (4, True)
    assert not store.root.exists()
