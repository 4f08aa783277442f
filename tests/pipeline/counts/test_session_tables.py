"""Session tables: what modules hand each other is what is declared, whichever way it was made."""

import sys
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from count_tables import count_tables
from logs import Rows

from pipeline.counts.session_tables import SESSION_TABLES, SLICED, with_slices
from pipeline.counts.sql import Counting
from schemas.columns import Table

SLICES = ("device", "market")
ROWS: Rows = [
    {"list_id": f"l{number}", "item_id": f"i{rank + number}", "rank": rank, "group": "ab"[rank % 2],
     "query_id": f"q{number % 5}", "relevance": rank / 8 if number else None,
     "device": ["web", None][number % 2], "market": "xyz"[number % 3]}
    for number in range(9)
    for rank in range(1, 4 + number % 3)
]  # fmt: skip


@pytest.mark.parametrize("way", ["counters", "statements"])
@pytest.mark.parametrize("slices", [(), SLICES])
def test_columns_are_the_declared_ones(
    way: str, slices: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: dict[tuple[str, str], list[tuple[str, str]]] = {}
    make = Counting.make

    def watched(self: Counting, table: Table, *given: Any) -> None:
        make(self, table, *given)
        maker = sys._getframe(1).f_globals["__name__"].rpartition(".")[2]
        described = self.connection.execute(f"DESCRIBE {table.name}").fetchall()
        made[maker, table.name] = [(name, kind) for name, kind, *_ in described]

    monkeypatch.setattr(Counting, "make", watched)
    counters = 10**9 if way == "counters" else 0
    monkeypatch.setattr("pipeline.counts.rank_counts.CELLS_PER_ROW", counters)
    if not counters:
        monkeypatch.setattr("pipeline.counts.group_counts.MOST_COUNTERS", 0)
        monkeypatch.setattr("pipeline.counts.group_counts.MOST_SEEN", 0)
    count_tables(tmp_path, ROWS, attributes=["group"], slices=list(slices))

    expected = {}
    for module, tables in SESSION_TABLES.items():
        for table in tables:
            columns = (with_slices(table, slices) if table in SLICED else table).columns
            expected[module, table.name] = [(column.name, column.type) for column in columns]
    assert made == expected


def test_each_has_one_maker() -> None:
    names = [table.name for table in chain.from_iterable(SESSION_TABLES.values())]
    assert len(names) == len(set(names))
