"""The batches whose worst lists the copy holds, and how they are taken over from copy to copy.

To find the lists of a batch takes a scan of its file, which is done once: as long as file and
settings stay the same, the next copy gets the rows of the one before it.

Not here: finding the lists of one batch (``worst_lists``).
"""

import logging
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow
import pyarrow.compute as pc

from pipeline.errors import AuditError, StoreDamaged
from pipeline.history.proof import check_batch_file
from pipeline.publish.worst_lists import made_by, worst_lists
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of
from pipeline.store.sessions import attach, working
from schemas.columns import Row
from schemas.copy import LISTED_BATCHES, WORST_LISTS

_LOG = logging.getLogger(__name__)
_BEFORE = "before"
BATCHES = 31
"""Scored batches whose lists are kept: as many days as the page shows, and the longest month."""


@dataclass(frozen=True)
class KeptLists:
    """Rows of the tables listed_batches and worst_lists."""

    batches: pyarrow.Table
    lists: pyarrow.Table


def kept_lists(
    connection: duckdb.DuckDBPyConnection,
    settings: Settings,
    *,
    before: Path | None = None,
    noting: bool = True,
) -> KeptLists:
    """The worst lists of the last ``BATCHES`` scored batches of the attached history.

    None where ``privacy.min_cell`` is set.  A batch has none where its rows are no longer kept or
    not those of its scores, and where its file cannot be read or was changed, which is warned of:
    publishing goes on.  ``before`` is a copy that is known to be right: of batches that it lists
    for the same file and settings, its rows are taken over.
    """
    kept = KeptLists(LISTED_BATCHES.arrow.empty_table(), WORST_LISTS.arrow.empty_table())
    if settings.privacy.min_cell:
        return kept
    rules, rows = made_by(settings), list[Row]()
    known = kept if before is None else _held_by(before, settings)
    listed = known.batches.to_pylist()
    lists = [kept.lists]
    for batch, input_hash in _newest(connection):
        file_hash = _checked(settings, batch, noting=noting)
        if file_hash is None:
            continue
        row = {
            "batch": batch,
            "input_hash": input_hash,
            "file_hash": file_hash,
            "made_by": rules,
        }
        if row in listed:
            of_batch = pc.equal(known.lists["batch"], batch)
            lists.append(known.lists.filter(of_batch))
        else:
            try:
                found = worst_lists(settings, batch, input_hash)
            except (AuditError, duckdb.Error):
                continue
            if found is not None:
                lists.append(found)
        rows.append(row)
    return KeptLists(
        pyarrow.Table.from_pylist(rows, LISTED_BATCHES.arrow), pyarrow.concat_tables(lists)
    )


def _newest(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    """The last scored batches of the attached history, newest first, each with its input hash."""
    return connection.execute(
        "SELECT batch, any_value(input_hash) FROM history.fairness_history "
        f"GROUP BY batch ORDER BY batch DESC LIMIT {BATCHES}"
    ).fetchall()


def _checked(settings: Settings, batch: str, *, noting: bool) -> str | None:
    """The digest of the file of a batch; None where it is not there or was changed."""
    try:
        return check_batch_file(store_of(settings), batch, noting=noting)
    except (StoreDamaged, OSError) as error:
        _LOG.warning("the worst lists of %s are left out: %s", batch, error)
        return None


def _held_by(path: Path, settings: Settings) -> KeptLists:
    """What a copy holds; nothing where it is of a version with other tables."""
    try:
        with working(settings, [path.parent]) as connection:
            attach(connection, path, _BEFORE, read_only=True)
            return KeptLists(
                *(
                    connection.sql(f"SELECT {table.column_list} FROM {_BEFORE}.{table.name}")
                    .to_arrow_table()
                    .cast(table.arrow)
                    for table in (LISTED_BATCHES, WORST_LISTS)
                )
            )
    except (AuditError, duckdb.Error, pyarrow.ArrowInvalid):
        return KeptLists(LISTED_BATCHES.arrow.empty_table(), WORST_LISTS.arrow.empty_table())
