"""Which groups lists are mixed of: all that decides what chance alone would do to them.

If group did not matter for position, a list would be its items in random order.  Then everything
that is added up over lists is known from the lists' lengths and the rows of each group in them.
"""

from metrics import UNIT
from pipeline.counting import Counting
from pipeline.fragments import scaled
from schemas.columns import literal
from schemas.tables import MIX_COUNTS, MIX_PAIRS, MIX_SAMPLE

MOST_GROUPS = 30
"""Groups of an attribute up to which they are counted in pairs: pairs grow with their square."""
SAMPLED_LISTS = 32
"""Lists of each slice that are kept for what has no closed form."""


def fill_mixes(counting: Counting, attribute: str) -> None:
    """Add the mixes of one attribute, whose rows per list and group are in ``list_groups``."""
    name = literal(attribute)
    counting.fill(
        MIX_COUNTS,
        f"SELECT slice, slice_value, {name} AS attribute, group_value, length, own, "
        "count(*) AS lists "
        f"FROM ({counting.by_slice('list_groups', 'group_value, length, own')}) GROUP BY ALL",
    )
    counting.fill(
        MIX_SAMPLE,
        f"SELECT slice, slice_value, {name} AS attribute, list, group_value, length, own "
        "FROM sampled JOIN list_groups USING (list_id)",
    )
    groups = counting.connection.execute(
        "SELECT count(DISTINCT group_value) FROM list_groups"
    ).fetchall()[0][0]
    if groups > MOST_GROUPS:
        return
    both = (
        "SELECT one.* EXCLUDE (pairs, won, entropy, share, divergence), "
        "other.group_value AS other_value, other.own AS other_own "
        "FROM list_groups AS one JOIN list_groups AS other "
        "ON one.list_id = other.list_id AND one.group_value < other.group_value"
    )
    columns = "group_value, other_value, length, own, other_own"
    shared = scaled("(length + 1)::DOUBLE / ((length - own) * (length - other_own))", UNIT)
    counting.fill(
        MIX_PAIRS,
        f"SELECT slice, slice_value, {name} AS attribute, group_value, other_value, length, "
        "sum(own::HUGEINT * other_own)::HUGEINT AS product, "
        f"sum({shared})::HUGEINT AS pair_product "
        f"FROM ({counting.by_slice(f'({both})', columns)}) GROUP BY ALL",
    )


def sample_lists(counting: Counting) -> None:
    """Choose some lists of every slice, the same ones whatever the order of rows."""
    slices = counting.lists_slices("lists")
    numbered = f"SELECT list_id, md5(list_id) AS digest{slices} FROM lists"
    counting.connection.execute(
        "CREATE OR REPLACE TEMP TABLE sampled AS "
        "SELECT *, dense_rank() OVER (ORDER BY digest, list_id) AS list FROM "
        f"({counting.by_slice(f'({numbered})', 'list_id, digest')}) QUALIFY row_number() OVER "
        f"(PARTITION BY slice, slice_value ORDER BY digest, list_id) <= {SAMPLED_LISTS}"
    )
