"""Tables of scores and group values, and the checks of their rows.

Not here: columns that an assessment adds in the history (``history``).
"""

from math import isfinite

import pandas as pd
import pandera.pandas as pa

from metrics import AGGREGATIONS, METRICS, parse_score
from schemas.columns import Column, Table
from schemas.tables import (
    ATTRIBUTE,
    BATCH,
    CONFIDENCE,
    GROUP_VALUE,
    LISTS,
    LOWER,
    QUERIES,
    ROWS,
    SEED,
    SLICE,
    SLICE_VALUE,
    UPPER,
)

WAYS = list(
    dict.fromkeys(
        way.name for ways in (AGGREGATIONS, *(m.usual.ways for m in METRICS)) for way in ways
    )
)
"""Aggregations of groups and readings of numbers: what may follow a metric after a dot."""

LABEL = "metric || coalesce('.' || aggregation, '')"
"""The score that a row is about as printed, in SQL."""
STATUSES = ("ok", "breach", "composition", "insufficient", "undefined", "not_judged", "gated")
"""Verdicts: within the threshold; beyond it; beyond it as lists in random order would be; too
little to tell; no value; no threshold; and not judged because a data gate is closed."""

_RUN = (
    Column("run_id", "VARCHAR", "run that computed the row"),
    Column("code_version", "VARCHAR", "version of the code, and a digest of what computes"),
    Column("config_hash", "VARCHAR", "digest of the settings that numbers depend on"),
    Column("input_hash", "VARCHAR", "digest of the delivered files"),
    Column("computed_at", "TIMESTAMP", "when the row was computed (UTC)"),
)


def _null_exactly_with_reason(frame: pd.DataFrame) -> "pd.Series[bool]":
    return frame["value"].isna() == frame["reason"].notna()


def _in_declared_range(frame: pd.DataFrame) -> "pd.Series[bool]":
    labels = frame["metric"].str.cat("." + frame["aggregation"], na_rep="").astype(str)
    ranges = {label: parse_score(label).range for label in labels.unique()}
    values = frame["value"].to_numpy(dtype=float, na_value=0.0)
    held = [
        missing or (isfinite(value) and value in ranges[label])
        for missing, value, label in zip(frame["value"].isna(), values, labels, strict=True)
    ]
    return pd.Series(held, index=frame.index)


