"""Stored numbers computed again, from stored rows, under the settings of then, and compared.

Not here: replacing any of them, which takes a run (``runs``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shutil import copyfile
from typing import Any

import duckdb

from pipeline.errors import AuditError, NoData, SettingsError
from pipeline.integrity.checks import differ
from pipeline.integrity.verify import Progress
from pipeline.runs.steps import measure_batch, score_batch
from pipeline.scores.digests import OF_RUNS
from pipeline.settings.audit import Settings
from pipeline.settings.load import deciding_as
from pipeline.store.batch_files import info, new_run_id, opened
from pipeline.store.checkpoints import remove_database
from pipeline.store.paths import Store, store_of
from pipeline.store.sessions import attach, first_line, working
from pipeline.version import code_version
from schemas.columns import Table, quoted
from schemas.counts import COUNT_TABLES, bucket_counts, bucket_lengths
from schemas.scores import FAIRNESS_HISTORY, GROUP_HISTORY
from schemas.stored_log import LOG_ROWS

_SHOWN = 10  # numbers that are named: every number of a day may differ
_STORED, _AGAIN = "batch", "again"


@dataclass(frozen=True)
class Recomputed:
    """What computing a batch again gave.

    ``same``: every number, to the last bit.  ``from_rows``: its counts were made again too; not
    where its rows have been removed.  ``differences`` say what differs, in words.
    """

    batch: str
    same: bool
    from_rows: bool = False
    differences: tuple[str, ...] = ()


def recompute(
    settings: Settings, batches: Sequence[str], progress: Progress = lambda done, of: None
) -> Iterator[Recomputed]:
    """Compute ``batches`` again, all that have a file if there are none; the store stays as it is.

    NoData names batches without a file.
    """
    store = store_of(settings)
    stored_batches = sorted(path.stem for path in (store.root / "batches").glob("*.duckdb"))
    absent = [batch for batch in batches if not store.batch(batch).exists()]
    if absent:
        raise NoData(f"{', '.join(absent)}: no batch file to compute it from")
    every = list(batches) or stored_batches
    for at, batch in enumerate(every):
        progress(at, len(every))
        try:
            yield _recomputed(settings, store, batch)
        except AuditError as error:
            yield Recomputed(batch, same=False, differences=(str(error),))
        except duckdb.Error as error:
            difference = f"{store.batch(batch)}: cannot be read: {first_line(error)}"
            yield Recomputed(batch, same=False, differences=(difference,))
        except (ArithmeticError, LookupError, ValueError) as error:
            # Rows that no reader let in: the file was changed.
            difference = f"{store.batch(batch)}: what it holds cannot be computed: {error}"
            yield Recomputed(batch, same=False, differences=(difference,))


def _recomputed(settings: Settings, store: Store, batch: str) -> Recomputed:
    path, run_id = store.batch(batch), new_run_id()
    with opened(settings, path, read_only=True) as connection:
        row = info(connection)
        from_rows = _has_rows(connection)
    settings_then, differences = _settings_of_then(settings, row)
    code_now = code_version()
    if row["code_version"] != code_now:
        differences.append(f"code: {row['code_version']} then, {code_now} now")
    again = store.staged(batch, run_id)
    try:
        # A file that somebody changed is computed as well, to tell what was changed.
        copyfile(path, again)
        if from_rows:
            measure_batch(settings_then, batch, run_id)
        score_batch(settings_then, batch, run_id)
        with working(settings, [path.parent, again.parent]) as connection:
            attach(connection, path, _STORED, read_only=True, patience=settings.busy_seconds)
            attach(connection, again, _AGAIN, read_only=True)
            counts = _counts_differing(connection, settings_then) if from_rows else []
            numbers = [
                text
                for table in (FAIRNESS_HISTORY, GROUP_HISTORY)
                for text in _numbers_differing(connection, table)
            ]
    finally:
        remove_database(again)
    if not counts and not numbers:
        return Recomputed(batch, same=True, from_rows=from_rows)
    if counts:
        differences.append(f"counts: {', '.join(counts)}")
    differences += numbers[:_SHOWN]
    if len(numbers) > _SHOWN:
        differences.append(f"and {len(numbers) - _SHOWN:,} more numbers")
    return Recomputed(batch, same=False, from_rows=from_rows, differences=tuple(differences))


def _has_rows(connection: duckdb.DuckDBPyConnection) -> bool:
    try:
        rows = connection.execute(f"SELECT EXISTS (FROM {_STORED}.{LOG_ROWS.name})").fetchall()
    except duckdb.CatalogException:
        raise AuditError(
            "its rows are stored as an older version did, which this one cannot count"
        ) from None
    return bool(rows[0][0])


def _settings_of_then(settings: Settings, row: dict[str, Any]) -> tuple[Settings, list[str]]:
    """The settings that the batch was computed under, and how far they are not known."""
    if row["settings"] is None:
        return settings, ["settings: those of then were not kept, so these are the present ones"]
    try:
        return deciding_as(settings, row["settings"]), []
    except (SettingsError, ValueError, TypeError) as error:
        why = str(error).split("\n", 1)[0]
        raise AuditError(f"its settings of then cannot be used by this version: {why}") from None


def _counts_differing(connection: duckdb.DuckDBPyConnection, settings: Settings) -> list[str]:
    named = settings.slices, settings.attribute_columns
    lengths = bucket_lengths(*named)
    stored = {
        name
        for (name,) in connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = ?", [_STORED]
        ).fetchall()
    }
    return [
        table.name
        for table in (*COUNT_TABLES, bucket_counts(*named), lengths)
        # Files of before lack what nobody counted then.
        if (table is not lengths or table.name in stored)
        and differ(
            connection,
            f"SELECT {table.column_list} FROM {_STORED}.{table.name}",
            f"SELECT {table.column_list} FROM {_AGAIN}.{table.name}",
        )
    ]


def _numbers_differing(connection: duckdb.DuckDBPyConnection, table: Table) -> Iterator[str]:
    """Rows of scores, or of group values, that are not the same, in words."""
    then, now = (_by_key(connection, database, table) for database in (_STORED, _AGAIN))
    names = [name for name in table.names if name not in (*table.key, *OF_RUNS)]
    for key in sorted(then.keys() | now.keys(), key=str):
        old, new = then.get(key), now.get(key)
        about = " ".join(str(value) for value in key if value is not None)
        if old is None or new is None:
            yield f"{about}: {'was not there then' if old is None else 'is not there now'}"
            continue
        for name in names:
            if old[name] != new[name]:
                yield f"{about}: {name} {old[name]} then, {new[name]} now"


def _by_key(
    connection: duckdb.DuckDBPyConnection, database: str, table: Table
) -> dict[tuple[Any, ...], dict[str, Any]]:
    rows = connection.sql(f"FROM {quoted(database)}.{table.name}").to_arrow_table().to_pylist()
    absent = dict.fromkeys(table.names)
    return {tuple(row[name] for name in table.key): {**absent, **row} for row in rows}
