"""Audits whose store is to be harmed, and hands that harm it as somebody who knows it would."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
from stores import audit, deliver, random_lists, read

from pipeline.history.ledger import Ledger, digest
from pipeline.monitoring.alerts import act, alerts, mark
from pipeline.publish.copy import publish
from pipeline.runs.batches import run_batch
from pipeline.settings.audit import Settings
from pipeline.store.files import file_digest
from pipeline.store.paths import Store
from schemas.columns import Table, quoted
from schemas.history import HISTORY_TABLES

DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")
SAID = {
    "slices": ["device"],
    "metrics": ["EXP", "NDKL", "IAA"],
    "thresholds": {"EXP.MinMaxRatio": {"min": 1.0}},
}
TIMES = {"replaced_at", "assessed_at", "started_at", "finished_at", "peak_memory"}
"""Columns that say when something was done, which no file and no ledger repeats."""
Rows = list[dict[str, Any]]


def small_settings(folder: Path, **more: Any) -> Settings:
    return audit(folder, **{**SAID, **more})


def small_audit(folder: Path, **more: Any) -> Settings:
    """Three days, the second computed twice; a refused delivery, an alert and a release."""
    settings = small_settings(folder, **more)
    for seed, day in enumerate(DAYS, 1):
        deliver(folder, random_lists(seed, 8), batch=day)
        assert run_batch(settings, day).status == "done"
    deliver(folder, random_lists(9, 8), batch=DAYS[1])
    assert run_batch(settings, DAYS[1]).revision == 2
    deliver(folder, [{**row, "rank": 0} for row in random_lists(3, 8)], batch=DAYS[2])
    assert run_batch(settings, DAYS[2]).status == "refused"
    act(settings, [alerts(settings)[0]["alert"]], "ack", who="me", note="seen")
    mark(settings, DAYS[1], "model v2")
    publish(settings)
    return settings


def change(path: Path, *statements: str) -> None:
    """Do something to a database that nobody announced."""
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)


def contents(path: Path, tables: Iterable[Table] = HISTORY_TABLES) -> dict[str, Rows]:
    """Rows of every table, in order, without the times in them."""
    return {
        table.name: read(
            path,
            f"SELECT {', '.join(quoted(n) for n in table.names if n not in TIMES)} "
            f"FROM {table.name} ORDER BY ALL",
        )
        for table in tables
    }


def forged(store: Store, line: int, **other: Any) -> None:
    """Let a line of the ledger say something else, and mend all hashes after it.

    Digests of what the history holds are gone from it on, unless it says what it said.
    """
    lines = [json.loads(text) for text in store.ledger.read_bytes().splitlines()]
    if not other or lines[line - 1] != lines[line - 1] | other:
        lines[line - 1] |= other
        for each in lines[line - 1 :]:
            each.pop("holds", None)
    renamed: dict[str | None, str] = {}
    before = None
    for each in lines:
        old = each["hash"]
        each["previous"] = before
        if "after" in each:
            each["after"] = renamed.get(each["after"], each["after"])
        before = each["hash"] = renamed[old] = digest(each)
    store.ledger.write_bytes(b"".join(map(_written, lines)))
    if store.history.exists():
        end = Ledger(store.ledger).end()
        assert end is not None
        put_at(store, end.entry)


def put_at(store: Store, entry: dict[str, Any]) -> None:
    """Let the history say that it is at ``entry``."""
    line, hash_of_it = entry["line"], entry["hash"]
    change(store.history, f"UPDATE ledger_head SET line = {line}, hash = '{hash_of_it}'")


def _written(line: dict[str, Any]) -> bytes:
    return json.dumps(line, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def every_byte(root: Path, *, noted: bool = True) -> dict[str, tuple[bytes, int]]:
    """Contents and time of every file below a folder, by name.

    Without ``noted``: but for what the store notes of files whose contents it looked at.
    """
    return {
        str(path.relative_to(root)): (path.read_bytes(), os.stat(path).st_mtime_ns)
        for path in sorted(root.rglob("*"))
        if path.is_file() and (noted or path.name != "seen.json")
    }


def quietly(path: Path, *statements: str) -> None:
    """``change``, and put the times of the file back to what they were."""
    times = path.stat()
    change(path, *statements)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def vouched_for(store: Store, batch: str) -> None:
    """Let the ledger say that the file of a batch is the one that lies there."""
    last = [line for line in Ledger(store.ledger).read().kept if line.get("batch") == batch][-1]
    forged(store, last["line"], sha256=file_digest(store.batch(batch)))


def of_before(store: Store) -> None:
    """Let a store be one of a version whose ledger had no digests of what the history holds."""
    store.seen.unlink(missing_ok=True)
    forged(store, 1)
