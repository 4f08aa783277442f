"""The third step: counts become scores.

One asset per fairness metric and one per other family, all computed by one step: people look for
the former one by one, and sixty boxes would be no graph.

Not here: how they are computed (``pipeline.scores``), and checks on them (``score_checks``).
"""

from collections.abc import Iterator, Sequence

import dagster as dg

from assets.describe import LEFT_OUT, about, at_limit, batch_file, score_numbers, spec
from assets.left_out import each_batch, failure, materialized, work_id
from assets.month import last_month, past_rows
from assets.partitions import SINGLE_RUN
from assets.reads import tables_read
from assets.resources import Audit
from assets.stored import stored
from metrics import FAIRNESS, METRICS, Measure, Metric, ScoreName
from pipeline.runs.steps import score_batch
from pipeline.settings.audit import Settings
from pipeline.settings.sections import Threshold
from schemas.columns import Row
from schemas.scores import FAIRNESS_HISTORY


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


def description(measures: Sequence[Measure], settings: Settings) -> str:
    """What the scores of an asset are, and what is asked of them, for people."""
    metrics = list(dict.fromkeys(measure.metric for measure in measures))
    family = metrics[0].family
    computed = ", ".join(f"`{measure.label}`" for measure in measures)
    rows = f"One row per slice, attribute and aggregation of {computed}."
    asked = f"{family.title}. {family.text}"
    return "\n\n".join([asked, *map(_described, metrics), *_limits(measures, settings), rows])


def _described(metric: Metric) -> str:
    scores = [score for score in metric.usual.scores() if score.aggregation is not None]
    lines = [
        f"**{metric.name}**: {metric.title}.\n",
        f"- {'Group value' if metric.per_group else 'Value'}: `{metric.formula}`",
        f"- Range: {metric.range}",
    ]
    if not scores:
        lines += [f"- {_sides(score)}" for score in metric.usual.scores()]
    lines += [
        f"- `{score.label}`: `{score.aggregation.formula}`, in {score.range}. {_sides(score)}"
        for score in scores
        if score.aggregation and score.aggregation.name not in LEFT_OUT
    ]
    return "\n".join([*lines, f"- Source: {metric.source}"])


def _sides(score: ScoreName) -> str:
    """The fairest value, and the side on which the score is unfair."""
    best = "No value is the fairest" if score.fairest is None else f"Fairest at {score.fairest:g}"
    return f"{best}, unfair when {score.alarm}" if score.alarm else f"{best}, never unfair"


def _limits(measures: Sequence[Measure], settings: Settings) -> list[str]:
    """The thresholds that are set for some of the measures, as a paragraph; none for none."""
    names = [score.label for measure in measures for score in measure.scores()]
    found = [(name, settings.thresholds[name]) for name in names if name in settings.thresholds]
    if not found:
        return []
    lines = [f"- `{name}`: {_limit(threshold)}" for name, threshold in found]
    return ["\n".join(["Thresholds:\n", *lines])]


def _limit(threshold: Threshold) -> str:
    where = [
        f"{kind} {', '.join(f'`{name}`' for name in names)}"
        for kind, names in (("attributes", threshold.attributes), ("slices", threshold.slices))
        if names
    ]
    return "; ".join([f"at {at_limit(threshold)}", *where])


def tags(measures: Sequence[Measure]) -> dict[str, str]:
    """What an asset can be found by: its family, and whether there is a value for each group."""
    metrics = [measure.metric for measure in measures]
    kinds = {"per_group" if metric.per_group else "one" for metric in metrics}
    return {"family": metrics[0].family.name, "values": "_or_".join(sorted(kinds))}


def _told(settings: Settings, batch: str, work: str, measures: Sequence[Measure]) -> list[Row]:
    """Score a batch; returns what is told of the scores of ``measures``."""
    scores = score_batch(settings, batch, work, measures)
    if settings.privacy.min_cell <= 1:
        return scores
    labels = {measure.label for measure in measures}
    return [row for row in stored(settings, batch, work).told if row["metric"] in labels]


def metric_assets(settings: Settings, batches: dg.PartitionsDefinition[str]) -> dg.AssetsDefinition:
    """The assets of the metrics that the settings name."""
    by_asset = measures_by_asset(settings)

    @dg.multi_asset(
        name="score",
        specs=[
            spec(
                name,
                description(measures, settings),
                "metrics",
                settings,
                tags=tags(measures),
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
            context, audit.settings, lambda key: _told(audit.settings, key, work, measures)
        )
        if not found:
            raise failure(gone, len(context.partition_keys))
        past = past_rows(audit.settings, max(found), found)
        for name in (each for each in by_asset if each in selected):
            labels = {measure.label for measure in by_asset[name]}
            said = {
                key: score_numbers([row for row in rows if row["metric"] in labels])
                for key, rows in found.items()
            }
            # Once a run: the page of an asset shows its newest batch.
            month = [row for row in past if row["metric"] in labels]
            said[max(found)] |= last_month(audit.settings, max(found), month)
            yield materialized(context, name, said, gone)

    return score
