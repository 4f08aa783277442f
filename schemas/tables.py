"""Every table of a batch file and of the history, described once."""

from math import isfinite

import pandas as pd
import pandera.pandas as pa

from metrics import AGGREGATIONS, METRICS, parse_score
from schemas.assessments import ASSESSED
from schemas.columns import Column, Table

BATCH = Column("batch", "VARCHAR", "the partition, a day by default")
SLICE = Column("slice", "VARCHAR", "slice column, or 'all' for the whole batch")
SLICE_VALUE = Column("slice_value", "VARCHAR", "value of the slice column, or 'all'")
ATTRIBUTE = Column(
    "attribute", "VARCHAR", "attribute of the items; intersections are joined by '*'"
)
GROUP_VALUE = Column("group_value", "VARCHAR", "value of the attribute: the group")
LISTS = Column("lists", "BIGINT", "lists in the slice")
ROWS = Column("rows", "BIGINT", "rows counted here")
QUERIES = Column("queries", "BIGINT", "queries in the slice: what intervals resample")
LOWER = Column("lower", "DOUBLE", "lower end of the interval; null where there is none", True)
UPPER = Column("upper", "DOUBLE", "upper end of the interval; null where there is none", True)
CONFIDENCE = Column("confidence", "DOUBLE", "share of intervals that should hold the truth", True)
SEED = Column("seed", "BIGINT", "seed of the resampling and of the noise floor", True)

REJECTED_ROWS = Table(
    "rejected_rows",
    "Rows that broke a rule, one per row and rule; long batches of offenders are cut.",
    (
        Column("file", "VARCHAR", "file the row came from"),
        Column("row", "BIGINT", "row in the file, 1 = first row of data"),
        Column("line", "BIGINT", "line of a text file on which the row starts", nullable=True),
        Column("list_id", "VARCHAR", "list of the row", nullable=True),
        Column("item_id", "VARCHAR", "item of the row", nullable=True),
        Column("rule", "VARCHAR", "rule that is broken"),
        Column("column", "VARCHAR", "column that breaks it"),
        Column("value", "VARCHAR", "value as delivered, cut at 100 characters", nullable=True),
        Column("problem", "VARCHAR", "what is wrong, as a sentence goes on after the value"),
    ),
)
RULE_COUNTS = Table(
    "rule_counts",
    "How many rows and lists broke each rule, uncut.",
    (
        Column("rule", "VARCHAR", "rule that is broken"),
        Column("rows", "BIGINT", "offending rows"),
        Column("lists", "BIGINT", "lists with an offending row"),
    ),
    key=("rule",),
)
SLICE_COUNTS = Table(
    "slice_counts",
    "Lists and rows of each slice.",
    (
        SLICE,
        SLICE_VALUE,
        LISTS,
        QUERIES,
        ROWS,
        Column("relevance_known", "BIGINT", "rows whose relevance is known"),
        Column("click_known", "BIGINT", "rows whose click is known"),
        Column("reference_rank_known", "BIGINT", "rows that the reference ranking holds"),
        Column("propensity_known", "BIGINT", "rows whose propensity is known"),
        Column("predicted_click_known", "BIGINT", "rows with a predicted click"),
    ),
    key=("slice", "slice_value"),
)
RANK_COUNTS = Table(
    "rank_counts",
    "The rank histogram: what stood at each rank, per slice, attribute and group.",
    (
        SLICE,
        SLICE_VALUE,
        ATTRIBUTE,
        GROUP_VALUE,
        Column("rank", "BIGINT", "rank, 1 = top"),
        ROWS,
        Column("judged", "BIGINT", "rows whose relevance is known"),
        Column("graded", "BIGINT", "rows whose relevance is neither 0 nor 1"),
        Column("relevant", "BIGINT", "rows whose relevance reaches relevant_from in the settings"),
        Column("relevance_sum", "HUGEINT", "sum of relevance, scaled by 2^60"),
        Column("click_known", "BIGINT", "rows whose click is known"),
        Column("click_sum", "HUGEINT", "sum of click, scaled by 2^60"),
    ),
    key=("slice", "slice_value", "attribute", "group_value", "rank"),
)
PAIR_STATS = Table(
    "pair_stats",
    "Mixed pairs per group, added over lists (ARP).",
    (
        SLICE,
        SLICE_VALUE,
        ATTRIBUTE,
        GROUP_VALUE,
        Column("lists", "BIGINT", "lists in which the group has a mixed pair"),
        Column("pairs", "HUGEINT", "mixed pairs of the group"),
        Column("won", "HUGEINT", "mixed pairs that the group wins"),
        Column("share_sum", "HUGEINT", "sum over lists of won / pairs, scaled by 2^60"),
    ),
    key=("slice", "slice_value", "attribute", "group_value"),
)
PREFIX_STATS = Table(
    "prefix_stats",
    "Group shares of prefixes, added over lists (NDKL).",
    (
        SLICE,
        SLICE_VALUE,
        ATTRIBUTE,
        GROUP_VALUE,
        Column("lists", "BIGINT", "lists that hold the group"),
        Column("queries", "BIGINT", "queries with such a list"),
        Column("entropy_sum", "HUGEINT", "entropy part of the divergence, scaled by 2^56"),
        Column("share_sum", "HUGEINT", "weighted share of the prefixes, scaled by 2^56"),
        Column("own_sum", "HUGEINT", "divergence from the list's own mix, scaled by 2^56"),
    ),
    key=("slice", "slice_value", "attribute", "group_value"),
)
ITEM_STATS = Table(
    "item_stats",
    "Exposure and relevance of each item, added over lists (IAA).",
    (
        SLICE,
        SLICE_VALUE,
        Column("item_id", "VARCHAR", "the item shown"),
        ROWS,
        Column("exposure_sum", "HUGEINT", "sum of exposure, scaled by 2^60"),
        Column("relevance_sum", "HUGEINT", "sum of relevance, scaled by 2^60"),
        Column("exposure_share_sum", "HUGEINT", "sum of shares of a list's exposure, by 2^60"),
        Column("relevance_share_sum", "HUGEINT", "sum of shares of a list's relevance, by 2^60"),
    ),
    key=("slice", "slice_value", "item_id"),
)
ITEM_GAPS = Table(
    "item_gaps",
    "Sums over items, per slice (IAA, Gini).",
    (
        SLICE,
        SLICE_VALUE,
        Column("items", "BIGINT", "items shown"),
        Column("gap_sum", "HUGEINT", "sum over items of |exposure - relevance|, by 2^60"),
        Column("share_lists", "BIGINT", "lists with any relevance"),
        Column("share_gap_sum", "HUGEINT", "the same gap between shares, by 2^60"),
        Column("exposure_sum", "HUGEINT", "sum over items of exposure, by 2^60"),
        Column(
            "exposure_rank_sum",
            "HUGEINT",
            "sum over items of exposure times place, the least exposed item first, by 2^60",
        ),
    ),
    key=("slice", "slice_value"),
)
GROUP_SIZES = Table(
    "group_sizes",
    "Items of each group in the item table.",
    (ATTRIBUTE, GROUP_VALUE, Column("items", "BIGINT", "items of the group")),
    key=("attribute", "group_value"),
)

