"""What every check shares: it has a result for each batch, also in a run over many.

The contract of the log blocks: an ERROR keeps a batch from what follows.  Everything else warns: an
unfair score is recorded like any other.

Not here: what any one of them looks at.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)

_ROWS_SHOWN = 50  # rows of a table that people read on the page of a check


def check_spec(
    asset: str,
    name: str,
    description: str,
    batches: dg.PartitionsDefinition[str],
    *,
    blocking: bool = False,
) -> dg.AssetCheckSpec:
    """A check that has a result for every batch."""
    return dg.AssetCheckSpec(
        name, asset=asset, description=description, blocking=blocking, partitions_def=batches
    )


@dataclass(frozen=True)
class Finding:
    """The result of a check on one batch."""

    asset: str
    check: str
    batch: str
    passed: bool
    description: str
    metadata: Mapping[str, Any]
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.WARN
    blocking: bool = False


def reported(
    instance: dg.DagsterInstance, findings: Iterable[Finding]
) -> Iterator[dg.AssetCheckEvaluation]:
    """Findings as Dagster keeps them, each about the newest materialisation of its batch.

    A result that an asset returns is about the run's only partition; in a run over many batches
    only the event itself can name its batch.
    """

    @cache
    def newest(asset: str, batch: str) -> AssetCheckEvaluationTargetMaterializationData | None:
        wanted = dg.AssetRecordsFilter(dg.AssetKey(asset), asset_partitions=[batch])
        for record in instance.fetch_materializations(wanted, limit=1).records:
            return AssetCheckEvaluationTargetMaterializationData(
                storage_id=record.storage_id, run_id=record.run_id, timestamp=record.timestamp
            )
        return None

    for each in findings:
        yield dg.AssetCheckEvaluation(
            asset_key=dg.AssetKey(each.asset),
            check_name=each.check,
            partition=each.batch,
            passed=each.passed,
            severity=each.severity,
            blocking=each.blocking,
            description=each.description,
            metadata=each.metadata,
            target_materialization_data=newest(each.asset, each.batch),
        )


def evaluated(specs: Iterable[dg.AssetCheckSpec]) -> Iterator[dg.Output[None]]:
    """What tells Dagster that a step has said all it has to say on these checks."""
    for spec in specs:
        yield dg.Output(None, output_name=spec.get_python_identifier())


def table(rows: Sequence[Mapping[str, Any]]) -> dg.TableMetadataValue | str:
    """Rows as a table in metadata, cut where it becomes long."""
    if not rows:
        return "none"
    shown = [dg.TableRecord(dict(row)) for row in rows[:_ROWS_SHOWN]]
    types = {name: _type([row[name] for row in rows]) for name in rows[0]}
    columns = [dg.TableColumn(name, kind) for name, kind in types.items()]
    return dg.MetadataValue.table(shown, schema=dg.TableSchema(columns=columns))


def _type(values: Iterable[Any]) -> str:
    known = {type(value) for value in values if value is not None}
    return "float" if known == {float} else "int" if known == {int} else "string"
