"""What a release changed for each group, against the last batch before it.

Trends begin anew with a release, so that nothing else says what it did.

Not here: which batches begin a release (``releases``), and the statistics
(``pipeline.scores.evidence.two_batches``).
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

import duckdb

from metrics import WHOLE, Aggregation, parse_measure
from pipeline.errors import AuditError
from pipeline.monitoring.findings import Findings
from pipeline.monitoring.gates import Releases
from pipeline.monitoring.subjects import Part, Series, Subject
from pipeline.settings.audit import Settings
from pipeline.settings.choices import followed_scores
from pipeline.store.paths import store_of
from pipeline.store.sessions import attach
from schemas.columns import Row
from schemas.history import BATCHES

_BEFORE, _AFTER = "batch_before", "batch_after"


def release_changes(
    connection: duckdb.DuckDBPyConnection,
    settings: Settings,
    every: Sequence[str],
    start: str,
    releases: Releases,
    gated: Collection[str],
) -> dict[str, list[Row]]:
    """Rows of release_changes of the releases that begin with a batch from ``start`` on.

    Compared are the first and the last batch that no gate kept out, on either side of the release.
    There are none where a file of theirs is not there, or was counted under other settings.
    """
    if not settings.evidence.resamples:
        return {}
    found: dict[str, list[Row]] = {}
    for batch in every:
        if batch < start or batch in gated or batch not in releases.first_batches:
            continue
        before = [each for each in every if each < batch and each not in gated]
        if before and (rows := _rows(connection, settings, before[-1], batch)):
            found[batch] = rows
    return found


def _rows(
    connection: duckdb.DuckDBPyConnection, settings: Settings, before: str, after: str
) -> list[Row]:
    from pipeline.scores.evidence.comparisons import OF_RATIOS
    from pipeline.scores.evidence.two_batches import all_changes, groups_of

    counted = connection.execute(
        f"SELECT count(*) FROM history.{BATCHES.name} WHERE batch IN (?, ?) AND rows_hash = ?",
        [before, after, settings.rows_hash],
    ).fetchall()
    paths = [store_of(settings).batch(each) for each in (before, after)]
    if counted[0][0] < 2 or not all(path.exists() for path in paths):
        return []
    ratios: dict[str, bool] = {}
    for score in followed_scores(settings).values():
        if isinstance(score.aggregation, Aggregation):
            ratios.setdefault(score.measure.label, score.aggregation.name in OF_RATIOS)
    measures = [parse_measure(label) for label in ratios]
    sides = []
    for path, name in zip(paths, (_BEFORE, _AFTER), strict=True):
        try:
            attach(connection, path, name, read_only=True)
            sides.append(groups_of(connection, name, settings, measures))
        except (AuditError, duckdb.Error):
            # `evenrank verify` says what is wrong with a file.
            return []
        finally:
            with suppress(duckdb.Error):
                connection.execute(f"DETACH {name}")
    return [
        {
            "batch": after,
            "batch_before": before,
            "attribute": attribute,
            "metric": metric,
            "group_value": each.group,
            "value_before": each.before,
            "value_after": each.after,
            "is_ratio": each.is_ratio,
            "against_before": each.against_before,
            "against_after": each.against_after,
            "change": each.change,
            "lower": each.lower,
            "upper": each.upper,
            "changed": each.is_certain,
        }
        for (attribute, metric), found in all_changes(
            sides[0], sides[1], ratios, settings.evidence.confidence
        ).items()
        for each in found
    ]


def release_findings(
    into: Findings,
    rows: Sequence[Row],
    releases: Releases,
    batches: Sequence[str],
    attributes: Collection[str],
    least: int,
) -> None:
    """A release that changed something for a group, attribute by attribute.

    It is over once ``least`` of ``batches`` are of the release: from there on trends speak again.
    """
    into.found |= {about(row["batch"], row["attribute"]) for row in rows if row["changed"]}
    now = releases.of(into.batch)
    since = [each for each in batches if now <= each < into.batch]
    into.fine |= {
        about(first, attribute)
        for first in releases.first_batches
        if first < now or (first == now and len(since) >= least)
        for attribute in attributes
    }


def about(batch: str, attribute: str | None) -> Subject:
    """The release that begins with ``batch``, and an attribute."""
    return Subject.about("release", Series(WHOLE, WHOLE, attribute, batch, None))


def changed_of(rows: Sequence[Row], part: Part) -> list[Row]:
    """Of the rows of a batch, those about a part that are beyond chance, the largest first.

    Where there are two groups, what one gains the other loses: the one whose value fell is told.
    """
    if not part.is_whole:
        return []
    about_it = [row for row in rows if row["attribute"] == part.attribute]
    groups = Counter(row["metric"] for row in about_it)
    told = (row for row in about_it if groups[row["metric"]] > 2 or row["change"] < 0)
    return sorted((row for row in told if row["changed"]), key=_sureness, reverse=True)


def _sureness(row: Mapping[str, float]) -> float:
    return abs(row["change"]) / (row["upper"] - row["lower"] or 1.0)