FAIRNESS_HISTORY = Table(
    "fairness_history",
    "One score per batch, slice, attribute, metric and aggregation: the current ones.",
    (
        BATCH,
        SLICE,
        SLICE_VALUE,
        Column("attribute", "VARCHAR", "attribute; null for metrics without groups", nullable=True),
        Column("metric", "VARCHAR", "metric with its parameters, as printed: AWRF(p=0.1)"),
        Column(
            "aggregation",
            "VARCHAR",
            "how groups are aggregated, or which reading; null for metrics that are one number",
            nullable=True,
            checks=(pa.Check.isin(WAYS),),
        ),
        Column("value", "DOUBLE", "the score; null where it is undefined", nullable=True),
        Column("reason", "VARCHAR", "why the value is null", nullable=True),
        Column("worst_group", "VARCHAR", "group that is worst off", nullable=True),
        Column("best_group", "VARCHAR", "group that is best off", nullable=True),
        LOWER,
        UPPER,
        CONFIDENCE,
        SEED,
        Column(
            "expected",
            "DOUBLE",
            "mean of the judged score where groups do not matter for position; null if unknown",
            nullable=True,
        ),
        Column(
            "noise_limit",
            "DOUBLE",
            "judged score that chance alone passes, to the unfair side, in 5 of 100 such batches",
            nullable=True,
        ),
        Column(
            "p_noise",
            "DOUBLE",
            "probability that chance alone is as unfair as the judged score, or more",
            nullable=True,
            checks=(pa.Check.in_range(0.0, 1.0),),
        ),
        Column(
            "status",
            "VARCHAR",
            "the verdict: " + ", ".join(STATUSES),
            checks=(pa.Check.isin(STATUSES),),
        ),
        Column(
            "status_reason",
            "VARCHAR",
            "why the verdict is insufficient or gated; a group may follow",
            nullable=True,
        ),
        Column(
            "against_chance",
            "DOUBLE",
            "the score of what groups get over what the same lists give in random order; where "
            "groups differ by subtraction, less it; null where chance is not known",
            nullable=True,
        ),
        Column("against_chance_lower", "DOUBLE", "lower end of its interval", nullable=True),
        Column("against_chance_upper", "DOUBLE", "upper end of its interval", nullable=True),
        Column("judged_value", "DOUBLE", "the score of the judged groups", nullable=True),
        Column("judged_lower", "DOUBLE", "lower end of its interval", nullable=True),
        Column("judged_upper", "DOUBLE", "upper end of its interval", nullable=True),
        Column("judged_worst_group", "VARCHAR", "worst off among the judged groups", True),
        Column("judged_best_group", "VARCHAR", "best off among the judged groups", True),
        Column(
            "judged_groups",
            "VARCHAR",
            "groups that the verdict is about, as a JSON array: those with enough evidence",
            nullable=True,
        ),
        Column(
            "thin_groups",
            "VARCHAR",
            "groups with too little evidence, as a JSON array: they keep a score from being ok",
            nullable=True,
        ),
        Column("assured", "BOOLEAN", "whether all of an ok score's interval is within", True),
        Column(
            "detectable",
            "DOUBLE",
            "value that would be a breach in 4 of 5 batches like this one",
            nullable=True,
        ),
        Column(
            "lists_needed",
            "BIGINT",
            "lists that tell the value from the threshold in 4 of 5 batches",
            nullable=True,
        ),
        QUERIES,
        LISTS,
        ROWS,
        Column(
            "lists_undefined",
            "BIGINT",
            "lists without a value, left out of the number; null where it is none of lists",
            nullable=True,
        ),
        *_RUN,
    ),
    key=("batch", "slice", "slice_value", "attribute", "metric", "aggregation"),
)
GROUP_HISTORY = Table(
    "group_history",
    "The value of each group behind the scores.",
    (
        BATCH,
        SLICE,
        SLICE_VALUE,
        ATTRIBUTE,
        Column("metric", "VARCHAR", "metric with its parameters, as printed"),
        GROUP_VALUE,
        Column("value", "DOUBLE", "the group's value; null where it is undefined", nullable=True),
        Column("reason", "VARCHAR", "why the value is null", nullable=True),
        LOWER,
        UPPER,
        Column(
            "compared_with",
            "VARCHAR",
            "the group that is worst off; null for itself, and where no difference is known",
            nullable=True,
        ),
        Column(
            "difference_lower",
            "DOUBLE",
            "lower end of the interval of its value less that of compared_with; the intervals of "
            "all groups hold at once",
            nullable=True,
        ),
        Column("difference_upper", "DOUBLE", "upper end of that interval", nullable=True),
        Column("n", "BIGINT", "rows of the group"),
        Column("relevant", "BIGINT", "relevant rows of the group"),
        Column("queries", "BIGINT", "queries with a list that holds the group"),
        Column(
            "effective_queries",
            "DOUBLE",
            "queries of equal weight that say as much; null where it was not asked",
            nullable=True,
        ),
        Column("lists", "BIGINT", "lists that hold the group, or that have a value for it"),
        *_RUN,
    ),
    key=("batch", "slice", "slice_value", "attribute", "metric", "group_value"),
)

_ONE_RUN = ("run_id", "input_hash", "computed_at", "seed", "queries")
WINDOW_SCORES = FAIRNESS_HISTORY.without(*_ONE_RUN).having(
    Column(
        "queries",
        "BIGINT",
        "distinct queries that there are at least: those of one day may be those of another",
    ),
    Column("days", "BIGINT", "days of the window, of which the batch is the last"),
    Column("first_day", "VARCHAR", "the first of them"),
    Column("days_used", "BIGINT", "days whose counts were added up"),
    Column("days_missing", "BIGINT", "days without scores"),
    Column("days_gated", "BIGINT", "days that a gate kept out"),
    Column(
        "days_other",
        "BIGINT",
        "days that were counted under other settings or another key of ids, or whose file is not "
        "there",
    ),
    Column("days_hash", "VARCHAR", "digest of which days were used, and of what they were made of"),
    name="window_scores",
    text="One score of the days up to a batch, from their counts added up.",
    key=(*FAIRNESS_HISTORY.key, "days"),
)
_CHECKS = [
    pa.Check(_null_exactly_with_reason, name="null_exactly_with_reason"),
    pa.Check(_in_declared_range, name="in_declared_range"),
]
SCORE_SCHEMA = pa.DataFrameSchema(
    FAIRNESS_HISTORY.schema.columns,
    checks=_CHECKS,
    name="scores",
    strict=True,
    unique=list(FAIRNESS_HISTORY.key),
)
"""The gate of the history: keys are unique, every value lies in the range its metric declares."""
WINDOW_SCHEMA = pa.DataFrameSchema(
    WINDOW_SCORES.schema.columns,
    checks=_CHECKS,
    name="windows",
    strict=True,
    unique=list(WINDOW_SCORES.key),
)
"""The same for scores of several days."""
