"""Logs to measure on, made once.

Every log is made by one rule: item and group, relevance and clicks follow from the numbers of the
list and of the rank, so that files of one size hold the same rows in other clothes.
"""

from dataclasses import dataclass
from pathlib import Path

import duckdb

FULL = 10_000_000
"""Rows of the usual size."""
DEPTH = 100
"""Rows of a list."""
ITEMS = 50_021
"""A prime, so that stepping through the items meets none twice in a list."""
FLOOR_COLUMNS = ("list_id", "item_id", "rank", "relevance", "click")
"""The columns that the floor sums, beside the one it groups by."""
SETTING_COLUMNS = {
    "grp2": "'g' || (hash(item) % 2)",
    "grp20": "'g' || (hash(item) % 20)",
    "grp200": "'g' || (hash(item) % 200)",
    **{f"attribute{j}": f"'g' || (hash(item, {j}) % 4)" for j in (2, 3, 4)},
    **{f"slice{j}": f"'s' || (hash(l, {j}) % 10)" for j in (1, 2, 3)},
    "slice100": "'s' || (hash(l, 4) % 100)",
}
"""Further attributes and slices, in a file that has all of them."""


@dataclass(frozen=True)
class Log:
    """One file: how many rows, how long its lists are, and what else tells it from others.

    ``rows`` is a share of the rows of the size at hand.
    """

    rows: float = 1.0
    depth: int = DEPTH
    text: bool = True
    shuffled: bool = False
    wide: bool = False
    lists: int | None = None
    """Lists at the full size, where they do not follow from the rows."""
    fixed: bool = False
    """Whether it is the same at every size."""
    pool: bool = False
    """Whether every list is an order of the same items: what some libraries need."""

    def counted(self, size_rows: int) -> tuple[int, int]:
        """Lists and rows of the file at a size."""
        share = 1 if self.fixed else min(1, size_rows / FULL)
        lists = (
            round(self.lists * share) if self.lists else round(size_rows * self.rows / self.depth)
        )
        return max(2, lists), max(2, lists) * self.depth


LOGS = {
    "integer": Log(text=False),
    "text": Log(),
    "shuffled": Log(shuffled=True),
    "wide": Log(wide=True),
    "tenth": Log(rows=0.1),
    "hundredth": Log(rows=0.01),
    "short": Log(depth=10),
    "long": Log(depth=1000),
    "lists-1k": Log(lists=1_000, depth=20),
    "lists-10k": Log(lists=10_000, depth=20),
    "lists-100k": Log(lists=100_000, depth=20),
    "thousand": Log(lists=50, depth=20, fixed=True),
    "warm-up": Log(lists=50, depth=20, fixed=True, wide=True),
    "pool": Log(rows=0.05, pool=True),
}


def ready(folder: Path, name: str, size_rows: int) -> Path:
    """The file of a log at a size, written if it is not there yet."""
    log = LOGS[name]
    lists, rows = log.counted(size_rows)
    path = folder / f"{name}-{rows}.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        with duckdb.connect(config={"threads": 2}) as connection:
            connection.execute("SET memory_limit = '8GB'")
            connection.execute(f"SET temp_directory = '{folder / 'spill'}'")
            connection.execute(f"COPY ({_query(log, lists)}) TO '{unfinished}' (FORMAT parquet)")
        unfinished.rename(path)
    return path


def _query(log: Log, lists: int) -> str:
    list_id = "'r' || lpad(l::VARCHAR, 9, '0')" if log.text else "l"
    item_id = "'i' || lpad(item::VARCHAR, 7, '0')" if log.text else "item::BIGINT"
    more = "".join(f", {sql} AS {name}" for name, sql in SETTING_COLUMNS.items() if log.wide)
    item = "r" if log.pool else f"(hash(l) % {ITEMS} + r * 503) % {ITEMS}"
    rank = "row_number() OVER (PARTITION BY l ORDER BY hash(l, r, 5))" if log.pool else "r + 1"
    order = "hash(l, rank, 3)" if log.shuffled else "l, rank"
    # Two numbers a row are sorted, and what they stand for is made afterwards.
    return (
        f"SELECT {list_id} AS list_id, {item_id} AS item_id, rank::INTEGER AS rank, "
        "'g' || (hash(item) % 4) AS grp, "
        "(hash(l * 1000 + rank, 7) % 5 = 0)::INTEGER::DOUBLE AS relevance, "
        f"(hash(l * 1000 + rank, 9) % 17 = 0)::INTEGER::DOUBLE AS click{more} FROM "
        f"(SELECT l, rank, {item} AS item FROM (SELECT l, r, {rank} AS rank FROM "
        f"range({lists}) AS t(l), range({log.depth}) AS u(r)) ORDER BY {order})"
    )
