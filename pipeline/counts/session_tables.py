"""Tables of the session that modules of this room hand each other, and which module makes each.

They live as long as the session, and no longer than one batch.

Not here: tables that only the module that makes them reads, and the count tables, which are kept
(``schemas.counts``).
"""

from collections.abc import Iterable

from schemas.columns import Column, Table
from schemas.counts import RANK_COUNTS
from schemas.tables import ATTRIBUTE, GROUP_VALUE, LISTS, QUERIES, ROWS, SLICE, SLICE_VALUE

_PART = Column("part", "INTEGER", "number of a combination of slice values, from 0")
_CODE = Column("code", "INTEGER", "number of the value, from 0")
_LIST = Column("list", "INTEGER", "number of the list in the batch, from 0")
_BUCKET = Column("bucket", "INTEGER", "bucket of the list's query")
_CELL = Column("cell", "INTEGER", "number of a combination of attribute values, from 0")
_RANK = Column("rank", "INTEGER", "rank, 1 = top")
_LENGTH = Column("length", "BIGINT", "rows of the list")
_QUERY_ID = Column("query_id", "VARCHAR", "query of the list")
_KNOWN = tuple(
    Column(f"{name}_known", "BIGINT", f"rows whose {name} is known")
    for name in ("relevance", "click", "reference_rank", "propensity", "predicted_click")
)
_SUMS = tuple(column for column in RANK_COUNTS.columns if column.name not in RANK_COUNTS.key)


def with_slices(table: Table, slices: Iterable[str]) -> Table:
    """The table with the slice columns of an audit, under their internal names."""
    return table.having(*(Column("=" + name, "VARCHAR", f"the slice {name}") for name in slices))


PARTS = Table("parts", "Combinations of slice values; slice columns follow.", (_PART,), ("part",))
SLICE_VALUES = Table(
    "slice_values",
    "Slices with each of their values, the whole batch first.",
    (_CODE, SLICE, SLICE_VALUE),
    ("code",),
)
GROUP_NAMES = Table(
    "group_names",
    "Groups of each attribute, by name.",
    (ATTRIBUTE, _CODE, GROUP_VALUE),
    ("attribute", "code"),
)
POSITIONS = Table(
    "positions",
    "The exposure of each place; place 0, of no row, has none.",
    (
        Column("place", "BIGINT", "rank, from 0 on"),
        Column("exposure", "BIGINT", "exposure, scaled by 2^60"),
    ),
    ("place",),
)
LIST_TOTALS = Table(
    "lists",
    "Lists and what their rows add up to; slice columns follow.",
    (
        _LIST,
        Column("n", "BIGINT", "rows"),
        Column("list_part", "INTEGER", "part of the list"),
        _BUCKET,
        Column("exposure", "HUGEINT", "sum of exposure, scaled by 2^60"),
        Column("relevance", "HUGEINT", "sum of relevance, by 2^60; null if none is known", True),
        _QUERY_ID,
        *_KNOWN,
    ),
    ("list",),
)
BUCKET_LISTS = Table(
    "bucket_lists",
    "Lists added up by part and bucket; slice columns follow.",
    (
        _PART,
        _BUCKET,
        LISTS,
        ROWS,
        *_KNOWN,
        Column("share_lists", "BIGINT", "lists with any relevance"),
    ),
    ("part", "bucket"),
)
SAMPLED = Table(
    "sampled",
    "Some lists of every slice.",
    (
        SLICE,
        SLICE_VALUE,
        Column("chosen", "INTEGER", "number of the list in the batch"),
        Column("list", "BIGINT", "place of the list in the order of the sample"),
    ),
    ("slice", "slice_value", "chosen"),
)
HISTOGRAM = Table(
    "histogram",
    "The rank histogram by bucket, part and cell.",
    (_BUCKET, _PART, _RANK, _CELL, *_SUMS),
    ("bucket", "part", "rank", "cell"),
)
RANK_SUMS = HISTOGRAM.without("bucket").having(
    name="rank_sums", text="The rank histogram by part and cell."
)
GROUP_SUMS = Table(
    "group_sums",
    "Groups within lists, added up by slice, group of one attribute, and bucket.",
    (
        SLICE,
        SLICE_VALUE,
        GROUP_VALUE,
        _BUCKET,
        Column("lists", "BIGINT", "lists that hold the group"),
        Column("pair_lists", "BIGINT", "lists in which the group has a mixed pair"),
        Column("pairs", "HUGEINT", "mixed pairs of the group"),
        Column("won", "HUGEINT", "mixed pairs that the group wins"),
        Column("won_share", "HUGEINT", "sum over lists of won / pairs, scaled by 2^60"),
        Column("entropy", "HUGEINT", "entropy part of the divergence, scaled by 2^56"),
        Column("share", "HUGEINT", "weighted share of the prefixes, scaled by 2^56"),
        Column("divergence", "HUGEINT", "divergence from the list's own mix, scaled by 2^56"),
    ),
    ("slice", "slice_value", "group_value", "bucket"),
)
GROUP_QUERIES = Table(
    "group_queries",
    "Queries with a list that holds a group of one attribute, by slice.",
    (SLICE, SLICE_VALUE, GROUP_VALUE, QUERIES),
    ("slice", "slice_value", "group_value"),
)
MIXES = Table(
    "mixes",
    "Lists by slice, length, and rows of a group of one attribute.",
    (
        SLICE,
        SLICE_VALUE,
        GROUP_VALUE,
        _LENGTH,
        Column("own", "BIGINT", "rows of the group in the list"),
        LISTS,
    ),
    ("slice", "slice_value", "group_value", "length", "own"),
)

SESSION_TABLES = {
    "dimensions": (PARTS, SLICE_VALUES, GROUP_NAMES),
    "slice_counts": (POSITIONS, LIST_TOTALS, BUCKET_LISTS),
    "mix_counts": (SAMPLED,),
    "rank_counts": (HISTOGRAM, RANK_SUMS),
    "group_counts": (GROUP_SUMS, GROUP_QUERIES, MIXES),
}
"""Session tables by the module that makes them."""
SLICED = (PARTS, LIST_TOTALS, BUCKET_LISTS)
"""Those that slice columns follow."""
