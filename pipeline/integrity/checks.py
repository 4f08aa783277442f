"""What stands in tables of the history, against other files.

Not here: the same against the ledger (``history.proof``), bytes of files, and the order of the
checks (``verify``).
"""

import duckdb

from pipeline.history.opening import HISTORY_DATABASE
from pipeline.history.result_digests import VERDICT
from pipeline.store.batch_files import info
from schemas.columns import Table, literal, quoted
from schemas.counts import KEPT_COUNTS
from schemas.history import BATCH_INFO, BATCHES
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
