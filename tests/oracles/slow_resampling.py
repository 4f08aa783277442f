"""Resamples made of rows: each row stands as often as its query's bucket is drawn; scored again.

Beside them: a random log with everything that makes a sum go wrong, and a batch counted from it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import md5
from math import log2
from pathlib import Path
from random import Random
from typing import Any

import duckdb
from logs import DAY, Found, Row, Rows, audit, deliver, found, write

from metrics import Evaluation, Replicated, Replicates, replicated
from pipeline.runs.in_memory import score_files
from pipeline.runs.steps import ingest_batch, measure_batch
from pipeline.scores import scoring
from pipeline.scores.evidence.resampling import Resampling
from pipeline.settings.audit import Settings
from pipeline.store.batch_files import opened
from pipeline.store.paths import store_of
from schemas.counts import BUCKETS

ITEMS = 30
GROUPS = (*"aaabbc", None)
"""Of an item, by its number: c is small, and some items have none."""
TARGET = {"a": 0.5, "b": 0.3, "c": 0.2}


def bucket_of(query: str) -> int:
    """The bucket of a query: the last 8 bytes of its MD5 digest, little-endian."""
    return int.from_bytes(md5(query.encode()).digest()[8:], "little") % BUCKETS


def random_log(seed: int, *, binary: bool, queries: int = 40, holes: bool = False) -> Rows:
    """Ragged lists, some queries with several; group c is seldom on the slice ``web``."""
    chance = Random(seed)
    rows: Rows = []
    for query in range(queries):
        for request in range(chance.choice([1, 1, 2, 4])):
            device = chance.choice(["app", "app", "web"])
            pool = [at for at in range(ITEMS) if device == "app" or GROUPS[at % 7] != "c" or at < 7]
            size = chance.randint(1, 12)
            for rank, item in enumerate(chance.sample(pool, size), start=1):
                graded = chance.choice([0.0, 1.0, round(chance.random(), 3)])
                rows.append(
                    {
                        "list_id": f"{query}.{request}",
                        "query_id": f"query {query}",
                        "item_id": f"i{item}",
                        "rank": rank,
                        "relevance": float(chance.random() < 0.5) if binary else graded,
                        "click": chance.choice([0.0, 0.0, 1.0, 0.3]),
                        "reference_rank": chance.randint(1, 3) * size + rank,
                        "propensity": 1 / (1 + rank),
                        "predicted_click": chance.random(),
                        "group": GROUPS[item % 7],
                        "device": device,
                    }
                )
    if holes:
        # Two queries without judgements, one item without a click.
        for row in rows:
            if row["query_id"] in ("query 3", "query 4"):
                row["relevance"] = None
        rows[0]["click"] = None
    return rows


def item_table() -> Rows:
    """The items of the log, and two of a group that is never shown."""
    rows = [{"item_id": f"i{at}", "group": GROUPS[at % 7]} for at in range(ITEMS)]
    return [*rows, *({"item_id": f"d{at}", "group": "d"} for at in range(2))]


def repeated(rows: Rows, weights: Mapping[str, int]) -> Rows:
    """Each query as often as its weight says, every time as a query of its own."""
    return [
        {
            **row,
            "list_id": f"{row['list_id']} #{copy}",
            "query_id": f"{row['query_id']} #{copy}",
        }
        for row in rows
        for copy in range(weights[row["query_id"]])
    ]


def weights_of(rows: Rows, weights: Any) -> dict[str, int]:
    """How often each query is drawn; ``weights`` has shape (buckets,)."""
    return {query: int(weights[bucket_of(query)]) for query in {row["query_id"] for row in rows}}


@dataclass(frozen=True)
class Batch:
    """A counted batch: a session on its file, its scores, and its resamples."""

    connection: duckdb.DuckDBPyConnection
    settings: Settings
    scores: list[scoring.Scored]
    resampling: Resampling

    def replicates(self, each: scoring.Scored) -> Replicates:
        attribute = each.attribute or self.settings.attribute_names[0]
        return self.resampling.resampled(each.part, attribute, each.counts).replicates

    def resampled(self) -> Iterator[tuple[scoring.Scored, Replicated]]:
        """Every evaluation with what it gives on resamples."""
        made: dict[Any, Replicates] = {}
        for each in self.scores:
            key = (each.part, each.attribute, each.counts.groups)
            if key not in made:
                made[key] = self.replicates(each)
            yield each, replicated(each.evaluation, made[key])


@contextmanager
def counted(folder: Path, rows: Rows, *, items: Rows | None = None, **said: Any) -> Iterator[Batch]:
    """The file of a batch, after counting."""
    if items is not None:
        write(items, folder / "items.parquet")
        said["items"] = "items.parquet"
    settings = audit(folder, **said)
    deliver(settings, rows)
    ingest_batch(settings, DAY, "run")
    measure_batch(settings, DAY, "run")
    with opened(settings, store_of(settings).staged(DAY, "run"), read_only=True) as connection:
        stored = scoring.StoredCounts(connection, "batch")
        yield Batch(
            connection,
            settings,
            list(scoring.scored(stored, settings, settings.measures)),
            Resampling(connection, "batch", settings, settings.measures),
        )


def scored_again(settings: Settings, rows: Rows, weights: Any) -> Found:
    """Scores and group values of one resample, computed from its rows."""
    path = write(repeated(rows, weights_of(rows, weights)), settings.folder / "resample.parquet")
    items = settings.folder / settings.items if settings.items else None
    quick = score_files(settings, [path], items)
    return found(quick.scores, lambda: quick.groups)


def defined(evaluation: Evaluation, rows: Mapping[str, Row]) -> bool:
    """Whether the same groups have a value, for the same reasons, as in the batch."""
    values = evaluation.values
    if values is None:
        return True
    return all(
        name in rows and rows[name]["reason"] == (reason.value if reason else None)
        for name, reason in zip(evaluation.groups, values.reasons, strict=True)
    )


def exposure(rank: int) -> float:
    return 1 / log2(rank + 1)


def by_item(rows: Rows) -> dict[str, list[Row]]:
    """Rows of each item."""
    held: dict[str, list[Row]] = {}
    for row in rows:
        held.setdefault(row["item_id"], []).append(row)
    return held


def linear_gap(rows: Rows, weights: Mapping[str, int]) -> float:
    """IAA of a resample in which each item's gap keeps the sign that it has in the batch."""
    gap = 0.0
    for held in by_item(rows).values():
        gaps = [exposure(row["rank"]) - row["relevance"] for row in held]
        sign = (sum(gaps) > 0) - (sum(gaps) < 0)
        drawn = (weights[row["query_id"]] for row in held)
        gap += sign * sum(weight * own for weight, own in zip(drawn, gaps, strict=True))
    lists = {row["list_id"]: weights[row["query_id"]] for row in rows}
    return gap / sum(lists.values())


def linear_gini(rows: Rows, weights: Mapping[str, int]) -> float:
    """Gini of a resample in which items keep the order of exposure that they have in the batch."""
    items = by_item(rows)
    whole = {name: sum(exposure(row["rank"]) for row in held) for name, held in items.items()}
    order = sorted(items, key=lambda name: (round(whole[name], 12), name))
    drawn = [
        sum(weights[row["query_id"]] * exposure(row["rank"]) for row in items[name])
        for name in order
    ]
    size = len(order)
    ranked = sum((2 * place - size - 1) * own for place, own in enumerate(drawn, start=1))
    return ranked / (size * sum(drawn))
