"""The last step: scores join the history, which is assessed and published once for all batches.

Not here: how a history is written and what follows (``pipeline.history``,
``pipeline.runs.finish``).
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import dagster as dg

from assets.checks import reported
from assets.describe import about, spec, verdict_counts
from assets.left_out import (
    HISTORY_ASSET,
    each_batch,
    failure,
    forget,
    left_out,
    materialized,
    work_id,
)
from assets.month import verdict_chart
from assets.partitions import SINGLE_RUN
from assets.resources import Audit
from assets.score_checks import verdicts
from assets.stored import stored
from pipeline.errors import AuditError
from pipeline.history.merging import merge
from pipeline.publish.conclusions.published import published_conclusions
from pipeline.runs.finish import finish
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of
from pipeline.terminal.notes import notes_to
from schemas.history import HISTORY
from schemas.views import VIEWS

FAIRNESS_HISTORY = HISTORY_ASSET
DASHBOARD = "dashboard"


def freshness(settings: Settings) -> dg.FreshnessPolicy | None:
    """Results are late when the newest day is not done in time; a closed period is never late.

    A night's result is followed by the next one a day later, which may take until the deadline.
    """
    schedule = settings.schedule
    if schedule.end is not None:
        return None
    start = timedelta(hours=schedule.hour, minutes=schedule.minute)
    slack = max(timedelta(hours=schedule.deadline_hours) - start, timedelta(0))
    return dg.FreshnessPolicy.time_window(fail_window=timedelta(days=1) + slack)


def _specs(settings: Settings, metrics: Sequence[str]) -> list[dg.AssetSpec]:
    store, (scores, _) = store_of(settings), HISTORY
    views = "\n".join(f"- `{view.name}`: {view.text}" for view in VIEWS)
    return [
        spec(
            FAIRNESS_HISTORY,
            f"{scores.text}\n\nOne row per {', '.join(scores.key)}. What a batch replaces moves to "
            "`superseded`.",
            "history",
            settings,
            deps=metrics,
            metadata=about(scores, str(store.history)),
            freshness=freshness(settings),
        ),
        spec(
            DASHBOARD,
            "The history as dashboards read it: a copy that is swapped in whole, so that no reader "
            f"meets a lock. One row of each view:\n\n{views}",
            "history",
            settings,
            deps=[FAIRNESS_HISTORY],
            metadata={
                "file": dg.MetadataValue.path(str(store.dashboard)),
                "page": dg.MetadataValue.path(str(store.report)),
            },
        ),
    ]


def history_assets(
    settings: Settings, batches: dg.PartitionsDefinition[str], metrics: Sequence[str]
) -> dg.AssetsDefinition:
    """The history and its published copy."""

    @dg.multi_asset(
        name="publish",
        specs=_specs(settings, metrics),
        partitions_def=batches,
        backfill_policy=SINGLE_RUN,
        can_subset=True,
    )
    def publish_history(context: dg.AssetExecutionContext, audit: Audit) -> Iterator[Any]:
        work, keys = work_id(context.run), context.partition_keys
        selected = {key.to_user_string() for key in context.selected_asset_keys}
        said: dict[str, dict[str, dict[str, Any]]] = {}
        gone = left_out(audit.settings, context.run, keys)
        if FAIRNESS_HISTORY in selected:
            said[FAIRNESS_HISTORY], gone = each_batch(
                context, audit.settings, lambda key: into_history(audit.settings, key, work)
            )
        if len(gone) == len(keys):
            raise failure(gone, len(keys))
        merged = said.get(FAIRNESS_HISTORY, {})
        try:
            with notes_to(context.log.log):
                finished = finish(
                    audit.settings,
                    list(merged),
                    keys,
                    notify="newest" if by_schedule(context.run) else "none",
                    publishing="always" if DASHBOARD in selected else "nothing",
                )
            for key, numbers in merged.items():
                numbers["gated"] = key in finished.assessed.gated
            # Checks on scores may have been done before a gate could be tested.
            again = [
                finding
                for key in merged
                if key in finished.assessed.gated
                for finding in verdicts(
                    audit.settings,
                    audit.settings.thresholds,
                    key,
                    stored(audit.settings, key, work),
                )
            ]
            if finished.assessed.later:
                context.log.info(f"assessed anew: {', '.join(finished.assessed.later)}")
            if DASHBOARD in selected:
                size: dict[str, Any] = {"bytes": store_of(audit.settings).dashboard.stat().st_size}
                said[DASHBOARD] = {key: dict(size) for key in keys if key not in gone}
                for key, row in published_conclusions(audit.settings, keys).items():
                    if key in said[DASHBOARD]:
                        verdict = f"{row['sign']} {row['word']}: {row['sentence']} {row['second']}"
                        said[DASHBOARD][key]["verdict"] = verdict.strip()
                newest = max(said[DASHBOARD])
                said[DASHBOARD][newest] |= verdict_chart(audit.settings, newest)
                if finished.page:
                    said[DASHBOARD][newest]["page"] = dg.MetadataValue.path(str(finished.page))
        except AuditError as error:
            raise dg.Failure(str(error)) from None
        yield from reported(context.instance, again)
        for name, by_batch in said.items():
            if gone:
                # An output would count for every batch of the run, also for those left out.
                yield from (
                    dg.AssetMaterialization(name, metadata=numbers, partition=key)
                    for key, numbers in by_batch.items()
                )
            else:
                yield materialized(context, name, by_batch, gone)
        if gone:
            raise failure(gone, len(keys))

    return publish_history


def by_schedule(run: dg.DagsterRun) -> bool:
    """Whether a schedule started the run: people who start one look for themselves."""
    return "dagster/schedule_name" in run.tags and "dagster/backfill" not in run.tags


def into_history(settings: Settings, batch: str, work: str) -> dict[str, Any]:
    """Make what the run computed the batch's result; returns numbers that plot."""
    told = stored(settings, batch, work).told
    merged = merge(settings, batch, work)
    forget(settings, batch)
    return {
        "dagster/row_count": len(told),
        "revision": merged.revision,
        "changed": merged.changed,
        **({"notes": "\n".join(merged.notes)} if merged.notes else {}),
        **verdict_counts(told),
    }
