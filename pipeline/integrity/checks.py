"""What stands in tables, against the ledger and against other files.

Not here: bytes of files, and the order of the checks (``verify``).
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import duckdb

from pipeline.history.commits import TOLD
from pipeline.history.ledger_state import Told
from pipeline.history.opening import HISTORY_DATABASE
from pipeline.history.result_digests import VERDICT, digest_of, revisions_of, rows_of
from pipeline.settings.labels import JOIN
from pipeline.store.batch_files import info
from schemas.columns import Row, Table, literal, quoted
from schemas.counts import KEPT_COUNTS
from schemas.history import BATCH_INFO, BATCHES, HISTORY, SUPERSEDED
from schemas.monitoring import (
    ALERT_ACTIONS,
    ALERT_BATCHES,
    ALERTS,
    ASSESSMENTS,
    MARKERS,
    MISSING_GROUP,
)
from schemas.scores import FAIRNESS_HISTORY, GROUP_HISTORY


def scan(connection: duckdb.DuckDBPyConnection, database: str) -> int:
    """Read every value of an attached database; returns its rows.  duckdb.Error where one cannot.

    DuckDB compares the checksum of a block when it reads it.
    """
    rows = 0
    for (table,) in connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = ? ORDER BY table_name",
        [database],
    ).fetchall():
        name = f"{quoted(database)}.{quoted(table)}"
        found = connection.execute(
            f"SELECT count(*), bit_xor(hash(every)) FROM {name} AS every"
        ).fetchall()
        rows += found[0][0]
    return rows


def batch_problems(connection: duckdb.DuckDBPyConnection, recorded: Told) -> list[str]:
    """Where the manifest is not what the ledger says."""
    manifest_rows = {row["batch"]: row for row in rows_of(connection, BATCHES, HISTORY_DATABASE)}
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


def revision_problems(
    connection: duckdb.DuckDBPyConnection, recorded: Told
) -> tuple[list[str], int]:
    """Where results, current or superseded, are not those whose digest the ledger has.

    Returns the number of results too.
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
        digest = digest_of(connection, tables, batch, revision)
        if digest != ledger_digest:
            problems.append(f"{name}: its scores or group values were changed")
    problems += [
        f"{batch}, revision {revision}: is gone from the history"
        for batch, revision in sorted(recorded.revisions.keys() - stored_results.keys())
    ]
    return problems, len(stored_results)


