"""Which groups lists are mixed of: all that decides what chance alone would do to them.

If group did not matter for position, a list would be its items in random order.  Then everything
that is added up over lists is known from the lists' lengths and the rows of each group in them.

Here: these lengths and rows, counted.  Not here: what chance would make of them
(``scores.evidence.chance``).
"""

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pyarrow

from metrics import UNIT
from metrics.weights import FloatArray, IntArray
from pipeline.counts.dimensions import Dimensions
from pipeline.counts.exact_sums import half_names, halves_of_doubles, joined
from pipeline.counts.list_groups import ListGroups
from pipeline.counts.session_tables import SAMPLED
from pipeline.counts.sql import Counting
from pipeline.log.row_chunks import RowChunk
from pipeline.log.whole_lists import run_starts
from schemas.columns import internal, literal
from schemas.counts import MIX_COUNTS, MIX_PAIRS, MIX_SAMPLE, bucket_lengths

MOST_GROUPS = 30
"""Groups of an attribute up to which they are counted in pairs: pairs grow with their square."""
SAMPLED_LISTS = 32
"""Lists of each slice that are kept for what has no closed form: each is drawn thousands of times
for a noise floor."""
_HELD_LISTS = 50_000
"""Lists whose pairs of groups are counted together: enough that few parts and lengths are written
twice, and some MB for MOST_GROUPS groups."""


class PairMixes:
    """Pairs of groups of one attribute, added up by part and length of lists.

    Sums go to a table of the session whenever enough lists have come.
    """

    def __init__(self, counting: Counting, dimensions: Dimensions, attribute: str) -> None:
        self._counting, self._dimensions, self._attribute = counting, dimensions, attribute
        self._groups = len(dimensions.groups[attribute].names)
        self._held: list[tuple[IntArray, IntArray, npt.NDArray[np.int32]]] = []
        self._table = f"pair_mixes_{list(dimensions.groups).index(attribute)}"
        counting.connection.execute(
            f"CREATE OR REPLACE TEMP TABLE {self._table} (part BIGINT, length BIGINT, one BIGINT, "
            f"other BIGINT, product BIGINT, {' BIGINT, '.join(half_names('shared'))} BIGINT)"
        )

    def add(self, chunk: RowChunk, groups: ListGroups) -> None:
        """Add the lists of a chunk."""
        if not 1 < self._groups <= MOST_GROUPS:
            return
        own = np.zeros((self._groups, len(chunk.lists)), dtype=np.int32)
        own[groups.group, groups.place] = groups.own
        self._held.append((self._dimensions.part[chunk.lists], chunk.lengths, own))
        if sum(len(part) for part, *_ in self._held) >= _HELD_LISTS:
            self._add_up()

    def _add_up(self) -> None:
        """Write the sums over the lists that have come."""
        if not self._held:
            return
        part, length = (np.concatenate(each) for each in list(zip(*self._held, strict=True))[:2])
        order = np.lexsort((length, part))
        part, length = part[order], length[order]
        own = np.concatenate([each for *_, each in self._held], axis=1)[:, order].astype(float)
        self._held.clear()
        starts = run_starts(part, length)
        # A group that a list lacks, or that fills it, is in no pair there.
        others: FloatArray = np.where((own > 0) & (own < length), length - own, np.inf)
        above = (length + 1.0) * UNIT
        sums_by_pair: list[dict[str, IntArray]] = []
        for one, other in combinations(range(self._groups), 2):
            product = np.add.reduceat(own[one] * own[other], starts)
            shared = np.rint(above / (others[one] * others[other]))
            sums = [np.add.reduceat(half, starts) for half in halves_of_doubles(shared)]
            shared_cells = np.flatnonzero(product)
            columns = {"part": part[starts], "length": length[starts], "product": product}
            columns |= dict(zip(half_names("shared"), sums, strict=True))
            sums_of_pair = {
                name: each[shared_cells].astype(np.int64) for name, each in columns.items()
            }
            pair = {
                "one": np.full(len(shared_cells), one),
                "other": np.full(len(shared_cells), other),
            }
            sums_by_pair.append(sums_of_pair | pair)
        columns = {
            name: np.concatenate([each[name] for each in sums_by_pair]) for name in sums_by_pair[0]
        }
        with self._counting.registered("pairs", pyarrow.table(columns)):
            self._counting.connection.execute(
                f"INSERT INTO {self._table} BY NAME SELECT * FROM pairs"
            )

    def fill(self) -> None:
        """Add the rows of mix_pairs."""
        self._add_up()
        name = literal(self._attribute)
        slices, halves = self._counting.lists_slices("parts"), ", ".join(half_names("shared"))
        rows = (
            "SELECT g.group_value AS group_value, h.group_value AS other_value, length, product, "
            f"{halves}{slices} FROM {self._table} JOIN parts USING (part) "
            f"JOIN group_names AS g ON g.code = one AND g.attribute = {name} "
            f"JOIN group_names AS h ON h.code = other AND h.attribute = {name}"
        )
        sliced = self._counting.by_slice(
            f"({rows})", f"group_value, other_value, length, product, {halves}"
        )
        self._counting.fill(
            MIX_PAIRS,
            f"SELECT slice, slice_value, {name} AS attribute, group_value, other_value, length, "
            "sum(product)::HUGEINT AS product, "
            f"{joined('shared', 'sum')} AS pair_product FROM ({sliced}) GROUP BY ALL",
        )


