"""What became of one batch, and whether it had to be run at all.

Not here: how people are told (``pipeline.terminal``).
"""

from dataclasses import dataclass, replace

from pipeline.errors import AuditError
from pipeline.history.manifest import BatchRecord, Manifest
from pipeline.history.queries import breaches, hidden_of
from pipeline.log.deliveries import delivery
from pipeline.log.rejected_rows import RuleCount
from pipeline.privacy.small_cells import ALL
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of
from pipeline.version import code_version


@dataclass(frozen=True)
class Outcome:
    """What became of one batch.

    ``status``: done, unchanged, no_data, refused or failed.  ``revision`` counts replacements of
    its scores; 0 when it has none.  ``gated``: a gate keeps its scores from being judged.
    ``result_hash`` is the digest of all published numbers, None where there are none.
    ``later`` are later batches that say something else since; ``assessed``: what the history says
    has changed with an assessment.  Numbers are None where they may not be told (``as_told``).
    """

    batch: str
    status: str
    message: str = ""
    lists: int | None = 0
    rows_read: int | None = 0
    rows_accepted: int | None = 0
    rows_rejected: int | None = 0
    scores: int | None = 0
    breaches: int = 0
    revision: int = 0
    rules: tuple[RuleCount, ...] = ()
    notes: tuple[str, ...] = ()
    gated: bool = False
    result_hash: str | None = None
    later: tuple[str, ...] = ()
    assessed: bool = False
    exit_code: int = 0


def up_to_date(settings: Settings, batch: str, manifest_rows: Manifest) -> bool:
    """Whether the history already holds what running the batch would give."""
    row = manifest_rows.get(batch)
    if row is None or row.status != "done":
        return False
    if (row.config_hash, row.code_version) != (settings.config_hash, code_version()):
        return False
    if not store_of(settings).batch(batch).exists():
        return False
    try:
        return bool(delivery(settings, batch).digest == row.input_hash)
    except (AuditError, OSError):
        return False


def unchanged(record: BatchRecord, why: str = "same input, settings and code") -> Outcome:
    """The outcome of a batch that is left as its row of the manifest says."""
    return Outcome(
        record.batch,
        "unchanged",
        why,
        record.lists,
        record.rows_read,
        record.rows_accepted,
        record.rows_rejected,
        breaches=record.breaches,
        revision=record.revision,
        gated=record.gated,
        result_hash=record.result_hash,
    )


def as_told(settings: Settings, outcome: Outcome) -> Outcome:
    """``outcome`` as others may see it: without numbers about too few, or a digest of such."""
    if settings.privacy.min_cell <= 1 or outcome.status not in ("done", "unchanged"):
        return outcome
    out = hidden_of(settings, outcome.batch)
    told = len(breaches(settings, [outcome.batch]))
    outcome = replace(outcome, breaches=min(outcome.breaches, told))
    if out.blocks or out.places:
        outcome = replace(outcome, result_hash=None, scores=None)
    if ALL not in out.places:
        return outcome
    return replace(
        outcome, lists=None, rows_read=None, rows_accepted=None, rows_rejected=None, rules=()
    )
