"""Many at once: nobody meets a lock, nothing is lost or doubled, readers see whole copies."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from crash_children import Children
from crash_stores import settings_in
from crash_together import (
    DAGSTER,
    HOLDER,
    at_once,
    make_audit,
    process,
    publish_before_a_reader,
    reader,
)
from stores import in_history, read, whole_history

from pipeline.history.manifest import manifest
from pipeline.history.opening import open_history
from pipeline.integrity.verify import verify
from pipeline.publish.copy import publish
from pipeline.runs.batches import backfill
from pipeline.store.paths import store_of

PUBLICATIONS = 4


@pytest.fixture(scope="module")
def children(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Children]:
    """Where commands are run, each in a process of its own."""
    with Children(tmp_path_factory.mktemp("children"), failing=False) as found:
        yield found


def run(batch: str) -> tuple[str, ...]:
    return ("run", "--quiet", "--batch", batch)


def assert_sound(folder: Path) -> None:
    """Nothing is wrong, unfinished or left over."""
    found = verify(settings_in(folder))
    assert (found.problems, found.unfinished) == ([], [])
    root = folder / "store"
    names = {path.name for path in root.iterdir() if path.is_file()}
    # Dagster writes the page; the shell's commands are tried without it.
    known = {"dashboard.duckdb", "history.duckdb", "ledger.jsonl", "seen.json"}
    assert names - {"report.html"} == known
    assert [*(root / "staged").iterdir()] == []


def test_two_runs_of_one_batch(children: Children, tmp_path: Path) -> None:
    (batch,) = make_audit(tmp_path / "audit", 1)
    ended = at_once(children, tmp_path / "audit", [run(batch)] * 2)
    assert [(each.code, each.err) for each in ended] == [(0, ""), (0, "")]
    settings = settings_in(tmp_path / "audit")
    assert manifest(settings)[batch].revision == 1
    assert in_history(settings, "FROM superseded") == []
    assert_sound(tmp_path / "audit")


def test_eight_batches_in_eight_processes(children: Children, tmp_path: Path) -> None:
    batches = make_audit(tmp_path / "together", 8)
    make_audit(tmp_path / "alone", 8)
    ended = at_once(children, tmp_path / "together", [run(batch) for batch in batches])
    assert [(each.code, each.err) for each in ended] == [(0, "")] * 8
    together, alone = (settings_in(tmp_path / name) for name in ("together", "alone"))
    assert {each.status for each in backfill(alone, batches)} == {"done"}
    assert whole_history(together) == whole_history(alone)
    published = read(store_of(together).dashboard, "SELECT DISTINCT batch FROM v_history")
    assert {row["batch"] for row in published} == set(batches)
    assert_sound(tmp_path / "together")


def test_dagster_and_the_shell(children: Children, tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    first, both, last = make_audit(folder, 3)
    children.run(folder, run(first))
    with (
        reader(folder / "store" / "dashboard.duckdb") as seen,
        process(DAGSTER, folder / "audit.yaml", both, last) as dagster,
    ):
        pids = [children.start(folder, run(batch)) for batch in (both, first)]
        out, _ = dagster.communicate("\n", timeout=120)
        ended = [children.wait(pid) for pid in pids]
    assert out.split() == ["True", "True"]
    assert [(each.code, each.err) for each in ended] == [(0, "")] * 2
    assert seen["failures"] == []
    settings = settings_in(folder)
    assert {batch: row.revision for batch, row in manifest(settings).items()} == {
        first: 1,
        both: 1,
        last: 1,
    }
    assert in_history(settings, "FROM superseded") == []
    assert_sound(folder)


def test_a_reader_next_to_publications(children: Children, tmp_path: Path) -> None:
    (batch,) = make_audit(tmp_path / "audit", 1)
    children.run(tmp_path / "audit", run(batch))
    ended, seen = publish_before_a_reader(children, tmp_path / "audit", batch, PUBLICATIONS)
    assert [(each.code, each.err) for each in ended] == [(0, "")] * 2 * PUBLICATIONS
    assert seen["failures"] == []
    assert seen["looks"] > 0
    assert len(seen["seen"]) > 1
    assert_sound(tmp_path / "audit")


def test_a_busy_store_says_who_holds_it(children: Children, tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    first, second = make_audit(folder, 2, busy=0.2)
    children.run(folder, run(first))
    history = folder / "store" / "history.duckdb"
    with process(HOLDER, history) as holder:
        ended = children.run(folder, ("run", "--batch", second))
        assert ended.code == 75
        who = f"in use by process {holder.pid} ("
        waiting, busy = ended.err.replace("\n", " ").split("evenrank: ")
        assert "waiting for history.duckdb" in waiting
        assert who in " ".join(busy.split())
        assert [*(folder / "store" / "staged").iterdir()] == []
    assert list(manifest(settings_in(folder))) == [first]
    assert children.run(folder, run(second)).code == 0
    assert_sound(folder)


def test_threads_of_one_process(tmp_path: Path) -> None:
    batches = make_audit(tmp_path / "audit", 2)
    settings = settings_in(tmp_path / "audit")
    assert {each.status for each in backfill(settings, batches)} == {"done"}

    def work(turn: int) -> int:
        if turn % 3 == 0:
            publish(settings)
        with open_history(settings, read_only=turn % 2 == 0) as connection:
            rows = connection.execute("SELECT count(*) FROM history.batches").fetchall()
            return int(rows[0][0])

    with ThreadPoolExecutor(6) as threads:
        assert [*threads.map(work, range(12))] == [2] * 12
    assert_sound(tmp_path / "audit")
