"""From stored counts to rows of scores, and into the batch's file.

Not here: formulas (``metrics.evaluate``), how sure a score is (``evidence``), and whether it is
acceptable (``verdicts``).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache

import duckdb
import pandas as pd
import pandera.errors
import pyarrow

from metrics import WHOLE, Counts, Evaluation, Measure, Reason, evaluate
from pipeline.counts.stored_counts import Slice, StoredCounts
from pipeline.errors import AuditError
from pipeline.scores.evidence.doubt import Evidence, Sure, nothing_about
from pipeline.scores.verdicts import Basis, verdict_on
from pipeline.settings.audit import Settings, hash_of
from pipeline.store.batch_files import DATABASE
from schemas.columns import Row, quoted
from schemas.scores import FAIRNESS_HISTORY, GROUP_HISTORY, SCORE_SCHEMA


@dataclass(frozen=True)
class RunStamp:
    """What every stored row says about its origin."""

    run_id: str
    code_version: str
    config_hash: str
    input_hash: str
    computed_at: datetime


@dataclass(frozen=True)
class Scored:
    """One evaluation, with the slice and attribute it is about; attribute None for items."""

    part: Slice
    attribute: str | None
    evaluation: Evaluation
    counts: Counts


def scored(
    stored: StoredCounts, settings: Settings, measures: Iterable[Measure]
) -> Iterator[Scored]:
    """Every measure on every slice and attribute."""
    wanted = tuple(measures)
    for part in sorted(stored.slices, key=lambda each: (each[0] != WHOLE, each)):

        @cache
        def counts(attribute: str, expected: str | None, part: Slice = part) -> Counts:
            return stored.counts(part, attribute, expected=expected, settings=settings)

        for at, attribute in enumerate(settings.attribute_names):
            for measure in wanted:
                grouped = measure.metric.grouped
                if not grouped and at > 0:
                    continue
                here = counts(attribute, measure.expects)
                found = evaluate(measure, here, top_is_good=settings.top_of_list == "good")
                yield Scored(part, attribute if grouped else None, found, here)


def rows_of(
    found: Iterable[Scored],
    stored: StoredCounts,
    settings: Settings,
    batch: str,
    stamp: RunStamp,
    evidence: Evidence | None = None,
) -> tuple[list[Row], list[Row]]:
    """Rows of fairness_history and of group_history; without ``evidence``, nothing is sure."""
    scores: list[Row] = []
    groups: list[Row] = []
    origin = asdict(stamp)
    for each in found:
        key = {
            "batch": batch,
            "slice": each.part[0],
            "slice_value": each.part[1],
            "attribute": each.attribute,
            "metric": each.evaluation.measure.label,
        }
        about = each.attribute or settings.attribute_names[0]
        size = stored.slices[each.part]
        found_out = each.part, about, each.evaluation, each.counts, size["queries"]
        sure = evidence.of(*found_out) if evidence else nothing_about(each.evaluation)
        bases = _bases(each, stored)
        scores += [
            {**key, **row, **origin} for row in _score_rows(each, sure, bases, size, settings)
        ]
        if each.evaluation.values is not None and each.attribute is not None:
            groups += [{**key, **row, **origin} for row in _group_rows(each, sure, bases)]
    return scores, groups


def _bases(each: Scored, stored: StoredCounts) -> list[Basis]:
    """How much each group rests on; the whole slice, for a metric without groups."""
    size, counts = stored.slices[each.part], each.counts
    relevant = counts.total("relevant")
    if each.attribute is None or not each.evaluation.measure.metric.grouped:
        return [Basis("", size["lists"], size["queries"], size["rows"], int(relevant.sum()))]
    rows = counts.total("rows")
    return [
        Basis(name, held.lists, held.queries, int(rows[at]), int(relevant[at]))
        for at, name in enumerate(counts.groups)
        for held in [stored.holding(each.part, each.attribute, name)]
    ]


def _compared(each: Scored, bases: Sequence[Basis], size: Row) -> list[Basis]:
    """What a verdict rests on: every group that is compared, or the slice as a whole.

    A group that is expected, and never shown, must not make a verdict impossible.
    """
    if len(bases) == 1 or each.evaluation.measure.expects:
        relevant = sum(basis.relevant for basis in bases)
        return [Basis("", size["lists"], size["queries"], size["rows"], relevant)]
    takes_part = each.counts.takes_part
    return [basis for basis, compared in zip(bases, takes_part, strict=True) if compared]


def _score_rows(
    each: Scored, sure: Sure, bases: Sequence[Basis], size: Row, settings: Settings
) -> Iterator[Row]:
    """One row per score of an evaluation, without its key."""
    compared = _compared(each, bases, size)
    resampled = settings.evidence.resamples > 0
    for score, doubt in zip(each.evaluation.scores, sure.scores, strict=True):
        verdict = verdict_on(score, settings, each.attribute, each.part[0], doubt, compared)
        yield {
            "aggregation": score.name.aggregation.name if score.name.aggregation else None,
            "value": score.value,
            "reason": score.reason,
            "worst_group": score.worst_group,
            "best_group": score.best_group,
            "lower": doubt.lower,
            "upper": doubt.upper,
            "confidence": settings.evidence.confidence if resampled else None,
            "seed": settings.evidence.seed,
            "expected": doubt.expected,
            "noise_limit": doubt.noise_limit,
            "p_noise": doubt.p_noise,
            "status": verdict.status,
            "status_reason": verdict.reason,
            "queries": size["queries"],
            "lists": size["lists"],
            "rows": size["rows"],
            "lists_undefined": None if score.lists is None else size["lists"] - score.lists,
        }


def _group_rows(each: Scored, sure: Sure, bases: Sequence[Basis]) -> Iterator[Row]:
    """One row per group of an evaluation, without its key."""
    values, lists = each.evaluation.values, each.evaluation.lists
    if values is None:
        return
    for at, basis in enumerate(bases):
        reason = values.reasons[at]
        lower, upper = sure.groups[at] if sure.groups else (None, None)
        yield {
            "group_value": basis.group,
            "value": None if reason else float(values.values[at]),
            "reason": reason.value if reason else None,
            "lower": lower,
            "upper": upper,
            "n": basis.appearances,
            "relevant": basis.relevant,
            "queries": basis.queries,
            "lists": basis.lists if lists is None else int(lists[at]),
        }


def write_scores(
    connection: duckdb.DuckDBPyConnection,
    database: str,
    scores: Sequence[Row],
    groups: Sequence[Row],
    measures: Sequence[Measure],
) -> None:
    """Validate rows and put them in the place of those of the same measures."""
    labels = [measure.label for measure in measures]
    for table, rows in ((FAIRNESS_HISTORY, scores), (GROUP_HISTORY, groups)):
        arrow = pyarrow.Table.from_pylist(list(rows), schema=table.arrow)
        schema = SCORE_SCHEMA if table is FAIRNESS_HISTORY else table.schema
        try:
            schema.validate(arrow.to_pandas(types_mapper=pd.ArrowDtype), lazy=True)
        except pandera.errors.SchemaErrors as errors:
            broken = sorted({str(each) for each in errors.failure_cases["check"]})
            raise AuditError(
                f"{table.name}: computed values break their schema ({', '.join(broken)}); "
                "nothing was stored. This is a fault of the program: please report it."
            ) from None
        connection.register("computed_rows", arrow)
        target = f"{quoted(database)}.{table.name}"
        connection.execute(f"DELETE FROM {target} WHERE list_contains(?, metric)", [labels])
        connection.execute(f"INSERT INTO {target} BY NAME FROM computed_rows")
        connection.unregister("computed_rows")


def origin_of_scores(
    connection: duckdb.DuckDBPyConnection, settings: Settings, stamp: RunStamp
) -> dict[str, str | None]:
    """Settings and code that the scores of a file come from.

    Where some measures were computed under others, are missing or were not counted, the file is no
    result of the settings as they are, and its digest is that of no settings: the batch stays due.
    """
    rows = connection.execute(
        "SELECT DISTINCT metric, config_hash, code_version, "
        f"reason IS NOT DISTINCT FROM '{Reason.NOT_COUNTED}' "
        f"FROM {DATABASE}.fairness_history"
    ).fetchall()
    whole = {(label, stamp.config_hash, stamp.code_version, False) for label in settings.metrics}
    if set(rows) == whole:
        said, text = stamp.config_hash, settings.deciding
    else:
        said, text = hash_of(sorted(rows)), None
    return {"config_hash": said, "settings": text, "code_version": stamp.code_version}


def drop_other_measures(connection: duckdb.DuckDBPyConnection, settings: Settings) -> None:
    """Forget scores of measures that the settings no longer name."""
    for table in (FAIRNESS_HISTORY, GROUP_HISTORY):
        connection.execute(
            f"DELETE FROM {DATABASE}.{quoted(table.name)} WHERE NOT list_contains(?, metric)",
            [list(settings.metrics)],
        )
