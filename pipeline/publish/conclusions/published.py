"""Conclusions as they were published, for whoever prints them.

Not here: making them (``conclude``).
"""

from collections.abc import Sequence

import duckdb

from pipeline.errors import AuditError
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of
from pipeline.store.sessions import attach, session
from schemas.columns import Row

_COPY = "copy"


def published_conclusions(settings: Settings, batches: Sequence[str]) -> dict[str, Row]:
    """The conclusion of each of ``batches`` that the published copy has, by batch.

    None where there is no copy, or one that this version does not read: what is printed beside
    them says the same in numbers.
    """
    store = store_of(settings)
    if not store.dashboard.exists():
        return {}
    try:
        with session(settings, [store.root]) as connection:
            attach(connection, store.dashboard, _COPY, read_only=True)
            found = connection.sql(
                f"FROM {_COPY}.conclusions WHERE list_contains(?, batch)", params=[list(batches)]
            ).to_arrow_table()
    except (AuditError, duckdb.Error):
        return {}
    return {row["batch"]: row for row in found.to_pylist()}