MODEL_VERSIONS = Table(
    "model_versions",
    "Lists of each release of the ranker, where the log says which.",
    (
        Column("model_version", "VARCHAR", "release, as logged"),
        Column("lists", "BIGINT", "lists that it made"),
    ),
    key=("model_version",),
)
LIST_STATS = Table(
    "list_stats",
    "Metrics computed list by list, added over lists.",
    (
        SLICE,
        SLICE_VALUE,
        Column("attribute", "VARCHAR", "attribute; null for metrics without groups", nullable=True),
        Column("metric", "VARCHAR", "metric with its parameters, as printed: nDCG@10"),
        Column("reading", "VARCHAR", "reading, where the metric has several", nullable=True),
        Column("group_value", "VARCHAR", "group; null for one number per list", nullable=True),
        Column(
            "basis",
            "VARCHAR",
            "code and settings that the numbers depend on beside the metric's own parameters",
        ),
        Column("lists", "BIGINT", "lists that have a value; queries for metrics of queries"),
        Column("value_sum", "HUGEINT", "sum of their values, scaled by 2^60"),
        Column("weight_sum", "HUGEINT", "sum of their weights, scaled by 2^60"),
    ),
    key=("slice", "slice_value", "attribute", "metric", "reading", "group_value"),
)

BUCKETS = 1024
"""Buckets that queries fall into; intervals resample whole buckets."""
_BUCKET = Column("bucket", "INTEGER", f"hash of the query, 0 to {BUCKETS - 1}")
BUCKET_SUMS = Table(
    "bucket_sums",
    "What the lists of each bucket of queries add up to: what intervals resample.",
    (
        SLICE,
        SLICE_VALUE,
        Column("attribute", "VARCHAR", "attribute; null for sums without groups", nullable=True),
        Column("metric", "VARCHAR", "metric, for sums of list_stats", nullable=True),
        Column("reading", "VARCHAR", "reading, where the metric has several", nullable=True),
        Column("group_value", "VARCHAR", "group; null for sums without groups", nullable=True),
        Column("basis", "VARCHAR", "as in list_stats", nullable=True),
        Column("statistic", "VARCHAR", "what is added up"),
        Column("buckets", "INTEGER[]", "buckets with a sum, ascending"),
        Column("sums", "DOUBLE[]", "their sums, in units of the statistic"),
    ),
    key=("slice", "slice_value", "attribute", "metric", "reading", "group_value", "statistic"),
)


