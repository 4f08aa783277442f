"""The third step: counts become scores.

One asset per fairness metric and one per other family, all computed by one step: people look for
the former one by one, and sixty boxes would be no graph.
"""

from collections.abc import Iterator

import dagster as dg

from assets.describe import about, batch_file, score_numbers, spec
from assets.left_out import each_batch, failure, materialized, work_id
from assets.partitions import SINGLE_RUN
from assets.reads import tables_read
from assets.resources import Audit
from metrics import FAIRNESS, METRICS, Measure, Metric
from pipeline.batch import score_batch
from pipeline.settings import Settings
from schemas.tables import FAIRNESS_HISTORY


def asset_of(metric: Metric) -> str:
    """The asset that holds the scores of a metric."""
    return metric.name if metric.family is FAIRNESS else metric.family.name


def measures_by_asset(settings: Settings) -> dict[str, list[Measure]]:
    """What the settings compute, by asset; metrics they do not name are left out."""
    found: dict[str, list[Measure]] = {}
    for metric in METRICS:
        measures = [each for each in settings.measures if each.metric.name == metric.name]
        if measures:
            found.setdefault(asset_of(metric), []).extend(measures)
    return found


def description(measures: list[Measure]) -> str:
    """What the scores of an asset are, for people."""
    computed = ", ".join(f"`{measure.label}`" for measure in measures)
    metrics = list(dict.fromkeys(measure.metric for measure in measures))
    family = metrics[0].family
    about = "" if family is FAIRNESS else f"{family.title}. {family.text}\n\n"
    rows = f"One row per slice, attribute and aggregation of {computed}."
    return about + "\n\n".join([*map(_described, metrics), rows])


def _described(metric: Metric) -> str:
    return (
        f"**{metric.name}**: {metric.title}.\n\n"
        f"- {'Group value' if metric.per_group else 'Value'}: `{metric.formula}`\n"
        f"- Range: {metric.range}\n"
        f"- Source: {metric.source}"
    )


def metric_assets(settings: Settings, batches: dg.PartitionsDefinition[str]) -> dg.AssetsDefinition:
    """The assets of the metrics that the settings name."""
    by_asset = measures_by_asset(settings)

    @dg.multi_asset(
        name="score",
        specs=[
            spec(
                name,
                description(measures),
                "metrics",
                deps=[table.name for table in tables_read(measures)],
                metadata=about(FAIRNESS_HISTORY, batch_file(settings)),
            )
            for name, measures in by_asset.items()
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
        measures = [each for each in audit.settings.measures if asset_of(each.metric) in selected]
        found, gone = each_batch(
            context, audit.settings, lambda key: score_batch(audit.settings, key, work, measures)
        )
        if not found:
            raise failure(gone, len(context.partition_keys))
        for name in (each for each in by_asset if each in selected):
            labels = {measure.label for measure in by_asset[name]}
            said = {
                key: score_numbers([row for row in rows if row["metric"] in labels])
                for key, rows in found.items()
            }
            yield materialized(context, name, said, gone)

    return score
