"""Exposure and relevance of each item (IAA, Gini), in two passes over the accepted rows.

The first pass adds up rows by item and part: a part holds the lists that have all their slice
values in common, so that what a slice holds is the sum of some parts and a row is counted once.
The second adds up, by bucket of queries, on which side of the gap between exposure and relevance
rows of an item stand, and in which place.  All sums are of whole numbers, in 128 bits.  Items are
too many to be counted in memory, so statements do it, apart from the pass over chunks.

Not here: the item table as delivered (``log.item_table``).
"""

from metrics import UNIT, WHOLE
from pipeline.counts.exact_sums import scaled
from pipeline.counts.sql import Counting
from schemas.columns import internal, literal
from schemas.counts import ITEM_GAPS, ITEM_STATS
from schemas.stored_log import LOG_ITEMS, LOG_ROWS

SUMS = ("exposure", "relevance", "exposure_share", "relevance_share")
"""What is added up for an item; shares are of what a list gives to all its items."""


def count_items(counting: Counting) -> None:
    """Fill item_stats and item_gaps, and what intervals of their metrics resample.

    Reads the stored rows, and two tables of the session: ``positions`` with the exposure at each
    place as a scaled integer, and ``lists`` with bucket, slices, and the sums of exposure and of
    relevance over the rows of a list, null where no relevance is known.
    """
    counting.need_rows()
    _number_parts(counting)
    _sum_by_item(counting)
    _place_items(counting)
    _fill_items(counting)
    if not counting.evidence:
        return
    key = ("slice", "slice_value")
    sums = {name: f"sum({name}) / {UNIT}" for name in ("gap", "share_gap", "exposure_ranks")}
    for name in (WHOLE, *counting.settings.slices):
        counting.fill_buckets(_by_bucket(counting, name), key, sums)
    exposures = counting.by_slice("lists", "bucket, exposure")
    counting.fill_buckets(exposures, key, {"exposure": f"sum(exposure) / {UNIT}"})


def _number_parts(counting: Counting) -> None:
    """Tables that say lists, parts and cuts by number; a cut is one value of one slice.

    ``item_lists``: the part of a list, and what shares divide by.  A share of a list without
    relevance counts as 0, which is what division by infinity gives.
    """
    run = counting.connection.execute
    names = [internal(name) for name in counting.settings.slices]
    listed = "".join(f", {name}" for name in names)
    run(
        "CREATE OR REPLACE TEMP TABLE item_parts AS "
        f"SELECT (row_number() OVER () - 1)::INTEGER AS part{listed} "
        f"FROM (SELECT DISTINCT 0{listed} FROM lists)"
    )
    cuts = counting.by_slice("item_parts", "part")
    run(
        "CREATE OR REPLACE TEMP TABLE item_cuts AS SELECT (row_number() OVER "
        f"(ORDER BY slice <> {literal(WHOLE)}, slice, slice_value) - 1)::INTEGER AS cut, * "
        f"FROM (SELECT DISTINCT slice, slice_value FROM ({cuts}))"
    )
    run(
        "CREATE OR REPLACE TEMP TABLE item_part_cuts AS SELECT part, cut, slice "
        f"FROM ({cuts}) JOIN item_cuts USING (slice, slice_value)"
    )
    divisor = f"CASE WHEN relevance > 0 THEN {{}}::DOUBLE / {float(UNIT)!r} ELSE 'inf'::DOUBLE END"
    same = " AND ".join(f"lists.{name} IS NOT DISTINCT FROM item_parts.{name}" for name in names)
    run(
        "CREATE OR REPLACE TEMP TABLE item_lists AS SELECT list, bucket, part, "
        f"{divisor.format('exposure')} AS exposure_unit, "
        f"{divisor.format('relevance')} AS relevance_unit "
        f"FROM lists JOIN item_parts ON {same or 'true'}"
    )


def _rows(counting: Counting, columns: str, lists: str = "item_lists") -> str:
    """SQL of rows with the four numbers that are added up, each rounded once."""
    relevance = scaled("log.relevance", UNIT)
    return (
        f"SELECT {columns}, positions.exposure AS exposure, {relevance} AS relevance, "
        "(positions.exposure::DOUBLE / exposure_unit)::BIGINT AS exposure_share, "
        f"({relevance} / relevance_unit)::BIGINT AS relevance_share "
        f"FROM {counting.database}.{LOG_ROWS.name} AS log "
        f"JOIN {lists} USING (list) JOIN positions ON place = rank"
    )


