"""The second step: rows become additive integers, all tables in one pass.

Not here: how they are counted (``pipeline.counts``).
"""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from assets.describe import about, batch_file, spec
from assets.left_out import each_batch, failure, materialized, work_id
from assets.partitions import SINGLE_RUN
from assets.reads import count_tables
from assets.resources import Audit
from pipeline.runs.steps import measure_batch
from pipeline.settings.audit import Settings


def numbers(settings: Settings, rows: int) -> dict[str, Any]:
    """What plots over batches: none where it would tell how many cells are about too few."""
    return {} if settings.privacy.min_cell > 1 else {"dagster/row_count": rows}


def count_assets(settings: Settings, batches: dg.PartitionsDefinition[str]) -> dg.AssetsDefinition:
    """One asset per table of counts."""
    tables = count_tables(settings)

    @dg.multi_asset(
        name="measure",
        specs=[
            spec(
                table.name,
                f"{table.text}\n\nOne row per {', '.join(table.key)}.",
                "batch",
                settings,
                deps=["ranking_log"],
                metadata=about(table, batch_file(settings)),
            )
            for table in tables
        ],
        partitions_def=batches,
        backfill_policy=SINGLE_RUN,
    )
    def measure(
        context: dg.AssetExecutionContext, audit: Audit
    ) -> Iterator[dg.MaterializeResult[None]]:
        work = work_id(context.run)
        found, gone = each_batch(
            context, audit.settings, lambda key: measure_batch(audit.settings, key, work)
        )
        if not found:
            raise failure(gone, len(context.partition_keys))
        for table in tables:
            said = {key: numbers(audit.settings, rows[table.name]) for key, rows in found.items()}
            yield materialized(context, table.name, said, gone)

    return measure
