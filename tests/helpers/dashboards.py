"""A small audit in which everything happens that the views of its copy must show."""

from pathlib import Path
from typing import Any

from stores import Rows, audit, deliver, random_lists, ranking, read

from pipeline.monitoring.alerts import mark
from pipeline.publish.copy import publish
from pipeline.runs.batches import run_batch
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of
from schemas.views import VIEWS

FIRST, LAST = "2026-01-01", "2026-01-12"
SCORED = [f"2026-01-{day:02}" for day in (1, 2, 3, 5, 8, 9, 10)]
NEVER_RUN = ("2026-01-04", "2026-01-11", "2026-01-12")
REFUSED, NO_LOG, FAULTY_LATER = "2026-01-06", "2026-01-07", "2026-01-09"
STRICTER, RELEASE = "2026-01-08", "2026-01-10"
"""From these days on the limit is another, and the ranker."""
REPLAY = "replay-1"
"""A batch that is no day, and the newest by key."""
ONCE = "2026-01-02"
"""The only day with lists for watches."""
LIMIT, LIMIT_LATER = 0.5, 0.9
OF_RUNS = {
    "code_version",
    "computed_at",
    "config_hash",
    "created_at",
    "finished_at",
    "generation",
    "hours_since",
    "input_hash",
    "message",
    "notified_at",
    "peak_memory",
    "published_at",
    "result_hash",
    "rows_hash",
    "run_id",
    "settings",
    "started_at",
}
"""Columns that say something of the run, the version or the time, not of the data."""


def eventful(folder: Path, **more: Any) -> Settings:
    """Twelve days: three never run, one refused, one without a log, one refused when run again.

    Thresholds change in the middle, a release begins, a slice value comes and goes, and a batch is
    no day.  Published.
    """
    said = {
        "slices": ["device"],
        "metrics": ["EXP", "IAA"],
        "schedule": {"start": FIRST, "end": LAST, "batches": "names"},
        "trends": {"window": 8, "least": 4},
        "gate": {"least": 3},
    }
    settings = audit(folder, **{**said, "thresholds": _limit(LIMIT), **more})
    for seed, day in enumerate(SCORED, 1):
        if day == STRICTER:
            settings = audit(folder, **{**said, "thresholds": _limit(LIMIT_LATER), **more})
        watches = ranking("w", "FFMM", device="watch") if day == ONCE else []
        deliver(folder, [*random_lists(seed, 8), *watches], batch=day)
        assert run_batch(settings, day).status == "done"
    for day in (REFUSED, FAULTY_LATER):
        deliver(folder, [{**row, "rank": 0} for row in random_lists(3, 8)], batch=day)
        assert run_batch(settings, day).status == "refused"
    assert run_batch(settings, NO_LOG).status == "no_data"
    mark(settings, RELEASE, "model v2")
    deliver(folder, replayed(), batch=REPLAY)
    assert run_batch(settings, REPLAY).status == "done"
    publish(settings)
    return settings


def _limit(least: float) -> dict[str, Any]:
    return {"EXP.MinMaxRatio": {"min": least, "slices": ["all"]}}


def replayed() -> Rows:
    """Rows of the batch that is no day: more lists than are told, a long one, groups unknown."""
    rows = random_lists(11, 16) + ranking("long", "F" * 3 + "M" * 60 + "F", device="mobile")
    return [{**row, "gender": None if row["gender"] == "X" else row["gender"]} for row in rows]


def shown(settings: Settings, view: str) -> Rows:
    """Rows of a view of the copy."""
    return read(store_of(settings).dashboard, f"FROM {view}")


def contents(settings: Settings) -> dict[str, dict[str, list[Any]]]:
    """Every view: its columns, and its rows by key, but for what two runs may differ in."""
    found = {}
    for view in VIEWS:
        names = [name for name in view.names if name not in OF_RUNS]
        rows = sorted(shown(settings, view.name), key=lambda row: [str(row[n]) for n in view.key])
        found[view.name] = {
            "columns": names,
            "rows": [[_plain(row[name]) for name in names] for row in rows],
        }
    return found


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value