def _sum_by_item(counting: Counting) -> None:
    """``cut_items``: the sums of each item in each cut."""
    first = ", ".join(f"coalesce(sum({name}), 0)::HUGEINT AS {name}_sum" for name in SUMS)
    again = ", ".join(f"sum({name}_sum)::HUGEINT AS {name}_sum" for name in SUMS)
    key = "part, item" if counting.settings.slices else "item"
    parts = f"SELECT {key}, count(*) AS rows, {first} FROM ({_rows(counting, key)}) GROUP BY {key}"
    cuts = f"SELECT 0 AS cut, * FROM ({parts})"
    if counting.settings.slices:
        cuts = (
            f"SELECT cut, item, sum(rows)::BIGINT AS rows, {again} "
            f"FROM ({parts}) JOIN item_part_cuts USING (part) GROUP BY cut, item"
        )
    counting.connection.execute(f"CREATE OR REPLACE TEMP TABLE cut_items AS {cuts}")


def _place_items(counting: Counting) -> None:
    """``item_places``: items of a cut from the least exposed on; one number says item and cut."""
    items = f"{counting.database}.{LOG_ITEMS.name}"
    counting.connection.execute(
        "CREATE OR REPLACE TEMP TABLE item_places AS SELECT *, "
        f"cut * (SELECT count(*) FROM {items}) + item AS cut_item, row_number() OVER "
        "(PARTITION BY cut ORDER BY exposure_sum, item_id) AS place "
        f"FROM cut_items JOIN {items} USING (item)"
    )


def _fill_items(counting: Counting) -> None:
    if counting.evidence:
        names = ", ".join(f"{name}_sum" for name in SUMS)
        counting.fill(
            ITEM_STATS,
            f"SELECT slice, slice_value, item_id, rows, {names} "
            "FROM item_places JOIN item_cuts USING (cut) ORDER BY cut, item_id",
            ordered=True,
        )
    lists = (
        "SELECT cut, count(*) FILTER (isfinite(relevance_unit)) AS share_lists "
        "FROM item_lists JOIN item_part_cuts USING (part) GROUP BY cut"
    )
    counting.fill(
        ITEM_GAPS,
        "SELECT slice, slice_value, count(*) AS items, "
        "sum(abs(exposure_sum - relevance_sum))::HUGEINT AS gap_sum, "
        "any_value(share_lists) AS share_lists, "
        "sum(abs(exposure_share_sum - relevance_share_sum))::HUGEINT AS share_gap_sum, "
        "sum(exposure_sum)::HUGEINT AS exposure_sum, "
        "sum(exposure_sum * place)::HUGEINT AS exposure_rank_sum "
        f"FROM item_places JOIN ({lists}) USING (cut) JOIN item_cuts USING (cut) GROUP BY ALL",
    )


def _by_bucket(counting: Counting, slice_name: str) -> str:
    """SQL of signed gaps and weighted places of rows, by bucket and value of one slice.

    To first order: in every resample an item stays on its side of the gap, and in its place.
    """
    items = f"SELECT count(*) FROM {counting.database}.{LOG_ITEMS.name}"
    lists = (
        f"(SELECT list, bucket, cut, cut * ({items}) AS first_item, exposure_unit, relevance_unit "
        f"FROM item_lists JOIN item_part_cuts USING (part) WHERE slice = {literal(slice_name)})"
    )
    rows = _rows(counting, "cut, bucket, first_item + item AS cut_item", lists)
    sides = (
        "SELECT cut_item, sign(exposure_sum - relevance_sum)::BIGINT AS side, "
        "sign(exposure_share_sum - relevance_share_sum)::BIGINT AS share_side, "
        "place AS item_place FROM item_places"
    )
    return (
        "SELECT slice, slice_value, bucket, gap, share_gap, exposure_ranks "
        "FROM (SELECT cut, bucket, "
        "sum(side * (exposure - coalesce(relevance, 0))) AS gap, "
        "sum(share_side * (exposure_share - coalesce(relevance_share, 0))) AS share_gap, "
        "sum(exposure::HUGEINT * item_place) AS exposure_ranks "
        f"FROM ({rows}) JOIN ({sides}) USING (cut_item) GROUP BY cut, bucket) "
        "JOIN item_cuts USING (cut)"
    )
