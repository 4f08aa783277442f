"""Checks on the log: whether a batch is let in, and whether all of it is.

Not here: the decision, which was made when the log was read.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import dagster as dg

from assets.checks import Finding, check_spec, table
from assets.left_out import LeftOut
from pipeline.log.ingest import Ingested
from pipeline.log.rejected_rows import RuleCount
from pipeline.monitoring.gates import join_gate
from pipeline.settings.audit import Settings

CONTRACT = "log_obeys_contract"
ALL_ACCEPTED = "no_rows_rejected"
JOINED = "items_join"


def log_checks(
    settings: Settings, batches: dg.PartitionsDefinition[str]
) -> list[dg.AssetCheckSpec]:
    """Whether a batch is let in, whether all of it is, and whether enough rows have groups.

    The last only where there is an item table, and a limit.
    """
    joined = []
    if _joins(settings):
        least = f"{settings.gate.joined:.0%}"
        text = f"The item table holds the item of {least} of the rows, or more."
        joined = [check_spec("ranking_log", JOINED, text, batches)]
    return [
        *joined,
        check_spec(
            "ranking_log",
            CONTRACT,
            "The batch has rows, and no more of them than allowed break a rule.",
            batches,
            blocking=True,
        ),
        check_spec("ranking_log", ALL_ACCEPTED, "Every delivered row is accepted.", batches),
    ]


def _joins(settings: Settings) -> bool:
    return settings.items is not None and settings.gate.joined is not None


def log_results(
    settings: Settings,
    accepted: Mapping[str, Ingested],
    refused: Mapping[str, Ingested],
    gone: Mapping[str, LeftOut],
) -> Iterator[Finding]:
    """Results of all checks for every batch.

    A batch that is not let in stops the run only where there is no other.
    """
    for batch, why in gone.items():
        yield Finding(
            "ranking_log",
            CONTRACT,
            batch,
            passed=False,
            severity=dg.AssetCheckSeverity.ERROR,
            blocking=not accepted,
            description=why.message,
            metadata={"status": why.status, **_read(refused.get(batch))},
        )
    for batch, found in accepted.items():
        kept = (
            "Rows of too few queries or items to be told of are"
            if found.few
            else f"{found.rows_accepted:,} of {found.rows_read:,} rows in {found.lists:,} lists"
        )
        yield Finding(
            "ranking_log",
            CONTRACT,
            batch,
            passed=True,
            severity=dg.AssetCheckSeverity.ERROR,
            blocking=True,
            description=f"{kept} accepted.",
            metadata={"status": "done", **_read(found)},
        )
        yield Finding(
            "ranking_log",
            ALL_ACCEPTED,
            batch,
            passed=found.rows_rejected == 0,
            description="Every row is accepted."
            if not found.rows_rejected
            else "Some rows are rejected."
            if found.few
            else f"{found.rows_rejected:,} rows in {found.lists_rejected:,} lists rejected.",
            metadata=_read(found),
        )
        if _joins(settings):
            yield _joined(settings, batch, found)


def _joined(settings: Settings, batch: str, found: Ingested) -> Finding:
    gate = join_gate(found.rows_accepted, found.rows_joined, found.ids_differ_in, settings.gate)
    return Finding(
        "ranking_log",
        JOINED,
        batch,
        passed=gate is None or gate.passed,
        description="No attribute comes from the item table."
        if gate is None
        else f"The data gate {gate.gate} is {'open' if gate.passed else 'closed'}."
        if found.few
        else f"{gate.text}.",
        metadata={}
        if found.few
        else {"rows": found.rows_accepted, "rows_joined": found.rows_joined},
    )


def _read(found: Ingested | None) -> dict[str, Any]:
    if found is None or found.few:
        return {}
    return {
        "rows_read": found.rows_read,
        "rows_rejected": found.rows_rejected,
        "lists_rejected": found.lists_rejected,
        "rules": table([_rule(each) for each in found.rules]),
    }


def _rule(count: RuleCount) -> dict[str, Any]:
    return {
        "rule": count.rule,
        "rows": count.rows,
        "lists": count.lists,
        "sample": "\n".join(count.sample),
    }


def rules_of(found: dg.AssetCheckEvaluation) -> tuple[RuleCount, ...]:
    """The broken rules that a result of the contract's check tells of."""
    said = found.metadata.get("rules")
    rows: list[dict[str, Any]] = []
    if isinstance(said, dg.TableMetadataValue):
        rows = [dict(record.data) for record in said.records]
    return tuple(
        RuleCount(row["rule"], row["rows"], row["lists"], tuple(row["sample"].split("\n")))
        for row in rows
    )
