"""What a row of a ranking log must be.

The pandera schemas are the contract.  Row rules are the checks and dtypes of their columns; list
rules speak of all rows of one list.  ``schemas.offenders`` turns both into the SQL that finds and
explains the rows that break them, so a rule is written once.

Not here: how accepted rows are stored (``stored_log``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pandera.pandas as pa

from schemas.columns import Column, Table, internal

MAX_RANK = 1_000_000
"""Deepest rank that is read: a longer list is a broken log far more often than a long list."""

CONTROL = r"[\x00-\x1f\x7f-\x9f]"
"""A control character, in a pattern: nobody can see it, and who reads an id elsewhere drops it."""


def _id_checks(name: str) -> tuple[pa.Check, ...]:
    return (
        pa.Check.ne("", title=f"{name}_empty", error="is empty"),
        pa.Check.str_matches(
            f"^{CONTROL.replace('[', '[^')}*$",
            title=f"{name}_control",
            error="holds a control character, such as a tab or a line end",
        ),
    )


LIST_ID = Column(
    "list_id",
    "VARCHAR",
    "one ranking shown for one request",
    checks=_id_checks("list_id"),
)
ITEM_ID = Column(
    "item_id",
    "VARCHAR",
    "the item shown",
    checks=_id_checks("item_id"),
)
RANK = Column(
    "rank",
    "BIGINT",
    "logged rank, 1 = top",
    checks=(
        pa.Check.ge(1, title="rank_low", error="is below the first rank"),
        pa.Check.le(MAX_RANK, title="rank_high", error=f"is above {MAX_RANK:,}"),
    ),
)
RELEVANCE = Column(
    "relevance",
    "DOUBLE",
    "how relevant the item is to the request, in [0, 1]",
    nullable=True,
    checks=(pa.Check.in_range(0.0, 1.0, title="relevance_range", error="is outside [0, 1]"),),
)
CLICK = Column(
    "click",
    "DOUBLE",
    "click-through rate in [0, 1]; 0 or 1 for raw clicks",
    nullable=True,
    checks=(pa.Check.in_range(0.0, 1.0, title="click_range", error="is outside [0, 1]"),),
)
QUERY_ID = Column("query_id", "VARCHAR", "what requests repeat; the list when not logged")
REFERENCE_RANK = Column(
    "reference_rank",
    "BIGINT",
    "rank in another ranking of the same list",
    nullable=True,
    checks=(
        pa.Check.ge(1, title="reference_rank_low", error="is below the first rank"),
        pa.Check.le(MAX_RANK, title="reference_rank_high", error=f"is above {MAX_RANK:,}"),
    ),
)
PROPENSITY = Column(
    "propensity",
    "DOUBLE",
    "probability that the row was looked at, in (0, 1]",
    nullable=True,
    checks=(
        pa.Check.gt(0.0, title="propensity_low", error="is not above 0"),
        pa.Check.le(1.0, title="propensity_high", error="is above 1"),
    ),
)
PREDICTED_CLICK = Column(
    "predicted_click",
    "DOUBLE",
    "click-through rate that a model expects, in [0, 1]",
    nullable=True,
    checks=(pa.Check.in_range(0.0, 1.0, title="predicted_click_range", error="is outside [0, 1]"),),
)
MODEL_VERSION = Column(
    "model_version", "VARCHAR", "release that made the list; a new one is a marker", nullable=True
)
SCORE = Column(
    "score",
    "DOUBLE",
    "what the list is ordered by, highest first, where ranks are not logged",
    checks=(pa.Check.in_range(-1.7e308, 1.7e308, title="score_range", error="is not finite"),),
)
POSITION = Column(
    "position",
    "BIGINT",
    "place in the list by order, 1..n; differs from rank only where ranks have gaps",
    checks=(pa.Check.ge(1, title="position_low", error="is below 1"),),
)

LOGGED = (
    LIST_ID,
    ITEM_ID,
    RANK,
    SCORE,
    RELEVANCE,
    CLICK,
    QUERY_ID,
    REFERENCE_RANK,
    PROPENSITY,
    PREDICTED_CLICK,
    MODEL_VERSION,
)
"""Columns that a log may hold besides slices and attributes."""
REQUIRED = ("list_id", "item_id")
"""Columns that a log must hold; rank or score comes with them."""


def named(name: str) -> Column:
    """A slice or attribute column: text without surrounding space, never empty or null."""
    return Column(
        name,
        "VARCHAR",
        "slice or attribute value; unknown where the log has none",
        checks=(
            pa.Check.str_matches(
                r"(?s)^[^\s](.*[^\s])?$",
                title="name_not_trimmed",
                error="is empty or has space around it",
            ),
        ),
    )


def ranking_log(slices: tuple[str, ...], attributes: tuple[str, ...]) -> Table:
    """The table of accepted rows, for the slices and attributes of an audit."""
    return Table(
        "ranking_log",
        "Accepted rows: one item in one list.",
        (
            LIST_ID,
            ITEM_ID,
            RANK,
            POSITION,
            RELEVANCE,
            CLICK,
            QUERY_ID,
            REFERENCE_RANK,
            PROPENSITY,
            PREDICTED_CLICK,
            MODEL_VERSION,
            *(named(name) for name in slices),
            *(named(name) for name in attributes),
        ),
        key=("list_id", "item_id"),
    )


BINARY = Column(
    "relevance",
    "DOUBLE",
    "relevance as ERBR needs it: 0 or 1",
    nullable=True,
    checks=(pa.Check.isin([0.0, 1.0], title="relevance_not_binary", error="is neither 0 nor 1"),),
)
BINARY_RELEVANCE = pa.DataFrameSchema({"relevance": BINARY.pandera}, name="binary_relevance")
"""What ERBR asks of a batch.  A batch that breaks it keeps every other metric."""


@dataclass(frozen=True)
class ListRule:
    """A rule about all rows of one list.

    ``broken`` is a SQL condition on the rows of one list, under GROUP BY list_id; ``offends`` is
    one on a single row, with windows over its list.  Both call the user's columns by their
    ``internal`` names.  ``passes`` takes a frame of whole lists and says for each row whether its
    list obeys: the same rule for pandera.
    """

    name: str
    column: str
    error: str
    broken: str
    offends: str
    passes: Callable[[pd.DataFrame], "pd.Series[Any]"]

    @property
    def check(self) -> pa.Check:
        """The rule as a pandera check on frames of whole lists."""
        return pa.Check(self.passes, name=self.name, title=self.name, error=self.error)


DUPLICATE_ITEM = ListRule(
    "duplicate_item",
    "item_id",
    "is in the list twice",
    broken="count(DISTINCT item_id) < count(item_id)",
    offends="item_id IS NOT NULL AND count(*) OVER (PARTITION BY list_id, item_id) > 1",
    passes=lambda frame: ~frame.duplicated(["list_id", "item_id"], keep=False),
)
DUPLICATE_RANK = ListRule(
    "duplicate_rank",
    "rank",
    "is in the list twice",
    broken="count(DISTINCT rank) < count(rank)",
    offends="rank IS NOT NULL AND count(*) OVER (PARTITION BY list_id, rank) > 1",
    passes=lambda frame: ~frame.duplicated(["list_id", "rank"], keep=False),
)
RANK_GAP = ListRule(
    "rank_gap",
    "rank",
    "follows a gap in ranks",
    broken="max(rank) > count(DISTINCT rank)",
    offends="rank > 1 + coalesce(max(rank) OVER (PARTITION BY list_id ORDER BY rank "
    "RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)",
    passes=lambda frame: (
        frame.groupby("list_id")["rank"].transform("max")
        <= frame.groupby("list_id")["rank"].transform("nunique")
    ),
)


def slice_constant(name: str) -> ListRule:
    """Slices describe the request, so a list has one value of each."""
    column = internal(name)
    return ListRule(
        "slice_not_constant",
        name,
        "differs within the list",
        broken=f"min({column}) < max({column})",
        offends=f"{column} <> first_value({column}) OVER "
        "(PARTITION BY list_id ORDER BY rank, file, row)",
        passes=lambda frame: frame.groupby("list_id")[name].transform("nunique") <= 1,
    )


def _said_once(name: str) -> ListRule:
    """A list has one value of a column of text; a missing one is a value of its own."""
    value = f"coalesce({name}, '')"
    return ListRule(
        f"{name.removesuffix('_id')}_not_constant",
        name,
        "differs within the list",
        broken=f"count(DISTINCT {value}) > 1",
        offends=f"{value} <> first_value({value}) OVER "
        "(PARTITION BY list_id ORDER BY rank, file, row)",
        passes=lambda frame: (
            frame[name].fillna("").groupby(frame["list_id"]).transform("nunique") <= 1
        ),
    )


# A list is one answer to one query: what looks at queries must not see half a list of one.
QUERY_CONSTANT = _said_once("query_id")
MODEL_CONSTANT = _said_once("model_version")


def list_rules(slices: tuple[str, ...], *, gaps_allowed: bool) -> tuple[ListRule, ...]:
    """The list rules of an audit."""
    gap = () if gaps_allowed else (RANK_GAP,)
    constant = (QUERY_CONSTANT, MODEL_CONSTANT, *(slice_constant(name) for name in slices))
    return (DUPLICATE_ITEM, DUPLICATE_RANK, *gap, *constant)
