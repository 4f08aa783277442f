"""Whether the history holds what the ledger says, asked before anything is built on it.

Where the files are as they were when that was last proven, nothing is read again.  Where they are
not - somebody wrote to them, they were copied, a process was killed before it could take note -
all that the history holds is digested and compared, once.

Not here: bytes of batch files as a whole, and comparing them with the history (``integrity``).
"""

from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import duckdb

from pipeline.errors import StoreDamaged, several
from pipeline.history.holdings import PARTS, all_holdings
from pipeline.history.ledger import End, Ledger
from pipeline.history.ledger_state import TOLD, Told, told_by
from pipeline.history.result_digests import digest_of, revisions_of, rows_of
from pipeline.settings.labels import JOIN
from pipeline.store.files import file_digest
from pipeline.store.paths import Store
from pipeline.store.seen import is_seen, note, seen, stamp
from pipeline.store.sessions import first_line
from schemas.columns import Row, literal
from schemas.history import BATCHES, HISTORY, HISTORY_TABLES, SUPERSEDED
from schemas.monitoring import (
    ALERT_ACTIONS,
    ALERT_BATCHES,
    ALERTS,
    ASSESSMENTS,
    GATES,
    MARKERS,
    MISSING_GROUP,
)
from schemas.scores import FAIRNESS_HISTORY

_NAMED = 5
"""Differences that a refusal names: `evenrank verify` names all."""


def note_history(store: Store, head: str, *, vouched: bool) -> None:
    """Note that history and ledger are right as they lie there, by whoever holds the lock.

    ``vouched``: the ledger has digests of all that the history holds.
    """
    note(store, *_files(store), head=head, vouched=vouched)


def _files(store: Store) -> tuple[Path, ...]:
    # What was committed lies in the write-ahead log until a checkpoint.
    return store.history, store.history.with_name("history.duckdb.wal"), store.ledger


def prove(
    connection: duckdb.DuckDBPyConnection, store: Store, head: str | None, end: End | None
) -> bool:
    """Whether the ledger has digests of all that the attached history, at ``head``, holds.

    StoreDamaged names what is not as the ledger says; nothing is written then.  A history that no
    entry of a ledger is about yet is taken as it is, and asks for none.
    """
    if head is None or end is None:
        return True
    vouched = seen(store, store.history).get("vouched")
    if is_seen(store, *_files(store), head=head, vouched=vouched):
        return vouched is True
    record = Ledger(store.ledger).read()
    advice = (
        "Nothing was changed, nothing was published.\n"
        "  `evenrank verify` tells all of it, `evenrank rebuild` makes the history again from\n"
        "  the batch files, and `evenrank restore` puts back a backup."
    )
    if record.problems:
        raise _damaged(f"{store.ledger} was changed", record.problems, advice)
    recorded = told_by(record.up_to(head))
    try:
        problems, _ = history_problems(connection, recorded)
    except duckdb.Error as error:
        # A block that is damaged, or a table that somebody gave other columns.
        problems = [f"cannot be read: {first_line(error)}"]
    if problems:
        raise _damaged(f"{store.history} is not what {store.ledger.name} says", problems, advice)
    note_history(store, head, vouched=recorded.vouched)
    return recorded.vouched


def _damaged(head: str, problems: list[str], advice: str) -> StoreDamaged:
    more = len(problems) - _NAMED
    shown = problems[:_NAMED] + ([f"and {more:,} more"] if more > 0 else [])
    return StoreDamaged(several(head, shown, advice))


def check_batch_file(store: Store, batch: str, *, noting: bool = True) -> str | None:
    """The digest of the file of a batch; None where there is no file, or no ledger to know it.

    StoreDamaged where it is not the one that the ledger vouches for.

    Only who holds the history's lock can rely on it for longer than a moment.  ``noting``: what was
    read is noted, so that it need not be read again.
    """
    path, ledger = store.batch(batch), Ledger(store.ledger)
    end = ledger.end()
    if end is None or not path.exists():
        return None
    noted = seen(store, path).get("sha256")
    if is_seen(store, path, sha256=noted):
        return str(noted)
    since = [stamp(path)]
    said = told_by(ledger.read().kept).current.get(batch)
    own = file_digest(path)
    if own != said:
        why = "was changed" if said else "is none that a run has put there"
        raise StoreDamaged(
            f"{path}: {why}; put it back from a backup, or run the batch again from its logs with "
            "--force. `evenrank verify` looks at all files"
        )
    if noting:
        note(store, path, since=since, sha256=own)
    return own


