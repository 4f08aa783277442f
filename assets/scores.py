"""The third step: counts become scores.  One asset per metric, all computed by one step."""

from collections.abc import Iterator

import dagster as dg

from assets.describe import about, batch_file, score_numbers, spec
from assets.left_out import each_batch, failure, materialized, work_id
from assets.partitions import SINGLE_RUN
from assets.reads import tables_read
from assets.resources import Audit
from metrics import METRICS, Measure, Metric
from pipeline.batch import score_batch
from pipeline.settings import Settings
from schemas.tables import FAIRNESS_HISTORY


def measures_by_metric(settings: Settings) -> dict[str, list[Measure]]:
    """What the settings compute, by metric; metrics they do not name are left out."""
    named = {
        metric.name: [each for each in settings.measures if each.metric.name == metric.name]
        for metric in METRICS
    }
    return {name: measures for name, measures in named.items() if measures}


def description(metric: Metric, measures: list[Measure]) -> str:
    """What the metric is, for people."""
    computed = ", ".join(f"`{measure.label}`" for measure in measures)
    return (
        f"{metric.title}.\n\n"
        f"One row per slice, attribute and aggregation of {computed}.\n\n"
        f"- {'Group value' if metric.range and len(list(measures[0].scores())) > 1 else 'Value'}: "
        f"`{metric.formula}`\n"
        f"- Range: {metric.range}\n"
        f"- Source: {metric.source}"
    )


def metric_assets(settings: Settings, batches: dg.PartitionsDefinition[str]) -> dg.AssetsDefinition:
    """One asset per metric that the settings name."""
    by_metric = measures_by_metric(settings)

    @dg.multi_asset(
        name="score",
        specs=[
            spec(
                name,
                description(measures[0].metric, measures),
                "metrics",
                deps=[table.name for table in tables_read(measures)],
                metadata=about(FAIRNESS_HISTORY, batch_file(settings)),
            )
            for name, measures in by_metric.items()
        ],
        partitions_def=batches,
        backfill_policy=SINGLE_RUN,
        can_subset=True,
    )
    def score(
        context: dg.AssetExecutionContext, audit: Audit
    ) -> Iterator[dg.MaterializeResult[None]]:
        work = work_id(context.run)
        selected = {key.to_user_string() for key in context.selected_asset_keys}
        measures = [each for each in audit.settings.measures if each.metric.name in selected]
        found, gone = each_batch(
            context, audit.settings, lambda key: score_batch(audit.settings, key, work, measures)
        )
        if not found:
            raise failure(gone, len(context.partition_keys))
        for name in (each for each in by_metric if each in selected):
            labels = {measure.label for measure in by_metric[name]}
            said = {
                key: score_numbers([row for row in rows if row["metric"] in labels])
                for key, rows in found.items()
            }
            yield materialized(context, name, said, gone)

    return score
