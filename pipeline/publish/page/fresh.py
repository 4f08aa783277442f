"""Keeps the page in step with the published copy.

Not here: how either of them is written (``page``, ``pipeline.publish.copy``).
"""

import logging
from pathlib import Path

from pipeline.errors import AuditError
from pipeline.publish.copy import publish
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of
from pipeline.store.seen import is_seen, note, stamp

_LOG = logging.getLogger(__name__)


def show(settings: Settings) -> Path:
    """Publish the history as it stands, and write its page; returns the path of the copy."""
    path = publish(settings)
    renew_report(settings)
    return path


def renew_report(settings: Settings) -> Path | None:
    """Write the page anew unless it is the one of this copy; returns its path, None without one.

    A page that cannot be written is told and fails nothing: what it shows is published already.
    """
    store = store_of(settings)
    if not store.dashboard.exists():
        return None
    try:
        if is_seen(store, store.report, store.dashboard):
            return store.report
        # The charts take a second to load, which most calls do not need.
        from pipeline.publish.page.page import write_report

        copy = stamp(store.dashboard)
        page = write_report(settings)
        note(store, page, store.dashboard, since=[stamp(page), copy])
        return page
    except (AuditError, OSError) as error:
        _LOG.warning("the page is as it was before: %s", error)
        return None
