"""Rows of old batches, removed from the store when the settings say so."""

from datetime import UTC, datetime

from pipeline.batch import new_run_id
from pipeline.files import file_digest
from pipeline.history import manifest, place
from pipeline.integrity.told import told_by
from pipeline.ledger import Ledger
from pipeline.privacy.retention import expired, stripped
from pipeline.settings import Settings
from pipeline.store import Tell, replace_file, store_of


def forget_rows(settings: Settings, waiting: Tell | None = None) -> list[str]:
    """Remove rows that are older than ``privacy.keep_rows_days``; returns the batches concerned.

    Scores and counts stay.  Delivered logs are not touched.
    """
    if settings.privacy.keep_rows_days is None:
        return []
    store, forgotten = store_of(settings), []
    done = told_by(Ledger(store.ledger).read().kept).without_rows
    for batch in expired(settings, datetime.now(UTC).date(), manifest(settings)):
        path, refused, run_id = store.batch(batch), store.refused(batch), new_run_id()
        staged = store.staged(batch, run_id)
        if refused.exists() and stripped(settings, refused, staged):
            replace_file(staged, refused)
        if batch in done or not path.exists():
            continue
        whole = file_digest(path)
        if stripped(settings, path, staged):
            place(settings, batch, run_id, instead_of=whole, without_rows=True, waiting=waiting)
            forgotten.append(batch)
    return forgotten
