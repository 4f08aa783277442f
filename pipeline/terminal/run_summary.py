"""The end of a run as one small JSON document, for schedulers that pass it on.

Not here: when it is written (``cli.events``).
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metrics import WHOLE
from pipeline.errors import AuditError, SettingsError
from pipeline.history.manifest import manifest
from pipeline.history.queries import breaches, counted_and_shifts
from pipeline.publish.conclusions.published import published_conclusions
from pipeline.settings.audit import Settings
from pipeline.settings.text import cut
from pipeline.store.files import replace_file
from pipeline.store.paths import Store, store_of
from schemas.judged import as_judged

if TYPE_CHECKING:
    from pipeline.runs.outcome import Outcome

SUMMARY_VERSION = 1
"""Goes up when a key of the summary changes its meaning or goes."""
_BEGIN = f'{{"summary_version": {SUMMARY_VERSION}'
_WORST = 5
"""Scores of a batch that a summary names: the history has all of them."""
_MOST_BYTES = 1200
"""Bytes of what is said of one batch; scores that do not fit are left out, the least bad first.

Schedulers pass summaries on, and have limits of their own."""
_SENTENCE = 120
"""Characters of the sentence of a batch: longer ones are made of long names of groups."""
_LONGEST = 200
"""Characters of a message, so that one long text does not take the place of the scores."""


def clear_summary(path: Path) -> None:
    """Remove the summary of an earlier run, so that it is not taken for that of this one.

    SettingsError where ``path`` cannot be written, or is no summary: a slip of the keyboard must
    not cost a file.
    """
    try:
        if path.exists() or path.is_symlink():
            # A link may be one of the system's own, such as /dev/stdout.
            if path.is_symlink() or not path.is_file():
                raise SettingsError(f"--summary {path}: not a regular file; name a file to write")
            with path.open("rb") as file:
                begin = file.read(len(_BEGIN))
            if begin and begin != _BEGIN.encode():
                raise SettingsError(
                    f"--summary {path}: holds something else; name a new file, or a summary"
                )
        folder = path.parent
        if not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
            raise SettingsError(f"--summary {path}: no such folder, or it cannot be written to")
        path.unlink(missing_ok=True)
    except OSError as error:
        raise SettingsError(f"--summary {path}: {(error.strerror or 'no').lower()}") from None


def write_summary(path: Path, document: Mapping[str, Any]) -> None:
    """Write a summary so that a reader meets all of it or none; AuditError where it cannot be."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            new.write_text(json.dumps(document, ensure_ascii=False) + "\n", encoding="utf-8")
            replace_file(new, path)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise AuditError(f"--summary {path}: cannot be written: {error.strerror}") from None


def summary_of(
    settings: Settings | None,
    outcomes: "Sequence[Outcome]",
    *,
    exit_code: int,
    error: str | None,
    failed_on: Sequence[str] = (),
) -> dict[str, Any]:
    """The summary of a run, JSON-ready: ``settings`` are None where they could not be read.

    What only the history knows is left at what the run itself knows where the history cannot be
    read, as after an error.
    """
    store = store_of(settings) if settings else None
    outcomes = sorted(outcomes, key=lambda outcome: outcome.batch)
    assessed: dict[str, dict[str, Any]] = {}
    if settings and outcomes:
        try:
            keys = [outcome.batch for outcome in outcomes]
            assessed = _seen(settings, keys)
            for batch, row in published_conclusions(settings, keys).items():
                assessed.setdefault(batch, {})["conclusion"] = row
        except AuditError as fault:
            error = error or str(fault)
    return {
        "summary_version": SUMMARY_VERSION,
        "exit_code": exit_code,
        "error": None if error is None else cut(error, 2 * _LONGEST),
        "failed_on": _reasons(failed_on),
        "batches": [_batch(outcome, assessed.get(outcome.batch, {})) for outcome in outcomes],
        **_paths(store),
    }


def _reasons(failed_on: Sequence[str]) -> list[str]:
    """The first reasons, as many as fit beside what is said of a batch, and how many more."""
    said = [cut(text, _LONGEST) for text in failed_on]
    shown = list(said)
    while len(shown) > 1 and len(json.dumps(shown, ensure_ascii=False).encode()) > _MOST_BYTES // 3:
        shown.pop()
    more = len(said) - len(shown)
    return [*shown, f"and {more:,} more"] if more else shown


def _paths(store: Store | None) -> dict[str, str | None]:
    """Where to look further, null for what is not there."""
    names = ("history", "dashboard", "report")
    files = {name: getattr(store, name) if store else None for name in names}
    return {name: str(path) if path and path.exists() else None for name, path in files.items()}


def _batch(outcome: "Outcome", assessed: Mapping[str, Any]) -> dict[str, Any]:
    conclusion = assessed.get("conclusion", {})
    summary = {
        "batch": outcome.batch,
        "status": outcome.status,
        "revision": outcome.revision,
        "lists": outcome.lists,
        "rows_read": outcome.rows_read,
        "rows_rejected": outcome.rows_rejected,
        "breaches": assessed.get("breaches", outcome.breaches),
        "composition": assessed.get("composition", 0),
        "insufficient": assessed.get("insufficient", 0),
        "shifts": assessed.get("shifts", 0),
        "gated": assessed.get("gated", outcome.gated),
        "result_hash": outcome.result_hash,
        "message": cut(outcome.message.split("\n")[0], _LONGEST) or None,
        "state": conclusion.get("state"),
        "sentence": cut(conclusion["sentence"], _SENTENCE) if conclusion else None,
        "worst": list(assessed.get("worst", ())),
    }
    while summary["worst"] and len(json.dumps(summary, ensure_ascii=False).encode()) > _MOST_BYTES:
        summary["worst"].pop()
    return summary


def _seen(settings: Settings, batches: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What the history says of batches since they were assessed."""
    manifest_rows, breached = manifest(settings), breaches(settings, batches)
    counts, shifts = counted_and_shifts(settings, batches) if manifest_rows else ({}, {})
    return {
        batch: {
            "breaches": sum(row["batch"] == batch for row in breached),
            "composition": counts.get((batch, "composition"), 0),
            "insufficient": counts.get((batch, "insufficient"), 0),
            "shifts": shifts.get(batch, 0),
            "gated": manifest_rows[batch].gated,
            "worst": worst([row for row in breached if row["batch"] == batch], settings),
        }
        for batch in batches
        if batch in manifest_rows
    }


def worst(rows: Sequence[Mapping[str, Any]], settings: Settings) -> list[dict[str, Any]]:
    """The breaches to look at first, at most five: of whole batches, then the furthest beyond.

    How far is told in parts of the threshold; a group that was shut out is furthest.  Values are
    those that the verdicts are about.
    """
    rows = [as_judged(row) for row in rows]

    def place(row: Mapping[str, Any]) -> tuple[bool, float]:
        limit = settings.thresholds.get(row["label"])
        end = None if limit is None else limit.max if limit.min is None else limit.min
        value = row["value"]
        if end is None or value is None:
            return row["slice"] != WHOLE, -float("inf")
        return row["slice"] != WHOLE, -abs(value - end) / (abs(end) or 1.0)

    names = ("label", "attribute", "slice", "slice_value", "value", "worst_group")
    return [
        {name: cut(row[name], 60) if isinstance(row[name], str) else row[name] for name in names}
        for row in sorted(rows, key=place)[:_WORST]
    ]
