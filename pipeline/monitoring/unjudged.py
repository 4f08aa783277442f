"""Batches without a breach that are no good ones: not judged, or with nothing to judge.

A gate is closed, or an attribute with a threshold has no group but ``unknown``, or no value.  Too
little evidence is neither: a value that exists was looked at.

Not here: the gates (``gates``), and the verdicts on single scores (``scores.verdicts``).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from metrics import UNKNOWN, WHOLE
from pipeline.formatting.numbers import counted
from pipeline.history.commits import has_history
from pipeline.history.opening import has_table, open_history
from pipeline.privacy.suppression import Shown
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of
from pipeline.trends import GATES as GATE_NAMES
from schemas.monitoring import GATES


@dataclass(frozen=True)
class Unjudged:
    """Why a batch, or one attribute of it, is not judged, in words.

    ``attribute`` is None for scores without groups, and for a whole batch that a gate keeps out.
    """

    batch: str
    attribute: str | None
    gated: bool
    text: str


def unjudged(settings: Settings, batches: Sequence[str]) -> list[Unjudged]:
    """What was not judged of ``batches`` although a threshold is set, in order of their keys.

    Of a batch that a gate keeps out only that.  Metrics without groups are as one attribute.
    """
    if not has_history(store_of(settings)):
        return []
    with open_history(settings, read_only=True) as connection:
        gated = _gated(connection, settings, batches)
        others = [batch for batch in batches if batch not in gated]
        return sorted(
            [*gated.values(), *_without_groups_or_values(connection, others)],
            key=lambda each: (each.batch, each.attribute or ""),
        )


def _gated(
    connection: duckdb.DuckDBPyConnection, settings: Settings, batches: Sequence[str]
) -> dict[str, Unjudged]:
    """The first gate of each batch that is closed; its numbers only where they may be told."""
    if not has_table(connection, GATES):
        return {}
    closed = "NOT passed AND list_contains(?, batch)"
    key = "batch, gate, attribute"
    told = {
        tuple(row[:3]): row[3]
        for row in connection.execute(
            f"SELECT {key}, text FROM {Shown(connection, settings).table(GATES)} WHERE {closed}",
            [list(batches)],
        ).fetchall()
    }
    found: dict[str, Unjudged] = {}
    for batch, gate, attribute in connection.execute(
        f"SELECT {key} FROM history.{GATES.name} WHERE {closed} "
        "ORDER BY batch, list_position(?, gate), attribute",
        [list(batches), list(GATE_NAMES)],
    ).fetchall():
        text = told.get((batch, gate, attribute))
        said = f"the data gate {gate} is closed" + (f": {text}" if text else "")
        found.setdefault(batch, Unjudged(batch, None, True, said))
    return found


def _without_groups_or_values(
    connection: duckdb.DuckDBPyConnection, batches: Sequence[str]
) -> list[Unjudged]:
    """Attributes of which a threshold judges nothing that is there.

    Where thresholds are about the whole batch, what slices have is no value of it.
    """
    groups = {
        (batch, attribute): number
        for batch, attribute, number in connection.execute(
            "SELECT batch, attribute, count(DISTINCT group_value) FILTER (group_value <> ?) "
            "FROM history.rank_counts WHERE slice = ? AND list_contains(?, batch) GROUP BY ALL",
            [UNKNOWN, WHOLE, list(batches)],
        ).fetchall()
    }
    found = []
    for batch, attribute, scores, valued, reasons in connection.execute(
        "SELECT batch, attribute, count(*), "
        "count(*) FILTER (value IS NOT NULL OR status <> 'undefined'), "
        "string_agg(DISTINCT split_part(reason, ':', 1), ', ' ORDER BY split_part(reason, ':', 1)) "
        "FROM (SELECT *, bool_or(slice = ?) OVER (PARTITION BY batch, attribute) AS of_whole "
        "FROM history.fairness_history WHERE list_contains(?, batch) "
        "AND status NOT IN ('not_judged', 'gated')) WHERE slice = ? OR NOT of_whole GROUP BY ALL",
        [WHOLE, list(batches), WHOLE],
    ).fetchall():
        if groups.get((batch, attribute)) == 0:
            said = f"{attribute} has no group but {UNKNOWN}: no score of it says anything"
        elif valued == 0:
            about = f" of {attribute}" if attribute else " without groups"
            why = f" ({reasons})" if reasons else ""
            said = f"no value in {counted(scores, 'score')}{about} with a threshold{why}"
        else:
            continue
        found.append(Unjudged(batch, attribute, False, said))
    return found
