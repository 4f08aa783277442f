"""The end of a run, the same for every way to start one.

Here: what follows the merge of a run's batches, and in which order.  Not here: what each of these
steps does, and who is shown what came of them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pipeline.history.forget import forget_rows
from pipeline.history.manifest import newest_batches
from pipeline.monitoring.assess import Assessed, Notice, assess
from pipeline.monitoring.delivery import deliver
from pipeline.publish.copy import publish, publish_changes
from pipeline.publish.page.fresh import renew_report
from pipeline.settings.audit import Settings

Publishing = Literal["changes", "always", "nothing"]
"""Whether the copy is made where it is not that of the history, whatever it is, or not at all."""


@dataclass(frozen=True)
class Finished:
    """What the end of a run did: the assessment, and the page, None where there is none."""

    assessed: Assessed
    page: Path | None


def finish(
    settings: Settings,
    merged: Sequence[str],
    batches: Collection[str],
    *,
    notify: Notice = "none",
    publishing: Publishing = "changes",
) -> Finished:
    """Assess ``merged``, forget old rows, publish, send new alerts, and write the page.

    ``batches`` are all that the run was about.  Alerts are sent once the copy holds them; the copy
    is then made again, so that it says so.  The page comes last, so that it is that of the copy,
    also where alerts cannot be sent.
    """
    assessed = assess(settings, merged, notify=notify, attempted=batches)
    forget_rows(settings)
    if publishing == "always":
        publish(settings)
    elif publishing == "changes":
        publish_changes(settings)
    page = None
    try:
        sends = notify == "all" or (
            notify == "newest" and not newest_batches(settings).isdisjoint(batches)
        )
        if sends and deliver(settings) and publishing != "nothing":
            publish_changes(settings)
    finally:
        if publishing != "nothing":
            page = renew_report(settings)
    return Finished(assessed, page)
