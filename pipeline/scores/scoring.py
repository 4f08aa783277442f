"""From stored counts to rows of scores, and into the batch's file.

Not here: formulas (``metrics.evaluate``), how sure a score is (``evidence``), and whether it is
acceptable (``verdicts``).
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from math import ceil, inf, isfinite

import duckdb

from metrics import WHOLE, Counts, Evaluation, Measure, Reason, Score, evaluate
from metrics.counts import COMPARED
from pipeline.counts.stored_counts import Slice, StoredCounts
from pipeline.scores.evidence.differences import NOTHING
from pipeline.scores.evidence.doubt import Doubt, Evidence, Sure, nothing_about
from pipeline.scores.rows import validated
from pipeline.scores.verdicts import JUDGED, Basis, few_of, holds, too_little, verdict_on
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
    lacking = cache(lambda attribute: stored.lacking(attribute, settings))
    for each in found:
        key = {
            "batch": batch,
            "slice": each.part[0],
            "slice_value": each.part[1],
            "attribute": each.attribute,
            "metric": each.evaluation.measure.label,
        }
        nowhere = lacking(each.attribute) if each.attribute else ()
        rows = _Rows(each, stored, settings, evidence, nowhere)
        scores += [{**key, **row, **origin} for row in rows.of_scores()]
        if each.evaluation.values is not None and each.attribute is not None:
            groups += [{**key, **row, **origin} for row in rows.of_groups()]
    return scores, groups


class _Rows:
    """The rows of one evaluation, without its key."""

    def __init__(
        self,
        each: Scored,
        stored: StoredCounts,
        settings: Settings,
        evidence: Evidence | None,
        lacking: Sequence[str],
    ) -> None:
        self._each, self._settings, self._evidence = each, settings, evidence
        self._about = each.attribute or settings.attribute_names[0]
        self._size = stored.slices[each.part]
        self._sure = self._doubt_about(each.evaluation)
        self._bases = self._rests_on(stored)
        self._lacking = lacking

    def _doubt_about(self, evaluation: Evaluation) -> Sure:
        if self._evidence is None:
            return nothing_about(evaluation)
        each = self._each
        return self._evidence.of(
            each.part, self._about, evaluation, each.counts, self._size["queries"]
        )

    @property
    def _slice_basis(self) -> Basis:
        size, relevant = self._size, int(self._each.counts.total("relevant").sum())
        return Basis("", size["lists"], size["queries"], size["rows"], relevant)

    def _rests_on(self, stored: StoredCounts) -> list[Basis]:
        """How much each group rests on; the whole slice, for a metric without groups."""
        each, counts = self._each, self._each.counts
        if each.attribute is None or not each.evaluation.measure.metric.grouped:
            return [self._slice_basis]
        rows, relevant = counts.total("rows"), counts.total("relevant")
        effective = self._sure.queries or (inf,) * len(counts.groups)
        return [
            Basis(name, held.lists, held.queries, int(rows[at]), int(relevant[at]), effective[at])
            for at, name in enumerate(counts.groups)
            for held in [stored.holding(each.part, each.attribute, name)]
        ]

    def _judged(self) -> "_Judged":
        """What verdicts are about: the groups with enough evidence, or the slice as a whole.

        A group that is expected, and never shown, must not make a verdict impossible.  Where fewer
        than two groups have enough, there is nothing to judge, and all are held against the minima.
        """
        each, counts = self._each, self._each.counts
        measure = each.evaluation.measure
        if len(self._bases) == 1 or measure.expects:
            return _Judged(each.evaluation, self._sure, [self._slice_basis])
        takes_part = counts.takes_part
        compared = [each for each, part in zip(self._bases, takes_part, strict=True) if part]
        # A group that should be there, and is in no list at all, rests on nothing.
        nowhere = [Basis(name, 0, 0, 0, 0, 0.0) for name in self._lacking]
        thin = too_little(measure, self._settings, [*compared, *nowhere])
        enough = [basis for basis in compared if basis.group not in thin]
        if not measure.metric.per_group:
            # The number is of all groups: none is left out of it.
            bases = [self._slice_basis] if len(enough) >= COMPARED else compared
            return _Judged(each.evaluation, self._sure, bases, (), few_of(thin))
        alone = len(enough) == len(compared) or len(enough) < COMPARED
        if alone or not self._has_threshold(measure):
            return _Judged(each.evaluation, self._sure, compared, tuple(thin), few_of(thin))
        fewer = evaluate(
            measure, counts, top_is_good=self._settings.top_of_list == "good", without=thin
        )
        return _Judged(fewer, self._doubt_about(fewer), enough, tuple(thin), few_of(thin))

    def _has_threshold(self, measure: Measure) -> bool:
        here = self._each.attribute, self._each.part[0]
        limits = (self._settings.thresholds.get(score.label) for score in measure.scores())
        return any(limit is not None and holds(limit, *here) for limit in limits)

    def of_scores(self) -> Iterator[Row]:
        """One row per score."""
        settings, size, judged = self._settings, self._size, self._judged()
        resampled = settings.evidence.resamples > 0
        scores = zip(
            self._each.evaluation.scores,
            self._sure.scores,
            judged.evaluation.scores,
            judged.sure.scores,
            strict=True,
        )
        for score, doubt, decided, about in scores:
            here = self._each.attribute, self._each.part[0]
            verdict = verdict_on(
                decided, settings, *here, about, judged.bases, left_out=judged.left_out
            )
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
                "expected": about.expected,
                "noise_limit": about.noise_limit,
                "p_noise": about.p_noise,
                **_against_chance(about),
                "status": verdict.status,
                "status_reason": verdict.reason
                or (decided.reason if verdict.status == "undefined" and not score.reason else None),
                **(judged.columns(decided, about) if verdict.status in JUDGED else {}),
                "assured": verdict.assured,
                "detectable": verdict.detectable,
                "lists_needed": None
                if verdict.times is None
                else ceil(verdict.times * size["lists"]),
                "queries": size["queries"],
                "lists": size["lists"],
                "rows": size["rows"],
                "lists_undefined": None if score.lists is None else size["lists"] - score.lists,
            }

    def of_groups(self) -> Iterator[Row]:
        """One row per group."""
        values, lists = self._each.evaluation.values, self._each.evaluation.lists
        if values is None:
            return
        for at, basis in enumerate(self._bases):
            reason = values.reasons[at]
            lower, upper = self._sure.groups[at] if self._sure.groups else (None, None)
            apart = self._sure.apart[at] if self._sure.apart else NOTHING
            yield {
                "group_value": basis.group,
                "value": None if reason else float(values.values[at]),
                "reason": reason.value if reason else None,
                "lower": lower,
                "upper": upper,
                "compared_with": None if apart == NOTHING else self._sure.worst,
                "difference_lower": apart[0],
                "difference_upper": apart[1],
                "n": basis.appearances,
                "relevant": basis.relevant,
                "queries": basis.queries,
                "effective_queries": basis.effective if isfinite(basis.effective) else None,
                "lists": basis.lists if lists is None else int(lists[at]),
            }


def _against_chance(doubt: Doubt) -> Row:
    against = doubt.against_chance
    if against is None:
        return {}
    return {
        "against_chance": against.value,
        "against_chance_lower": against.lower,
        "against_chance_upper": against.upper,
    }


@dataclass(frozen=True)
class _Judged:
    """An evaluation that verdicts are about, and what it rests on.

    ``thin`` are the groups with too little evidence; ``left_out`` says of what one of them has too
    little, None where there is none.
    """

    evaluation: Evaluation
    sure: Sure
    bases: Sequence[Basis]
    thin: tuple[str, ...] = ()
    left_out: str | None = None

    def columns(self, score: Score, doubt: Doubt) -> Row:
        """The score that was judged, and of which groups."""
        groups = [self.evaluation.groups[at] for at in self.evaluation.compared]
        thin = {"thin_groups": json.dumps(self.thin, ensure_ascii=False) if self.thin else None}
        if not set(groups).isdisjoint(self.thin):
            # Fewer than two groups have enough: nothing was judged.
            return thin
        return {
            **thin,
            "judged_value": score.value,
            "judged_lower": doubt.lower,
            "judged_upper": doubt.upper,
            "judged_worst_group": score.worst_group,
            "judged_best_group": score.best_group,
            "judged_groups": json.dumps(groups, ensure_ascii=False) if groups else None,
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
        schema = SCORE_SCHEMA if table is FAIRNESS_HISTORY else table.schema
        connection.register("computed_rows", validated(table, schema, rows))
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
