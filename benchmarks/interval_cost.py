"""What intervals cost: CPU seconds on logs that go the way of a nightly batch."""

import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
from measured import table

from pipeline.runs.steps import ingest_batch, measure_batch
from pipeline.scores import scoring
from pipeline.scores.evidence.doubt import Evidence
from pipeline.scores.evidence.randomness import poisson_weights
from pipeline.settings.load import settings_from
from pipeline.store.batch_files import opened
from pipeline.store.paths import store_of

DAY = "2026-01-05"
DEPTH = 20
"""Rows of a list."""


def write_log(folder: Path, lists: int, seed: int) -> None:
    """A log of lists of 20 rows, of 4 groups, with all that the ten fairness metrics need."""
    rng = np.random.default_rng(seed)
    rows = lists * DEPTH
    start = np.repeat(rng.integers(0, 5000, lists), DEPTH)
    rank = np.tile(np.arange(1, DEPTH + 1), lists)
    item = (start + 37 * rank) % 5000
    relevance = (rng.random(rows) < 0.4).astype(float)
    data = {
        "list_id": np.char.add("l", np.repeat(np.arange(lists), DEPTH).astype(str)),
        "item_id": np.char.add("i", item.astype(str)),
        "rank": rank,
        "relevance": relevance,
        "click": relevance * (rng.random(rows) < 0.5),
        "group": np.array(list("abcd"))[item % 4],
    }
    path = folder / "logs" / DAY / "log.parquet"
    path.parent.mkdir(parents=True)
    pyarrow.parquet.write_table(pyarrow.table(data), path)


def cost(sizes: Sequence[int], seed: int) -> str:
    rows = []
    for lists in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_log(folder, lists, seed)
            said = {"attributes": ["group"], "threads": 1, "evidence": {"noise_draws": 0}}
            settings = settings_from(said, folder=folder)
            spent = [cpu(lambda s=settings: ingest_batch(s, DAY, "run"))]
            spent.append(cpu(lambda s=settings: measure_batch(s, DAY, "run")))
            path = store_of(settings).staged(DAY, "run")
            with opened(settings, path, read_only=True) as connection:
                stored = scoring.StoredCounts(connection, "batch")
                scores = list(scoring.scored(stored, settings, settings.measures))
                spent.append(min(cpu(partial(all_intervals, connection, settings, scores, stored))
                                 for _ in range(3)))  # fmt: skip
            rows.append([f"{lists:,}", *(f"{seconds:.2f}" for seconds in spent)])
    return table(["lists of 20 rows", "reading and checking", "counting", "intervals"], rows)


def all_intervals(connection: Any, settings: Any, scores: Any, stored: Any) -> None:
    """Intervals of every score and group value, from the tables of a batch."""
    poisson_weights.cache_clear()
    evidence = Evidence(connection, "batch", settings, settings.measures)
    for each in scores:
        queries = stored.slices[each.part]["queries"]
        evidence.of(each.part, each.attribute or "group", each.evaluation, each.counts, queries)


def cpu(work: Any) -> float:
    """CPU seconds of all threads."""
    before = time.process_time()
    work()
    return time.process_time() - before
