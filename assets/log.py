"""The first step: the accepted rows of a batch.

Not here: how they are read and judged (``pipeline.log``), and checks on them (``log_checks``).
"""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from assets.checks import evaluated, reported
from assets.describe import KINDS, about, batch_file
from assets.left_out import each_batch, failure, forget, materialized, work_id
from assets.log_checks import log_checks, log_results
from assets.partitions import SINGLE_RUN
from assets.resources import Audit
from pipeline.log.ingest import BatchRefused, Ingested
from pipeline.runs.steps import Attempted, ingest_batch
from pipeline.settings.audit import Settings
from pipeline.version import code_version
from schemas.rules import ranking_log as ranking_log_table

_FEW = "The batch is about too few for its numbers to be told (privacy.min_cell)."


def numbers(found: Ingested) -> dict[str, Any]:
    """What plots over batches; of a batch of too few, remarks only."""
    if found.few:
        return {"notes": "\n".join((_FEW, *found.notes))}
    unknown = {f"unknown {name}": rows for name, rows in found.unknown_rows.items()}
    return {
        "dagster/row_count": found.rows_accepted,
        "lists": found.lists,
        "rows_read": found.rows_read,
        "rows_rejected": found.rows_rejected,
        "lists_rejected": found.lists_rejected,
        "graded_rows": found.graded_rows,
        **unknown,
        **({"notes": "\n".join(found.notes)} if found.notes else {}),
    }


def log_asset(settings: Settings, batches: dg.PartitionsDefinition[str]) -> dg.AssetsDefinition:
    """The asset that reads and checks the delivered files."""
    table = ranking_log_table(settings.slices, settings.attribute_columns)
    specs = log_checks(settings, batches)

    @dg.asset(
        partitions_def=batches,
        backfill_policy=SINGLE_RUN,
        group_name="batch",
        kinds=KINDS,
        owners=settings.owners,
        code_version=code_version(),
        metadata=about(table, batch_file(settings)),
        check_specs=specs,
    )
    def ranking_log(context: dg.AssetExecutionContext, audit: Audit) -> Iterator[Any]:
        """One row per item in a list: the rows of the log that obey its contract.

        Rows that do not stand in `rejected_rows` of the same file, with file, line, rule and value.
        """
        work, keys = work_id(context.run), context.partition_keys
        for key in keys:
            forget(audit.settings, key)
        refused: dict[str, Ingested] = {}

        def read(key: str) -> Ingested:
            try:
                return ingest_batch(audit.settings, key, work)
            except Attempted as failed:
                if isinstance(failed.cause, BatchRefused):
                    refused[key] = failed.cause.ingested
                raise

        found, gone = each_batch(context, audit.settings, read)
        if found:
            said = {key: numbers(each) for key, each in found.items()}
            yield materialized(context, "ranking_log", said, gone)
        yield from reported(context.instance, log_results(audit.settings, found, refused, gone))
        if not found:
            raise failure(gone, len(keys))
        yield from evaluated(specs)

    return ranking_log
