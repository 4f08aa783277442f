"""Rows of old batches, removed from the store when the settings say so.

Not here: which batches are old enough, and what their files hold afterwards
(``privacy.retention``).
"""

from datetime import UTC, datetime

from pipeline.history.ledger import Ledger
from pipeline.history.ledger_state import told_by
from pipeline.history.manifest import manifest
from pipeline.history.merging import place
from pipeline.history.proof import check_batch_file
from pipeline.privacy.retention import expired, stripped
from pipeline.settings.audit import Settings
from pipeline.store.batch_files import living, new_run_id
from pipeline.store.files import file_digest, replace_file
from pipeline.store.paths import store_of


def forget_rows(settings: Settings) -> list[str]:
    """Remove rows that are older than ``privacy.keep_rows_days``; returns the batches concerned.

    Scores and counts stay.  Delivered logs are not touched.
    """
    if settings.privacy.keep_rows_days is None:
        return []
    store, forgotten = store_of(settings), []
    done = told_by(Ledger(store.ledger).read().kept).without_rows
    finished = {batch: record.finished_at for batch, record in manifest(settings).items()}
    with living(settings):
        for batch in expired(settings, datetime.now(UTC).date(), finished):
            path, refused, run_id = store.batch(batch), store.refused(batch), new_run_id()
            staged = store.staged(batch, run_id)
            if refused.exists() and stripped(settings, refused, staged):
                replace_file(staged, refused)
            if batch in done or not path.exists():
                continue
            # The ledger would vouch for what is left of the file.
            check_batch_file(store, batch)
            whole = file_digest(path)
            if stripped(settings, path, staged):
                place(settings, batch, run_id, instead_of=whole, without_rows=True)
                forgotten.append(batch)
    return forgotten