def status_problems(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Where statuses are not what the stored gates and alerts make of verdicts of batch files."""
    failed = "EXISTS (FROM history.gates WHERE gates.batch = scores.batch AND NOT passed)"
    names = f"string_split({{}}.attribute, {literal(JOIN)})"
    missing = (
        f"EXISTS (FROM {HISTORY_DATABASE}.{ALERT_BATCHES.name} AS seen "
        f"JOIN {HISTORY_DATABASE}.{ALERTS.name} AS missing USING (alert) "
        "WHERE kind = 'missing' AND seen.batch = scores.batch "
        f"AND list_has_all({names.format('scores')}, {names.format('missing')}))"
    )
    rows = connection.execute(
        f"SELECT DISTINCT batch FROM {HISTORY_DATABASE}.{FAIRNESS_HISTORY.name} AS scores "
        f"JOIN {HISTORY_DATABASE}.{ASSESSMENTS.name} AS done USING (batch) "
        f"WHERE assessed_at IS NOT NULL AND CASE WHEN verdict <> 'not_judged' AND {failed} "
        "THEN status <> 'gated' "
        f"WHEN verdict = 'ok' AND {missing} THEN status <> 'insufficient' "
        f"OR status_reason NOT LIKE '{MISSING_GROUP}: %' "
        "ELSE status <> verdict OR status_reason IS DISTINCT FROM verdict_reason END ORDER BY batch"
    ).fetchall()
    return [f"{batch}: its statuses are not those of its verdicts" for (batch,) in rows]


def people_problems(connection: duckdb.DuckDBPyConnection, told: Told) -> list[str]:
    """Where what people did about alerts, and the releases they marked, is not all there."""
    actions = rows_of(connection, ALERT_ACTIONS, HISTORY_DATABASE)
    marks = rows_of(connection, MARKERS, HISTORY_DATABASE, "source = 'mark'")
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


def alike(
    history: duckdb.DuckDBPyConnection, file: str, batch: str, *, merged: bool
) -> list[str] | None:
    """Tables in which the history differs from an attached batch file.

    None where it holds another result than the file's, unless the file is known to be ``merged``.
    """
    runs = history.execute(
        f"SELECT DISTINCT run_id FROM {HISTORY_DATABASE}.{FAIRNESS_HISTORY.name} WHERE batch = ?",
        [batch],
    ).fetchall()
    if not merged and (info(history)["run_id"],) not in runs:
        return None
    differing = []
    for table in (FAIRNESS_HISTORY, GROUP_HISTORY, *KEPT_COUNTS):
        source = f"(SELECT * {VERDICT} FROM {{}})" if table is FAIRNESS_HISTORY else "{}"
        of_file = f"{quoted(file)}.{table.name}"
        of_history = source.format(f"{HISTORY_DATABASE}.{table.name}")
        names = _shared(history, table, of_file, of_history)
        ours = f"SELECT {names} FROM {of_file}"
        theirs = f"SELECT {names} FROM {of_history} WHERE batch = {literal(batch)}"
        if differ(history, ours, theirs):
            differing.append(table.name)
    of_file, of_history = f"{quoted(file)}.{BATCH_INFO.name}", f"{HISTORY_DATABASE}.{BATCHES.name}"
    names = _shared(history, BATCH_INFO, of_file, of_history)
    # A later attempt without scores has a manifest row of its own.
    done = f"batch = {literal(batch)} AND status = 'done'"
    if differ(
        history,
        f"SELECT {names} FROM {of_file} WHERE EXISTS (FROM {of_history} WHERE {done})",
        f"SELECT {names} FROM {of_history} WHERE {done}",
    ):
        differing.append(BATCHES.name)
    return differing


def _shared(connection: duckdb.DuckDBPyConnection, table: Table, here: str, there: str) -> str:
    """Columns of ``table`` that both have: files of an older version lack some."""
    both = {*connection.sql(f"FROM {here} LIMIT 0").columns} & {
        *connection.sql(f"FROM {there} LIMIT 0").columns
    }
    return ", ".join(quoted(name) for name in table.names if name in both)


def unlike(connection: duckdb.DuckDBPyConnection, one: str, other: str) -> list[str]:
    """Tables and views of two attached databases that differ, by name."""
    tables, other_tables = (
        dict(
            connection.execute(
                "SELECT table_name, list([column_name, data_type] ORDER BY column_index) "
                "FROM duckdb_columns() JOIN duckdb_tables() USING (database_name, table_name) "
                "WHERE database_name = ? GROUP BY ALL",
                [database],
            ).fetchall()
        )
        for database in (one, other)
    )
    views, other_views = (
        dict(
            connection.execute(
                "SELECT view_name, sql FROM duckdb_views() WHERE database_name = ?", [database]
            ).fetchall()
        )
        for database in (one, other)
    )
    differing = {name for name, _ in {*views.items()} ^ {*other_views.items()}}
    for name in tables.keys() | other_tables.keys():
        ours, theirs = (f"FROM {database}.{quoted(name)}" for database in (one, other))
        if tables.get(name) != other_tables.get(name) or differ(connection, ours, theirs):
            differing.add(name)
    return sorted(differing)


def differ(connection: duckdb.DuckDBPyConnection, one: str, other: str) -> bool:
    """Whether two queries give different rows, in whatever order; NULL equals NULL."""
    rows = connection.execute(
        # Of as many rows, none is missing on one side only.
        f"SELECT (SELECT count(*) FROM ({one})) <> (SELECT count(*) FROM ({other})) "
        f"OR EXISTS ({one} EXCEPT ALL {other})"
    ).fetchall()
    return bool(rows[0][0])
