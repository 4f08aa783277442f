"""Digests of what the history holds: part by part, and in each by batch or alert.

An entry of the ledger carries the digests of what its change wrote.  So what somebody else wrote is
told from what we did, whatever code and settings made it.

Not here: digests of results as they are published (``scores.digests``), superseded ones
(``result_digests``), and comparing (``proof``).
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow
import pyarrow.compute as pc

from schemas.columns import Table, quoted
from schemas.history import BATCHES, COUNTS_OF_HISTORY, HISTORY
from schemas.monitoring import (
    ALERT_BATCHES,
    ALERTS,
    CHANGE_POINTS,
    GATES,
    MARKERS,
    RELEASE_CHANGES,
    TRENDS,
)
from schemas.scores import WINDOW_SCORES

Digests = dict[str, str | None]
"""SHA-256 in hex by batch or alert; None where there is nothing."""
Holdings = dict[str, Digests]
"""Digests by part."""
_TOGETHER = 32
"""Batches that are read at once: all that the history holds need not fit into memory."""
_SCORES, _GROUPS = HISTORY
_SHOWN = ("status", "status_reason")
_STATUSES = _SCORES.without(
    *(name for name in _SCORES.names if name not in (*_SCORES.key, *_SHOWN))
)


@dataclass(frozen=True)
class _Part:
    """Tables, or some of their columns and rows, that are written together.

    ``by`` names the column of their keys; ``text`` is what they are called where they differ.
    """

    text: str
    tables: tuple[Table, ...]
    by: str = "batch"
    where: str = "true"


PARTS: Mapping[str, _Part] = {
    "manifest": _Part("its row of the manifest", (BATCHES,)),
    "results": _Part(
        "its scores, group values or counts",
        (_SCORES.without(*_SHOWN), _GROUPS, *COUNTS_OF_HISTORY),
    ),
    "statuses": _Part("its statuses", (_STATUSES,)),
    "assessed": _Part(
        "its gates, trends, windows or alerts",
        (GATES, TRENDS, ALERT_BATCHES, RELEASE_CHANGES, WINDOW_SCORES),
    ),
    "points": _Part("its change points", (CHANGE_POINTS,)),
    "releases": _Part("the release that its log shows", (MARKERS,), where="source = 'log'"),
    "alerts": _Part("what it says", (ALERTS,), by="alert"),
}
"""All of the history but superseded results, what people did, and what is due to be assessed."""


def holdings(
    connection: duckdb.DuckDBPyConnection, keys_by_part: Mapping[str, Iterable[str]]
) -> Holdings:
    """Digests of what the attached history holds of some keys, also within a transaction."""
    return {
        name: {**dict.fromkeys(keys), **_digests(connection, PARTS[name], keys)}
        for name, said in keys_by_part.items()
        if (keys := sorted(said))
    }


def all_holdings(connection: duckdb.DuckDBPyConnection) -> Holdings:
    """Digests of everything, by every part."""
    return holdings(connection, {name: _keys(connection, part) for name, part in PARTS.items()})


def _keys(connection: duckdb.DuckDBPyConnection, part: _Part) -> set[str]:
    there = _columns(connection)
    return {
        key
        for table in part.tables
        if table.name in there
        for (key,) in connection.execute(
            f"SELECT DISTINCT {part.by} FROM history.{table.name} WHERE {part.where}"
        ).fetchall()
    }


def _columns(connection: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """Columns of the history by table: one of an older version lacks some."""
    return dict(
        connection.execute(
            "SELECT table_name, list(column_name) FROM duckdb_columns() "
            "WHERE database_name = 'history' GROUP BY ALL"
        ).fetchall()
    )


def _digests(
    connection: duckdb.DuckDBPyConnection, part: _Part, keys: Collection[str]
) -> dict[str, str]:
    there, every = _columns(connection), list(keys)
    found: dict[str, str] = {}
    for at in range(0, len(every), _TOGETHER):
        some = every[at : at + _TOGETHER]
        hashes = {key: hashlib.sha256() for key in some}
        filled = set()
        for table in part.tables:
            names = [name for name in table.names if name in there.get(table.name, ())]
            if not names:
                continue
            order = [part.by, *(name for name in names if name != part.by)]
            rows = connection.sql(
                f"SELECT {', '.join(map(quoted, order))} FROM history.{table.name} "
                f"WHERE list_contains(?, {part.by}) AND {part.where} ORDER BY ALL",
                params=[some],
            ).to_arrow_table()
            for key, own in _by_key(rows, part.by):
                filled.add(key)
                for piece in _pieces(table.name, own.select(names)):
                    hashes[key].update(piece)
        found |= {key: hashes[key].hexdigest() for key in filled}
    return found


def _by_key(rows: pyarrow.Table, by: str) -> Iterator[tuple[str, pyarrow.Table]]:
    """Runs of rows with one key."""
    if not rows.num_rows:
        return
    runs = pc.run_end_encode(rows[by].combine_chunks())
    begin = 0
    for key, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield key, rows.slice(begin, end - begin)
        begin = end


def _pieces(name: str, rows: pyarrow.Table) -> Iterator[bytes]:
    """A table as bytes, to the last bit of every number.

    A column without any value counts as one that is not there, as in rows of before it was added.
    """
    yield f"{name} {rows.num_rows}\n".encode()
    for column in rows.column_names:
        values = rows[column]
        if values.null_count == rows.num_rows:
            continue
        yield f"{column}\n".encode()
        yield values.is_null().to_numpy().tobytes()
        yield from _values(values)


def _values(values: pyarrow.ChunkedArray) -> Iterator[bytes]:
    kind = values.type
    if pyarrow.types.is_timestamp(kind):
        values = values.cast(pyarrow.timestamp("us")).cast(pyarrow.int64())
    elif not (pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind)):
        texts = [b"" if value is None else str(value).encode() for value in values.to_pylist()]
        yield np.array([len(text) for text in texts], np.int64).tobytes()
        yield b"".join(texts)
        return
    yield values.fill_null(0).to_numpy().tobytes()
