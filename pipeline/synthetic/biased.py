"""Synthetic rankings with a known amount of bias, to see what a metric makes of it.

Here: what is asked for, checked, and all that follows from it for every day alike.  Not here: how
a ranking is drawn (``biased_orders``), what is logged of it (``biased_days``), tables and files
(``biased_period``).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow

from pipeline.synthetic.biased_checks import problems_of_rankings
from pipeline.synthetic.biased_orders import Pool, Relevance, apportioned, examination
from pipeline.synthetic.biased_request import BiasedRequest, shares_of
from pipeline.synthetic.files import CannotGenerate, numbered
from pipeline.synthetic.queries import Floats, Integers


@dataclass(frozen=True)
class BiasedRankings(BiasedRequest):
    """Rankings of items in groups, with a bias that ``phi`` sets.

    ``groups`` are shares of the ``items`` by name, in any unit: they are divided by their sum.
    At each place of a list the next item is, with probability ``phi``, any of the list's
    candidates, and otherwise one of the first group that has candidates left.  At ``phi`` 0 whole
    groups are stacked in their ``order``: ``smallest`` first, as in RankTune, ``largest`` first,
    or as ``given``.  At 1 each group has its share at every depth, but for chance.  Exposure grows
    more even with ``phi`` in any order.  NDKL falls all the way where smaller groups come first;
    a large group on top is close to the mix of the whole list, and NDKL may be lowest below 1.

    ``length`` is the number of rows of a list, or the fewest and the most, all equally likely;
    ``candidates`` (as many by default) is how many items are ranked before the list is cut.  The
    groups' shares of the candidates are those of the catalogue.  With ``length`` equal to
    ``items``, a list ranks them all.

    Within a group, items are ordered by a score that has the given ``correlation``, in [-1, 1],
    with their merit: 1 puts the best first, 0 orders them at random.  Merit becomes ``relevance``:
    ``graded`` in steps of 0.01, ``binary``, or ``none`` to leave it out of the log.  Its mean falls
    in equal steps from ``mean_relevance + group_gap / 2`` in the group that the bias puts first to
    ``mean_relevance - group_gap / 2`` in the last: a bias may be merited, or against merit.

    ``clicks`` follow a position-based model, P(click) = P(examined at rank) x (click_noise +
    (1 - click_noise) x relevance).  Examination is ``1 / log2(rank + 1)`` under ``log`` and
    ``rank ** -eta`` under ``power``; ``none`` leaves clicks out.  With ``propensity``, the
    probability of examination is a column of the log.

    ``slices`` are columns of the list: name, then shares by value, or values of equal shares.
    ``attribute`` names the column of the groups.  Rankings that differ in ``phi`` alone are drawn
    from the same random numbers.

    Raises CannotGenerate, a ValueError that tells all problems at once.

    >>> from pipeline.synthetic import biased_table
    >>> rankings = BiasedRankings(groups={"F": 2, "M": 3}, phi=0.0, length=5, items=100)
    >>> biased_table(rankings, 1)["group"].to_pylist()
    ['F', 'F', 'M', 'M', 'M']
    """

    def __post_init__(self) -> None:
        # Much is worked out on first use: what a caller changes later must not be seen then.
        object.__setattr__(self, "groups", dict(self.groups))
        slices = {name: dict(shares_of(values)) for name, values in self.slices.items()}
        if problems := problems_of_rankings(self):
            raise CannotGenerate(problems)
        object.__setattr__(self, "slices", slices)

    @cached_property
    def ordered_groups(self) -> tuple[str, ...]:
        """The groups in the order of the bias; of equal shares, the one given first comes first."""
        sign = {"smallest": 1, "largest": -1, "given": 0}[self.order]
        return tuple(sorted(self.groups, key=lambda name: sign * self.groups[name]))

    @cached_property
    def pool(self) -> Pool:
        """The items and queries, the same on all days."""
        shares = [self.groups[name] for name in self.ordered_groups]
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(2,)))
        return Pool.of(apportioned(shares, self.items), rng)

    @cached_property
    def judge(self) -> Relevance:
        """What makes relevance of merit."""
        steps = np.linspace(0.5, -0.5, len(self.groups))
        means = self.mean_relevance + self.group_gap * steps
        return Relevance(tuple(means.tolist()), self.relevance == "binary")

    @cached_property
    def examined_at(self) -> Floats:
        """Probability of examination at each rank, top down."""
        return examination(self.lengths[1], self.eta if self.clicks == "power" else None)

    @property
    def depth(self) -> int:
        """The most candidates of a list."""
        return self.candidates or self.lengths[1]

    @property
    def schema(self) -> pyarrow.Schema:
        """The columns of the log."""
        text = pyarrow.string()
        columns = dict.fromkeys(("list_id", "query_id", "item_id"), text)
        columns["rank"] = pyarrow.int32()
        if self.relevance != "none":
            columns["relevance"] = pyarrow.float64()
        if self.clicks != "none":
            columns["click"] = pyarrow.int8()
        if self.propensity:
            columns["propensity"] = pyarrow.float64()
        return pyarrow.schema({**columns, **dict.fromkeys(self.slices, text)})

    @cached_property
    def item_ids(self) -> pyarrow.Array:
        """The id of each item."""
        return numbered("item-", np.arange(self.items), self.items)

    @cached_property
    def query_ids(self) -> pyarrow.Array:
        """The id of each query."""
        queries = len(self.pool.begins)
        return numbered("q", np.arange(queries), queries)

    def item_table(self) -> pyarrow.Table:
        """One row per item: ``item_id`` and its group."""
        groups = self.groups_of(np.arange(self.items))
        return pyarrow.table({"item_id": self.item_ids, self.attribute: groups})

    def groups_of(self, item: Integers) -> pyarrow.Array:
        """The group of each of these items, which are given by number."""
        names = pyarrow.array(self.ordered_groups, pyarrow.string())
        return names.take(pyarrow.array(self.pool.groups[item]))
