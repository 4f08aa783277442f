"""The check on the history: whether any alert was seen in a batch.

Not here: which alerts there are (``pipeline.monitoring``), and sending them.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg

from assets.checks import Finding, check_spec, evaluated, reported, table
from assets.left_out import HISTORY_ASSET, left_out
from assets.resources import Audit
from pipeline.errors import AuditError
from pipeline.monitoring.alerts import alerts, gated_batches

ALERTS = "alerts"


def alert_check(batches: dg.PartitionsDefinition[str]) -> dg.AssetsDefinition:
    """The check that no alert was seen in a batch; acknowledged ones are seen as well."""
    text = (
        "No threshold is passed, no score shifted, no other group loses, no group is missing, "
        "and no gate failed."
    )

    @dg.multi_asset_check(
        name="watch", specs=[check_spec(HISTORY_ASSET, ALERTS, text, batches)], can_subset=True
    )
    def watch(context: dg.AssetCheckExecutionContext, audit: Audit) -> Iterator[Any]:
        keys = context.partition_keys
        gone = left_out(audit.settings, context.run, keys)
        try:
            left = [key for key in keys if key not in gone]
            gated = gated_batches(audit.settings, left)
            found = [
                finding(key, alerts(audit.settings, batches=[key]), gated=key in gated)
                for key in left
            ]
            yield from reported(context.instance, found)
        except AuditError as error:
            context.log.warning(f"alerts cannot be looked up: {error}")
        yield from evaluated(context.check_specs)

    return watch


def finding(batch: str, seen: Sequence[dict[str, Any]], *, gated: bool = False) -> Finding:
    """The result for one batch, with the alerts seen in it.

    ``gated``: a gate is closed, also where its alert may not be told (``privacy.min_cell``).
    """
    kinds = Counter(row["kind"] for row in seen)
    said = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
    return Finding(
        HISTORY_ASSET,
        ALERTS,
        batch,
        # An improvement is worth telling, and nothing to be warned of.
        passed=not gated and all(row["kind"] == "improvement" for row in seen),
        description=f"Alerts seen: {said}."
        if seen
        else "A data gate is closed."
        if gated
        else "No alert was seen.",
        metadata={
            "alerts": len(seen),
            "seen": table([_shown(row) for row in seen]),
        },
    )


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "alert": row["alert"],
        "kind": row["kind"],
        "opened": row["opened"],
        "acknowledged_by": row["acknowledged_by"] or "",
        "text": row["text"],
    }