def bucket_counts(slices: tuple[str, ...], attributes: tuple[str, ...]) -> Table:
    """The rank histogram of each bucket, for the slices and attributes of an audit.

    Columns that the user named have their internal names: they may be called like one of ours.
    """
    named = [
        Column("=" + name, "VARCHAR", f"the {kind} {name}")
        for kind, names in (("slice", slices), ("attribute", attributes))
        for name in names
    ]
    return RANK_COUNTS.without("slice", "slice_value", "attribute", "group_value").having(
        _BUCKET,
        *named,
        first=True,
        name="bucket_counts",
        text="The rank histogram of each bucket of queries: what intervals resample.",
        key=("bucket", *(column.name for column in named), "rank"),
    )


_OWN = Column("own", "BIGINT", "rows of the group in the list")
_LENGTH = Column("length", "BIGINT", "rows of the list")
MIX_COUNTS = Table(
    "mix_counts",
    "Lists by length and rows of a group: what chance alone would do to the group.",
    (SLICE, SLICE_VALUE, ATTRIBUTE, GROUP_VALUE, _LENGTH, _OWN, LISTS),
    key=("slice", "slice_value", "attribute", "group_value", "length", "own"),
)
MIX_PAIRS = Table(
    "mix_pairs",
    "What two groups have in common over lists of a length: how chance ties one to the other.",
    (
        SLICE,
        SLICE_VALUE,
        ATTRIBUTE,
        GROUP_VALUE,
        Column("other_value", "VARCHAR", "another group, later by name"),
        _LENGTH,
        Column("product", "HUGEINT", "sum of the product of their rows"),
        Column(
            "pair_product",
            "HUGEINT",
            "sum of (n + 1) / product of the rows that are not theirs, scaled by 2^60",
        ),
    ),
    key=("slice", "slice_value", "attribute", "group_value", "other_value", "length"),
)
MIX_SAMPLE = Table(
    "mix_sample",
    "Rows of each group in some lists of every slice (noise of NDKL).",
    (
        SLICE,
        SLICE_VALUE,
        ATTRIBUTE,
        Column("list", "BIGINT", "which list of the batch; the numbers mean nothing else"),
        GROUP_VALUE,
        _LENGTH,
        _OWN,
    ),
    key=("slice", "slice_value", "attribute", "list", "group_value"),
)

ADDITIVE = (SLICE_COUNTS, RANK_COUNTS, PAIR_STATS, PREFIX_STATS, LIST_STATS)
"""Tables that add up over batches, but for queries, of which batches may share some."""
KEPT_COUNTS = (*ADDITIVE, ITEM_GAPS, GROUP_SIZES, MODEL_VERSIONS)
"""Tables from which a batch can be scored again, with any parameters, without its rows."""
MIXES = (MIX_COUNTS, MIX_PAIRS, MIX_SAMPLE)
"""Tables that the noise floor is computed from."""
MEASURED = (*KEPT_COUNTS, ITEM_STATS, BUCKET_SUMS, *MIXES)
"""Tables that measuring a batch fills, beside its bucket_counts."""

WAYS = list(
    dict.fromkeys(
        way.name for ways in (AGGREGATIONS, *(m.usual.ways for m in METRICS)) for way in ways
    )
)
"""Aggregations of groups and readings of numbers: what may follow a metric after a dot."""

LABEL = "metric || coalesce('.' || aggregation, '')"
"""The score that a row is about as printed, in SQL."""
STATUSES = ("ok", "breach", "insufficient", "undefined", "not_judged", "gated")
"""Verdicts: within the threshold; beyond it; too little to tell; no value; no threshold; and not
judged because the batch is unlike those before it."""

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
            "mean of the score where groups do not matter for position; null where unknown",
            nullable=True,
        ),
        Column(
            "noise_limit",
            "DOUBLE",
            "value that chance alone passes, to the unfair side, in 5 of 100 batches like this one",
            nullable=True,
        ),
        Column(
            "p_noise",
            "DOUBLE",
            "probability that chance alone is as unfair as the value, or more",
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
        Column("n", "BIGINT", "rows of the group"),
        Column("relevant", "BIGINT", "relevant rows of the group"),
        Column("queries", "BIGINT", "queries with a list that holds the group"),
        Column("lists", "BIGINT", "lists that hold the group, or that have a value for it"),
        *_RUN,
    ),
    key=("batch", "slice", "slice_value", "attribute", "metric", "group_value"),
)
REVISION = Column("revision", "INTEGER", "which of the batch's results this is, 1 for the first")
REPLACED_AT = Column("replaced_at", "TIMESTAMP", "when newer scores took its place (UTC)")

