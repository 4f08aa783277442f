"""The history opened as it is, whatever the ledger says: for looking at it, or putting it aside."""

import duckdb

from pipeline.errors import AuditError, StoreBusy
from pipeline.settings import Settings
from pipeline.store import Store, Tell, attach


def open_as_is(
    settings: Settings,
    connection: duckdb.DuckDBPyConnection,
    store: Store,
    name: str,
    waiting: Tell | None = None,
) -> str | None:
    """Attach the history read-only, so that nobody writes to it meanwhile.

    Returns why it cannot be opened, None where it is open.  StoreBusy where somebody writes to it
    for longer than the settings would wait.
    """
    if not store.history.exists():
        return f"{store.history}: is missing"
    try:
        attach(
            connection,
            store.history,
            name,
            read_only=True,
            patience=settings.busy_seconds,
            waiting=waiting,
        )
    except StoreBusy:
        raise
    except AuditError as error:
        return str(error)
    return None