class SampledGroups:
    """Groups of the lists that were sampled."""

    def __init__(self, counting: Counting, dimensions: Dimensions) -> None:
        self._counting = counting
        self._chosen = np.zeros(dimensions.lists, dtype=np.bool_)
        found = counting.connection.sql("SELECT DISTINCT chosen FROM sampled").to_arrow_table()
        self._chosen[found["chosen"].to_numpy()] = True
        self._held: dict[str, list[dict[str, IntArray]]] = {}

    def add(self, attribute: str, chunk: RowChunk, groups: ListGroups) -> None:
        """Keep what is said of sampled lists."""
        lists = chunk.lists[groups.place]
        chosen = self._chosen[lists]
        if chosen.any():
            columns = {"group": groups.group, "length": groups.length, "own": groups.own}
            self._held.setdefault(attribute, []).append(
                {"chosen": lists[chosen], **{name: each[chosen] for name, each in columns.items()}}
            )

    def fill(self, attribute: str) -> None:
        """Add the rows of mix_sample."""
        held = self._held.get(attribute, [])
        if not held:
            return
        columns = {name: np.concatenate([each[name] for each in held]) for name in held[0]}
        name = literal(attribute)
        with self._counting.registered("kept", pyarrow.table(columns)):
            self._counting.fill(
                MIX_SAMPLE,
                f"SELECT slice, slice_value, {name} AS attribute, list, group_value, length, own "
                "FROM sampled JOIN kept USING (chosen) "
                f'JOIN group_names ON code = "group" AND attribute = {name}',
            )


def fill_mix_counts(counting: Counting, attribute: str) -> None:
    """Add the rows of mix_counts, from the session table ``mixes``."""
    counting.fill(MIX_COUNTS, f"SELECT *, {literal(attribute)} AS attribute FROM mixes")


class BucketLengths:
    """Rows of each bucket by part, cell and the length of their list."""

    def __init__(self, dimensions: Dimensions) -> None:
        self._dimensions = dimensions
        self._held: list[tuple[IntArray, IntArray]] = []

    def add(self, chunk: RowChunk) -> None:
        """Add the rows of a chunk."""
        dimensions, cells = self._dimensions, self._dimensions.cells
        key = np.repeat(np.arange(len(chunk.lists)) * cells, chunk.lengths) + chunk.ints["cell"]
        rows = np.bincount(key, minlength=1)
        here = np.flatnonzero(rows)
        place, cell = np.divmod(here, cells)
        lists = chunk.lists[place]
        bucket = dimensions.bucket[lists].astype(np.int64)
        key = bucket * dimensions.parts + dimensions.part[lists]
        key = (key * (dimensions.longest + 1) + chunk.lengths[place]) * cells + cell
        self._held.append(_summed(key, rows[here]))
        if sum(len(keys) for keys, _ in self._held) > 2 * len(self._held[0][0]) + _HELD_LISTS:
            self._held = [self._together()]

    def _together(self) -> tuple[IntArray, IntArray]:
        keys, rows = zip(*self._held, strict=True)
        return _summed(np.concatenate(keys), np.concatenate(rows))

    def fill(self, counting: Counting) -> None:
        """Make the table bucket_lengths."""
        settings = counting.settings
        table = bucket_lengths(settings.slices, settings.attribute_columns)
        users = [*map(internal, settings.slices), *map(internal, settings.attribute_columns)]
        key = ", ".join(("bucket", *users, "length"))
        counting.connection.execute(f"DROP TABLE IF EXISTS {counting.database}.{table.name}")
        counting.connection.execute(table.create(counting.name))
        if not self._held:
            return
        left, rows = self._together()
        columns = {"rows": rows}
        for name, size in (
            ("cell", self._dimensions.cells),
            ("length", self._dimensions.longest + 1),
            ("part", self._dimensions.parts),
        ):
            left, columns[name] = np.divmod(left, size)
        with counting.registered("row_lengths", pyarrow.table({"bucket": left, **columns})):
            counting.fill(
                table,
                f"SELECT {key}, sum(rows)::BIGINT AS rows FROM row_lengths "
                f"JOIN parts USING (part) JOIN {counting.database}.log_cells USING (cell) "
                f"GROUP BY {key} ORDER BY {key}",
                ordered=True,
            )


def _summed(keys: IntArray, numbers: IntArray) -> tuple[IntArray, IntArray]:
    """Sums of whole numbers by key, and the keys there are, ascending."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = run_starts(keys)
    return keys[starts], np.add.reduceat(numbers[order], starts)


def sample_lists(counting: Counting) -> None:
    """Choose some lists of every slice, the same ones whatever the order of rows.

    Makes the session table ``sampled``: slice, slice_value, ``chosen`` (the list) and ``list``, by
    which the sample is ordered.
    """
    log_lists = f"{counting.database}.log_lists"
    names = ", ".join(map(internal, counting.settings.slices))
    parts = f"JOIN parts USING ({names})" if names else "CROSS JOIN parts"
    # What is chosen of a slice is among what would be chosen of each of its parts.
    few = (
        f"SELECT unnest(min(row(md5(list_id), list_id, list), {SAMPLED_LISTS})) AS found "
        f"FROM {log_lists} {parts} GROUP BY part"
    )
    numbered = (
        "SELECT list AS chosen, md5(list_id) AS digest, list_id"
        f"{counting.lists_slices('log_lists')} FROM {log_lists} "
        f"WHERE list IN (SELECT found[3] FROM ({few}))"
    )
    counting.make(
        SAMPLED,
        "SELECT slice, slice_value, chosen, "
        "dense_rank() OVER (ORDER BY digest, list_id) AS list FROM "
        f"({counting.by_slice(f'({numbered})', 'chosen, list_id, digest')}) QUALIFY row_number() "
        f"OVER (PARTITION BY slice, slice_value ORDER BY digest, list_id) <= {SAMPLED_LISTS}",
    )
