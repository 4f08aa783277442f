"""The history opened as it is, whatever the ledger says: for looking at it, or setting it aside.

Not here: opening it for work, which finishes what was interrupted (``history.opening``).
"""

from pathlib import Path

import duckdb

from pipeline.errors import AuditError, StoreBusy
from pipeline.settings.audit import Settings
from pipeline.store.paths import Store
from pipeline.store.sessions import attach


def open_as_is(
    settings: Settings,
    connection: duckdb.DuckDBPyConnection,
    store: Store,
    name: str,
) -> str | None:
    """Attach the history read-only, so that nobody writes to it meanwhile.

    Returns why it cannot be opened, None where it is open.  StoreBusy where somebody writes to it
    for longer than the settings would wait.
    """
    if not store.history.exists():
        return (
            f"{store.history}: is missing; `evenrank restore` puts back a backup, and "
            "`evenrank rebuild` makes it again from the batch files"
        )
    try:
        attach(
            connection,
            store.history,
            name,
            read_only=True,
            patience=settings.busy_seconds,
        )
    except StoreBusy:
        raise
    except AuditError as error:
        return str(error)
    return None


def why(path: Path, error: Exception) -> str:
    """What an error says about a file that is looked at."""
    # What DuckDB says of a damaged file names none.
    cause = error.__cause__ if isinstance(error.__cause__, duckdb.Error) else error
    text = str(cause).strip().split("\n", 1)[0]
    return text if isinstance(cause, AuditError) else f"{path}: cannot be read: {text}"