def history_problems(
    connection: duckdb.DuckDBPyConnection, recorded: Told, *, twice: bool = False
) -> tuple[list[str], int]:
    """Where the attached history is not what the ledger says, each a text; and its results.

    ``twice``: current results that are digested with all else are also held against the digest
    that is published.
    """
    vouched = {batch for batch, digest in recorded.holds.get("results", {}).items() if digest}
    problems, results = _revision_problems(connection, recorded, but=() if twice else vouched)
    problems = [
        *_batch_problems(connection, recorded),
        *problems,
        *status_problems(connection),
        *_holding_problems(connection, recorded),
        *_strange_problems(connection),
        *_people_problems(connection, recorded),
    ]
    return problems, results


def _strange_problems(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Where the history holds tables, views or columns that no run has made.

    What a newer version made is strange as well: this one cannot tell what it says.
    """
    own = {table.name: {*table.names} for table in HISTORY_TABLES}
    there: dict[str, set[str]] = {}
    for table, column in connection.execute(
        "SELECT table_name, column_name FROM duckdb_columns() "
        "WHERE database_name = 'history' AND NOT internal"
    ).fetchall():
        there.setdefault(table, set()).add(column)
    return [
        f"{table}: is no table of a history"
        if table not in own
        else f"{table}: has columns that no run has made: {', '.join(sorted(columns - own[table]))}"
        for table, columns in sorted(there.items())
        if not columns <= own.get(table, set())
    ]


def _holding_problems(connection: duckdb.DuckDBPyConnection, recorded: Told) -> list[str]:
    """Where digests of what the history holds are not those that the ledger has."""
    problems = []
    here = all_holdings(connection)
    for name in PARTS:
        # Of a part that holds nothing any more, nothing is digested.
        found, said = here.get(name, {}), recorded.holds.get(name, {})
        keys = said.keys() | (found.keys() if recorded.vouched else set())
        problems += [
            f"{'alert ' if PARTS[name].by == 'alert' else ''}{key}: {PARTS[name].text} changed"
            for key in sorted(keys)
            if said.get(key) != found.get(key)
        ]
    return problems


def _batch_problems(connection: duckdb.DuckDBPyConnection, recorded: Told) -> list[str]:
    """Where the manifest is not what the ledger says."""
    manifest_rows = {row["batch"]: row for row in rows_of(connection, BATCHES, "history")}
    problems = []
    for batch, ledger_row in recorded.batches.items():
        row = manifest_rows.get(batch)
        if row is None:
            line = ledger_row["line"]
            problems.append(f"{batch}: is gone from the history (line {line} of the ledger)")
            continue
        for name in TOLD:
            if ledger_row.get(name) is not None and ledger_row[name] != row.get(name):
                problems.append(
                    f"{batch}: the manifest says {name} {row.get(name)}, "
                    f"line {ledger_row['line']} of the ledger {ledger_row[name]}"
                )
    problems += [
        f"{batch}: is in the history, and not in the ledger"
        for batch in sorted(manifest_rows.keys() - recorded.batches.keys())
    ]
    return problems


def _revision_problems(
    connection: duckdb.DuckDBPyConnection, recorded: Told, *, but: Collection[str] = ()
) -> tuple[list[str], int]:
    """Where results, current or superseded, are not those whose digest the ledger has.

    Returns the number of results too.  Current results of the batches ``but`` need only be there.
    """
    stored_results = {
        key: (table, f"{key[0]}, revision {key[1]}")
        for tables in (SUPERSEDED, HISTORY)
        for table in [tables]
        for key in revisions_of(connection, tables[0])
    }
    problems = []
    for (batch, revision), (tables, name) in sorted(stored_results.items()):
        ledger_digest = recorded.revisions.get((batch, revision))
        if ledger_digest is None:
            if (batch, revision) not in recorded.revisions and recorded.from_the_start:
                problems.append(f"{name}: is in the history, and not in the ledger")
            continue
        if tables is HISTORY and batch in but:
            continue
        digest = digest_of(connection, tables, batch, revision)
        if digest != ledger_digest:
            problems.append(f"{name}: its scores or group values were changed")
    problems += [
        f"{batch}, revision {revision}: is gone from the history"
        for batch, revision in sorted(recorded.revisions.keys() - stored_results.keys())
    ]
    return problems, len(stored_results)


def status_problems(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Where statuses are not what the stored gates and alerts make of verdicts of batch files.

    None in a history of an older version, which lacks what tells.
    """
    if not _tells_statuses(connection):
        return []
    failed = "EXISTS (FROM history.gates WHERE gates.batch = scores.batch AND NOT passed)"
    names = f"string_split({{}}.attribute, {literal(JOIN)})"
    missing = (
        f"EXISTS (FROM history.{ALERT_BATCHES.name} AS seen "
        f"JOIN history.{ALERTS.name} AS missing USING (alert) "
        "WHERE kind = 'missing' AND seen.batch = scores.batch "
        f"AND list_has_all({names.format('scores')}, {names.format('missing')}))"
    )
    rows = connection.execute(
        f"SELECT DISTINCT batch FROM history.{FAIRNESS_HISTORY.name} AS scores "
        f"JOIN history.{ASSESSMENTS.name} AS done USING (batch) "
        f"WHERE assessed_at IS NOT NULL AND CASE WHEN verdict <> 'not_judged' AND {failed} "
        "THEN status <> 'gated' "
        f"WHEN verdict = 'ok' AND {missing} THEN status <> 'insufficient' "
        f"OR status_reason NOT LIKE '{MISSING_GROUP}: %' "
        "ELSE status <> verdict OR status_reason IS DISTINCT FROM verdict_reason END ORDER BY batch"
    ).fetchall()
    return [f"{batch}: its statuses are not those of its verdicts" for (batch,) in rows]


def _tells_statuses(connection: duckdb.DuckDBPyConnection) -> bool:
    there = {
        *connection.execute(
            "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = 'history'"
        ).fetchall()
    }
    needed = [(table.name, "batch") for table in (GATES, ALERT_BATCHES, ASSESSMENTS)]
    told = [(FAIRNESS_HISTORY.name, name) for name in ("verdict_reason", "status_reason")]
    return there.issuperset([*needed, *told])


def _people_problems(connection: duckdb.DuckDBPyConnection, told: Told) -> list[str]:
    """Where what people did about alerts, and the releases they marked, is not all there."""
    actions = rows_of(connection, ALERT_ACTIONS, "history")
    marks = rows_of(connection, MARKERS, "history", "source = 'mark'")
    whole = told.from_the_start
    return [
        *_missing("alert action", actions, told.actions, whole),
        *_missing("release marker", marks, told.marks, whole),
    ]


def _missing(what: str, there: Iterable[Row], said: Iterable[Row], whole: bool) -> list[str]:
    here, wanted = (Counter(map(_plain, rows)) for rows in (there, said))
    problems = [f"{what} {_words(row)}: is gone from the history" for row in wanted - here]
    if whole:
        problems += [f"{what} {_words(row)}: is not in the ledger" for row in here - wanted]
    return problems


def _plain(row: Row) -> tuple[tuple[str, Any], ...]:
    """A row of a table, or of the ledger, which writes times as text."""
    return tuple(
        sorted(
            (name, value.isoformat() if hasattr(value, "isoformat") else value)
            for name, value in row.items()
        )
    )


def _words(row: tuple[tuple[str, Any], ...]) -> str:
    return " ".join(str(value) for _, value in row if value is not None)
