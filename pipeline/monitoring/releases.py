"""Releases that the log itself shows: the version that made most lists of a batch changed.

Not here: releases that people mark (``alerts``).
"""

from collections.abc import Sequence
from itertools import pairwise

import duckdb

from pipeline.monitoring.gates import Releases
from pipeline.store.tables import now
from schemas.monitoring import MARKERS


def log_markers(
    connection: duckdb.DuckDBPyConnection, batches: Sequence[str]
) -> list[tuple[str, str]]:
    """Batches in which another model leads than in the last batch before that names one.

    Pairs of batch and text, for all of ``batches``, which are in key order.  Of two versions with
    as many lists, the first by name leads.
    """
    leading = dict(
        connection.execute(
            "SELECT batch, first(model_version ORDER BY lists DESC, model_version) "
            "FROM history.model_versions GROUP BY batch"
        ).fetchall()
    )
    versions = [(batch, leading[batch]) for batch in batches if batch in leading]
    return [
        (batch, f"model_version {before} -> {after}")
        for (_, before), (batch, after) in pairwise(versions)
        if before != after
    ]


def read_releases(
    connection: duckdb.DuckDBPyConnection, from_log: Sequence[tuple[str, str]]
) -> Releases:
    """Where releases begin: what people marked, and what the log tells now."""
    marked = connection.execute(
        "SELECT batch FROM history.markers WHERE source = 'mark'"
    ).fetchall()
    by_hand = sorted(batch for (batch,) in marked)
    logged = (batch for batch, _ in from_log)
    return Releases(tuple(sorted({*by_hand, *logged})), tuple(by_hand))


def marker_changes(
    connection: duckdb.DuckDBPyConnection, from_log: Sequence[tuple[str, str]]
) -> tuple[list[tuple[str, str]], list[list[object]]]:
    """Markers of the log that are no longer true, and rows of those that are new."""
    stored = connection.execute(
        "SELECT batch, text FROM history.markers WHERE source = 'log' ORDER BY ALL"
    ).fetchall()
    gone = [each for each in stored if each not in from_log]
    at = now()
    new: list[list[object]] = [[*each, "log", at] for each in from_log if each not in stored]
    return gone, new


def write_markers(
    connection: duckdb.DuckDBPyConnection,
    gone: Sequence[tuple[str, str]],
    new: Sequence[Sequence[object]],
) -> None:
    """Put the log's markers right, within a transaction."""
    for batch, text in gone:
        connection.execute(
            "DELETE FROM history.markers WHERE source = 'log' AND batch = ? AND text = ?",
            [batch, text],
        )
    for row in new:
        connection.execute(
            f"INSERT INTO history.markers ({MARKERS.column_list}) VALUES (?, ?, ?, ?)", list(row)
        )
