"""Tables of whole numbers that scores are made of.

Here: every table that counting fills, and which of them add up and are kept.  Not here: how they
are counted (``pipeline.counts``), and what formulas see of them (``metrics.counts``).
"""

from schemas.columns import Column, Table
from schemas.tables import ATTRIBUTE, GROUP_VALUE, LISTS, QUERIES, ROWS, SLICE, SLICE_VALUE

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
        Column("items", "BIGINT", "distinct items of the group; null: never counted", True),
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
"""Buckets that queries fall into; intervals resample whole buckets.

A resample costs as much as there are buckets, and with fewer of them more queries share one."""
_LENGTH = Column("length", "BIGINT", "rows of the list")
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
    named = _named(slices, attributes)
    return RANK_COUNTS.without("slice", "slice_value", "attribute", "group_value").having(
        _BUCKET,
        *named,
        first=True,
        name="bucket_counts",
        text="The rank histogram of each bucket of queries: what intervals resample.",
        key=("bucket", *(column.name for column in named), "rank"),
    )


def bucket_lengths(slices: tuple[str, ...], attributes: tuple[str, ...]) -> Table:
    """Rows of each bucket by the length of their list: what chance would give them."""
    named = _named(slices, attributes)
    return Table(
        "bucket_lengths",
        "Rows of each bucket of queries by the length of their list: what chance would give them.",
        (_BUCKET, *named, _LENGTH, ROWS),
        key=("bucket", *(column.name for column in named), "length"),
    )


def _named(slices: tuple[str, ...], attributes: tuple[str, ...]) -> list[Column]:
    return [
        Column("=" + name, "VARCHAR", f"the {kind} {name}")
        for kind, names in (("slice", slices), ("attribute", attributes))
        for name in names
    ]


_OWN = Column("own", "BIGINT", "rows of the group in the list")
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
COUNT_TABLES = (*KEPT_COUNTS, ITEM_STATS, BUCKET_SUMS, *MIXES)
"""Tables that counting a batch fills, beside its bucket_counts and bucket_lengths."""
