"""What the catalogue of Dagster shows: columns, descriptions, numbers that plot over batches.

Not here: pictures (``month``), and what columns mean (``schemas``).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from metrics import AGGREGATIONS, WHOLE
from pipeline.history.series import label_of
from pipeline.settings.audit import Settings
from pipeline.settings.sections import Threshold
from pipeline.store.paths import store_of
from pipeline.version import code_version
from schemas.columns import Row, Table

PLOTTED = ("MinMaxRatio", "MaxMinDiff")
"""Of the seven aggregations, those that become plots: one ratio, one difference."""
LEFT_OUT = {each.name for each in AGGREGATIONS} - set(PLOTTED)

KINDS = {"duckdb", "table"}
Numbers = dict[str, Any]


def column_schema(table: Table) -> dg.TableSchema:
    """The columns of a table with their descriptions."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                column.name,
                column.type.lower(),
                column.text,
                dg.TableColumnConstraints(nullable=column.nullable),
            )
            for column in table.columns
        ],
        constraints=dg.TableConstraints(
            other=[f"key: {', '.join(table.key)}"] if table.key else []
        ),
    )


def about(table: Table, file: str) -> Mapping[str, Any]:
    """Metadata of an asset that is ``table`` in ``file``."""
    return {
        "dagster/column_schema": column_schema(table),
        "dagster/table_name": table.name,
        "file": dg.MetadataValue.path(file),
    }


def batch_file(settings: Settings) -> str:
    """Where batch files lie, with the place of the batch in braces."""
    return str(store_of(settings).root / "batches" / "{batch}.duckdb")


def spec(
    key: str,
    description: str,
    group: str,
    settings: Settings,
    *,
    tags: Mapping[str, str] | None = None,
    deps: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    freshness: dg.FreshnessPolicy | None = None,
) -> dg.AssetSpec:
    """An asset of this location: in DuckDB, of the audit's owners and this version of the code."""
    return dg.AssetSpec(
        key,
        description=description,
        group_name=group,
        deps=deps,
        metadata=metadata,
        tags=tags,
        owners=settings.owners,
        kinds=KINDS,
        code_version=code_version(),
        freshness_policy=freshness,
    )


def at_limit(limit: Threshold) -> str:
    """A threshold in words, to follow ``at``."""
    return f"least {limit.min:g}" if limit.min is not None else f"most {limit.max:g}"


def score_numbers(rows: Sequence[Row]) -> Numbers:
    """Scores of the whole batch by name, and how many scores there are.

    A score without a value has no number, so that a plot shows a gap.
    """
    plotted = {
        f"{row['attribute']} {label_of(row)}" if row["attribute"] else label_of(row): row["value"]
        for row in rows
        if row["slice"] == WHOLE and row["value"] is not None and row["aggregation"] not in LEFT_OUT
    }
    return {**plotted, **verdict_counts(rows), "dagster/row_count": len(rows)}


def verdict_counts(rows: Sequence[Row]) -> Numbers:
    """How many scores are beyond their threshold, and why; rest on too little; have no value."""
    return {
        "breaches": sum(row["status"] == "breach" for row in rows),
        "composition": sum(row["status"] == "composition" for row in rows),
        "insufficient": sum(row["status"] == "insufficient" for row in rows),
        "undefined": sum(row["value"] is None for row in rows),
    }
