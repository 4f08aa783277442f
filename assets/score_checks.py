"""Checks on scores: whether they stay within their thresholds, and whether ERBR has a value.

Not here: the verdicts, which were reached with the scores (``pipeline.scores.verdicts``).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from math import inf
from typing import Any

import dagster as dg

from assets.checks import Finding, check_spec, evaluated, reported, table
from assets.describe import at_limit
from assets.left_out import left_out, work_id
from assets.resources import Audit
from assets.scores import asset_of
from assets.stored import Stored, stored
from metrics import UNKNOWN, WHOLE, ScoreName, parse_score
from pipeline.errors import AuditError
from pipeline.formatting.evidence import power_text
from pipeline.history.manifest import manifest
from pipeline.history.series import label_of
from pipeline.monitoring.gates import join_gate
from pipeline.monitoring.unjudged import unjudged
from pipeline.settings.audit import Settings
from pipeline.settings.sections import Threshold
from schemas.columns import Row
from schemas.judged import as_judged, group_names

BINARY = "relevance_is_binary"


def slug_of(label: str) -> tuple[str, str]:
    """The metric asset of a score and the name of its check."""
    score = parse_score(label)
    return asset_of(score.measure.metric), score.slug


def score_checks(
    settings: Settings, batches: dg.PartitionsDefinition[str], metrics: Iterable[str]
) -> list[dg.AssetsDefinition]:
    """The checks on scores, as one step; none where nothing is judged and ERBR is not computed."""
    judged = {slug_of(label): (label, limit) for label, limit in settings.thresholds.items()}
    specs = [
        check_spec(metric, slug, f"{label} is at {at_limit(limit)}, by the batch itself.", batches)
        for (metric, slug), (label, limit) in judged.items()
    ]
    if "ERBR" in metrics:
        text = "Relevance is 0 or 1 on every row; ERBR has no value otherwise."
        specs.append(check_spec("ERBR", BINARY, text, batches))
    if not specs:
        return []

    @dg.multi_asset_check(name="judge", specs=specs, can_subset=True)
    def judge(context: dg.AssetCheckExecutionContext, audit: Audit) -> Iterator[Any]:
        keys = context.partition_keys
        selected = sorted(
            (key.asset_key.to_user_string(), key.name) for key in context.selected_asset_check_keys
        )

        def findings(batch: str, found: Stored) -> Iterator[Finding]:
            if ("ERBR", BINARY) in selected:
                yield binary_result(batch, found.info["graded_rows"], few=found.few)
            labels = [judged[key][0] for key in selected if key in judged]
            yield from verdicts(audit.settings, labels, batch, found)

        gone = left_out(audit.settings, context.run, keys)
        for batch in (key for key in keys if key not in gone):
            try:
                found = stored(audit.settings, batch, work_id(context.run))
                results = list(findings(batch, found))
            except AuditError as error:
                context.log.warning(f"{batch} is not judged: {error}")
                continue
            yield from reported(context.instance, results)
        yield from evaluated(context.check_specs)

    return [judge]


def verdicts(
    settings: Settings, labels: Iterable[str], batch: str, found: Stored
) -> Iterator[Finding]:
    """Results of the checks of some scores of a batch: none passes where a gate is closed.

    Gates but that on the item table are known from the merge of these scores on.
    """
    closed = _closed(settings, batch, found)
    for label in labels:
        rows = [row for row in found.scores if label_of(row) == label]
        judged_here = [row for row in rows if row["status"] != "not_judged"]
        places = {_place(row) for row in judged_here}
        told = [row for row in found.told if label_of(row) == label and _place(row) in places]
        limit = settings.thresholds[label]
        said = verdict(parse_score(label), limit, batch, judged_here, told, found.groupless)
        if closed:
            text = f"Not judged: {closed}. By itself: {said.description}"
            said = replace(said, passed=False, description=text)
        yield said


def _closed(settings: Settings, batch: str, found: Stored) -> str | None:
    """Which gate keeps the scores at hand from being judged, in words; None where none does."""
    rows, joined, differ = (
        found.info[name] for name in ("rows_accepted", "rows_joined", "ids_differ_in")
    )
    gate = join_gate(rows, joined, differ, settings.gate)
    if gate and not gate.passed:
        return f"the data gate {gate.gate} is closed" + ("" if found.few else f": {gate.text}")
    merged = manifest(settings).get(batch)
    if merged is None or merged.run_id != found.info["run_id"]:
        return None
    return next((each.text for each in unjudged(settings, [batch]) if each.gated), None)


def binary_result(batch: str, graded: int, *, few: bool = False) -> Finding:
    """Whether ERBR can be computed; of a batch of too ``few`` without their number."""
    rows = "Some rows" if few else f"{graded:,} rows"
    said = f"{rows} have graded relevance, so ERBR has no value."
    return Finding(
        "ERBR",
        BINARY,
        batch,
        passed=graded == 0,
        description=said if graded else "Relevance is 0 or 1 everywhere.",
        metadata={} if few else {"graded_rows": graded},
    )


def verdict(
    score: ScoreName,
    limit: Threshold,
    batch: str,
    rows: Sequence[Row],
    told: Sequence[Row] | None = None,
    groupless: Collection[str] = (),
) -> Finding:
    """One score on one batch, for every slice and attribute.

    Fails on a breach anywhere, and where the whole batch has no value, or too little to tell: what
    could not be shown is not fair.  Slices like that are listed, but fail nothing as long as any
    of the attribute has a value, or the whole batch: small slices lack groups.  Nothing is fair of
    ``groupless`` attributes.  Composition is told and fails nothing: the order of the lists is not
    unfair.
    ``told``, where it is another than ``rows``, is what is said of them: it fails for all alike.
    """
    nobody = sorted({row["attribute"] for row in rows} & {*groupless})
    failing = [*filter(_fails, rows), *_without_value(rows), *nobody]
    passed = bool(rows) and not failing
    less = told is not None and told != rows
    rows = rows if told is None else told
    breaches = [row for row in rows if row["status"] == "breach"]
    untold = [row for row in rows if row["status"] in ("undefined", "insufficient")]
    mixed = [row for row in rows if row["status"] == "composition"]
    held = [row for row in rows if row["status"] == "ok"]
    return Finding(
        asset_of(score.measure.metric),
        score.slug,
        batch,
        passed=passed,
        description="".join(f"{name} has no group but {UNKNOWN}. " for name in nobody)
        + _verdict_text(limit, rows, breaches, mixed, untold)
        + (_LESS if less else ""),
        metadata={
            "score": score.label,
            "threshold": at_limit(limit),
            "judged": len(rows),
            "breaches": len(breaches),
            "composition": len(mixed),
            "undefined": sum(row["status"] == "undefined" for row in untold),
            "insufficient": sum(row["status"] == "insufficient" for row in untold),
            "breaching": table([_shown(row) for row in _worst_first(score, breaches)]),
            "by_composition": table([_shown(row) for row in mixed]),
            "untold": table([_shown(row) for row in untold]),
            "ok": table([_shown(row) for row in held if row["slice"] == WHOLE]),
        },
    )


def _without_value(rows: Sequence[Row]) -> list[Row]:
    """Rows of attributes that are judged in slices alone, and have no value in any."""
    valued = {row["attribute"] for row in rows if row["slice"] == WHOLE or _has_value(row)}
    return [row for row in rows if row["attribute"] not in valued]


def _has_value(row: Row) -> bool:
    return row["status"] != "undefined" or row["value"] is not None


_LESS = " What is about too few is judged and not told (privacy.min_cell)."


def _place(row: Row) -> tuple[str, ...]:
    return tuple(row[name] or "" for name in ("slice", "slice_value", "attribute"))


def _fails(row: Row) -> bool:
    return row["status"] == "breach" or (
        row["slice"] == WHOLE and row["status"] in ("undefined", "insufficient")
    )


def _worst_first(score: ScoreName, rows: Sequence[Row]) -> list[Row]:
    # A breach without a value is one that no number is low enough for.
    def badness(row: Row) -> float:
        value = as_judged(row)["value"]
        return -inf if value is None else float(value)

    return sorted(rows, key=badness, reverse=score.alarm == "high")


def _verdict_text(
    limit: Threshold,
    rows: Sequence[Row],
    breaches: Sequence[Row],
    mixed: Sequence[Row],
    untold: Sequence[Row],
) -> str:
    if not rows:
        return "The score was not computed for the batch."
    fair = len(rows) - len(breaches) - len(mixed) - len(untold)
    said = [f"{fair} of {len(rows)} are at {at_limit(limit)}"]
    if breaches:
        said.append(f"{len(breaches)} are not ({_attributes(breaches)})")
    if mixed:
        said.append(
            f"{len(mixed)} are not, nor would lists in random order be ({_attributes(mixed)}): "
            "what groups differ in is not their order"
        )
    for (what, why), same in groupby(sorted(map(_why, untold))):
        said.append(f"{len(list(same))} {what} ({why})")
    return "; ".join(said) + "."


def _attributes(rows: Sequence[Row]) -> str:
    return ", ".join(sorted({row["attribute"] or "no attribute" for row in rows}))


def _why(row: Row) -> tuple[str, str]:
    if row["status"] == "undefined":
        return "have no value", row["reason"] or "without the groups of too little evidence"
    return "rest on too little", row["status_reason"]


def _shown(row: Row) -> dict[str, Any]:
    row = as_judged(row)
    return {
        "slice": row["slice"],
        "slice_value": row["slice_value"],
        "attribute": row["attribute"] or "",
        "value": row["value"],
        "lower": row["lower"],
        "upper": row["upper"],
        "worst_group": row["worst_group"] or "",
        "reason": row["reason"] or row["status_reason"] or "",
        "expected": row["expected"],
        "p_noise": row["p_noise"],
        "against_chance": row.get("against_chance"),
        "not_judged": ", ".join(group_names(row.get("thin_groups"))),
        "certainty": power_text(row),
    }
