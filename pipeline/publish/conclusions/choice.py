"""Which state a batch is in, and which score speaks for it.

The worst state speaks: a breach, a closed gate, a breach of several days together, another group
losing, what chance explains, what cannot be judged.  Of several scores, a new breach speaks before
an old one, the whole batch before slices, then the order of the thresholds in the settings, and
then the score furthest beyond its limit, or closest to it.

Not here: the words (``sentences``).
"""

from dataclasses import dataclass

from metrics import WHOLE
from pipeline.publish.conclusions.reading import Batch
from schemas.columns import Row
from schemas.monitoring import SERIES_KEY

STATES = (
    "new_breach",
    "breach",
    "reversal",
    "gated",
    "window",
    "composition",
    "insufficient",
    "undefined",
    "calm",
    "no_limits",
    "withheld",
    "refused",
    "no_data",
    "failed",
    "missing",
)
"""The worst first; the last five are of batches without scores to be shown."""


@dataclass(frozen=True)
class Choice:
    """``state`` is one of STATES; ``score`` is the row that speaks, None where there is none.

    ``alert`` is the alert that the state is about.
    """

    state: str
    score: Row | None = None
    alert: Row | None = None


def choice_of(batch: Batch) -> Choice:
    """The state of a batch, and the score that speaks for it."""
    if not batch.is_scored:
        return Choice(batch.state if batch.state in STATES else "failed")
    if not batch.counts["scores"]:
        return Choice("withheld")
    by_status: dict[str, list[Row]] = {}
    for row in batch.scores:
        by_status.setdefault(row["status"], []).append(row)
    whole = {
        status: [row for row in rows if row["slice"] == WHOLE] for status, rows in by_status.items()
    }
    if breaches := by_status.get("breach"):
        first = breaches[0]
        if not first["is_new"]:
            return Choice("breach", first)
        return Choice("reversal" if first["former_loser"] else "new_breach", first)
    if gated := by_status.get("gated"):
        return Choice("gated", gated[0])
    for alert in batch.alerts:
        if alert["kind"] == "window":
            same = (row for row in batch.scores if all(row[n] == alert[n] for n in SERIES_KEY))
            return Choice("window", next(same, None), alert)
    turned = {
        (row["attribute"], row["reading_of"])
        for row in batch.alerts
        if row["kind"] == "flip" and row["opened"] == batch.name and row["slice"] == WHOLE
    }
    for row in (*whole.get("insufficient", ()), *whole.get("ok", ())):
        if (row["attribute"], row["label"]) in turned:
            return Choice("reversal", row)
    for status in ("composition", "insufficient", "undefined"):
        if rows := whole.get(status):
            return Choice(status, rows[0])
    if ok := whole.get("ok") or by_status.get("ok"):
        return Choice("calm", ok[0])
    for status in ("composition", "insufficient", "undefined"):
        if rows := by_status.get(status):
            return Choice(status, rows[0])
    return Choice("no_limits", batch.unjudged[0] if batch.unjudged else None)
