"""The one pass over the rows of a batch: each chunk is read once and counted in every way.

Here: which counters there are and what they are given.  What they hold, and which table it goes
to, stands in the modules of the tables.

Not here: reading (``log.row_chunks``), and what any counter counts.
"""

from contextlib import AbstractContextManager

from pipeline.counts.dimensions import KNOWN, Dimensions
from pipeline.counts.exact_sums import Shares
from pipeline.counts.group_counts import GroupSums
from pipeline.counts.group_items import GroupItems
from pipeline.counts.list_groups import list_groups
from pipeline.counts.mix_counts import BucketLengths, PairMixes, SampledGroups
from pipeline.counts.prefix_terms import PrefixTerms
from pipeline.counts.rank_counts import Histogram, histogram_fits, tables_by_sql
from pipeline.counts.slice_counts import ListTotals
from pipeline.counts.sql import Counting
from pipeline.log.row_chunks import RowChunk
from pipeline.log.whole_lists import CHUNK_ROWS


class OnePass:
    """Counters of a batch, and where they go."""

    def __init__(self, counting: Counting, dimensions: Dimensions) -> None:
        self._counting, self._dimensions = counting, dimensions
        self._totals = ListTotals(counting, dimensions)
        self._histogram = (
            Histogram(dimensions, counting.settings.relevant_from)
            if histogram_fits(dimensions)
            else None
        )
        self._terms = PrefixTerms(dimensions.longest)
        self._sampled = SampledGroups(counting, dimensions) if counting.evidence else None
        self._sums = {name: GroupSums(counting, dimensions, name) for name in dimensions.groups}
        self._pairs = {
            name: PairMixes(counting, dimensions, name)
            for name in dimensions.groups
            if counting.evidence
        }

        self._items = GroupItems(counting, dimensions)
        self._lengths = BucketLengths(dimensions) if counting.evidence else None

    def run(self) -> None:
        """Count all rows; makes the session table ``lists``."""
        counting, known = self._counting, self._dimensions.known
        columns = ["rank", "cell", "item", *(name for name in KNOWN if known[name])]
        for chunk in counting.chunks(columns, CHUNK_ROWS):
            self._add(chunk)
        self._totals.store()

    def _add(self, chunk: RowChunk) -> None:
        known, rows = self._dimensions.known, self._dimensions.rows
        relevance, click = (
            Shares.of(chunk.floats[name], complete=known[name] == rows) if known[name] else None
            for name in ("relevance", "click")
        )
        self._totals.add(chunk, relevance)
        if self._histogram is not None:
            self._histogram.add(chunk, relevance, click)
        self._items.add(chunk)
        if self._lengths is not None:
            self._lengths.add(chunk)
        for name, groups in self._dimensions.groups.items():
            in_lists = list_groups(chunk, groups, self._terms)
            self._sums[name].add(chunk, in_lists)
            if self._sampled is not None:
                self._pairs[name].add(chunk, in_lists)
                self._sampled.add(name, chunk, in_lists)

    def histogram(self) -> AbstractContextManager[None]:
        """For the time being, the rank histogram as tables of the session."""
        if self._histogram is None:
            return tables_by_sql(self._counting)
        return self._histogram.tables(self._counting)

    def fill(self) -> None:
        """Fill what is about all attributes, when their own tables are filled."""
        self._items.fill()
        if self._lengths is not None:
            self._lengths.fill(self._counting)

    def store(self, attribute: str) -> None:
        """Make the session tables of one attribute, and fill its mixes of sampled lists."""
        self._sums[attribute].store()
        if self._sampled is not None:
            self._pairs[attribute].fill()
            self._sampled.fill(attribute)