VERDICT = (
    Column("verdict", "VARCHAR", "what the batch says by itself, whatever the gates say", True),
    Column("verdict_reason", "VARCHAR", "why that is insufficient", nullable=True),
)
"""The batch file's status and its reason; the history's own become gated where a gate fails."""

HISTORY = (FAIRNESS_HISTORY.having(REVISION, *VERDICT), GROUP_HISTORY.having(REVISION))
SUPERSEDED = tuple(
    table.having(
        REPLACED_AT,
        name=name,
        text=f"What {table.name} held before a batch was computed again.",
        key=(*table.key, "revision"),
    )
    for table, name in zip(HISTORY, ("superseded", "superseded_groups"), strict=True)
)

BATCH_STATUSES = ("done", "no_data", "refused", "failed")
BATCHES = Table(
    "batches",
    "The manifest: the last attempt at each batch.",
    (
        BATCH,
        Column(
            "status",
            "VARCHAR",
            "done; no_data: no rows; refused: the data broke its contract; failed: an error",
            checks=(pa.Check.isin(BATCH_STATUSES),),
        ),
        Column("message", "VARCHAR", "what happened, for statuses other than done", nullable=True),
        Column("lists", "BIGINT", "lists accepted"),
        Column("rows_read", "BIGINT", "rows read"),
        Column("rows_accepted", "BIGINT", "rows accepted"),
        Column("rows_rejected", "BIGINT", "rows rejected, whole lists included"),
        Column("lists_rejected", "BIGINT", "lists rejected"),
        Column("graded_rows", "BIGINT", "rows whose relevance is neither 0 nor 1"),
        Column("revision", "INTEGER", "revision of the scores in the history, 0 for none"),
        Column("run_id", "VARCHAR", "run of the attempt"),
        Column("code_version", "VARCHAR", "version of the code, and a digest of what computes"),
        Column("config_hash", "VARCHAR", "digest of the settings that numbers depend on"),
        Column("input_hash", "VARCHAR", "digest of the delivered files"),
        Column("rows_hash", "VARCHAR", "digest of the settings that counts depend on"),
        Column("started_at", "TIMESTAMP", "start of the attempt (UTC)"),
        Column("finished_at", "TIMESTAMP", "end of the attempt (UTC)"),
        Column(
            "peak_memory",
            "BIGINT",
            "most resident memory of the process while it computed the batch, in bytes",
            nullable=True,
        ),
        Column(
            "result_hash",
            "VARCHAR",
            "digest of every published number: equal for equal numbers, however computed",
            nullable=True,
        ),
        Column(
            "settings",
            "VARCHAR",
            "the settings that numbers depend on, as JSON",
            nullable=True,
        ),
    ),
    key=("batch",),
)
BATCH_INFO = BATCHES.without("revision").having(name="batch_info", text="How the file came to be.")

SCORE_SCHEMA = pa.DataFrameSchema(
    FAIRNESS_HISTORY.schema.columns,
    checks=[
        pa.Check(_null_exactly_with_reason, name="null_exactly_with_reason"),
        pa.Check(_in_declared_range, name="in_declared_range"),
    ],
    name="scores",
    strict=True,
    unique=list(FAIRNESS_HISTORY.key),
)
"""The gate of the history: keys are unique, every value lies in the range its metric declares."""

COUNTS_OF_HISTORY = tuple(
    table.having(BATCH, first=True, key=("batch", *table.key)) for table in KEPT_COUNTS
)
LEDGER_HEAD = Table(
    "ledger_head",
    "The last entry of the ledger that the history holds: one row.",
    (
        Column("line", "BIGINT", "line of the ledger"),
        Column("hash", "VARCHAR", "its digest"),
    ),
    key=("line",),
)
HISTORY_TABLES = (*HISTORY, *SUPERSEDED, *COUNTS_OF_HISTORY, BATCHES, *ASSESSED, LEDGER_HEAD)
"""Everything that history.duckdb holds."""
BATCH_TABLES = (REJECTED_ROWS, RULE_COUNTS, *MEASURED, FAIRNESS_HISTORY, GROUP_HISTORY, BATCH_INFO)
"""What a batch file holds besides its rows."""
