"""Small logs, settings and looks into a store, for tests of the way from files to history."""

import csv
import random
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb

from pipeline.settings.audit import Settings
from pipeline.settings.load import settings_from
from pipeline.store.paths import store_of

DAY = "2026-01-05"
Row = dict[str, Any]
Rows = list[Row]

RUN_COLUMNS = (
    "run_id",
    "computed_at",
    "replaced_at",
    "started_at",
    "finished_at",
    "peak_memory",
    "revision",
)
"""Columns in which two runs over the same input may differ."""


LENIENT = {
    "resamples": 0,
    "noise_draws": 0,
    "min_queries": 0,
    "min_appearances": 0,
    "min_relevant": 0,
}
"""Evidence as small logs can give it: none is asked for."""


def audit(folder: Path, **said: Any) -> Settings:
    """Settings as a file in ``folder`` would say them; one attribute, one thread, no waiting."""
    return settings_from(
        {
            "attributes": ["gender"],
            "threads": 1,
            "busy_seconds": 0,
            "evidence": LENIENT,
            **said,
        },
        folder=folder,
    )


def copied(settings: Settings, folder: Path) -> Settings:
    """The same audit in another folder."""
    shutil.copytree(settings.folder, folder, dirs_exist_ok=True)
    return settings.model_copy(update={"folder": folder})


def write_settings(folder: Path, text: str = "attributes: [gender]\n") -> Path:
    """An audit.yaml that does not wait for locks and takes one thread."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "audit.yaml"
    evidence = "".join(f"  {name}: {value}\n" for name, value in LENIENT.items())
    text += f"threads: 1\nbusy_seconds: 0\nevidence:\n{evidence}"
    path.write_text(text, encoding="utf-8")
    return path


def ranking(list_id: str, genders: Sequence[str] = "FMFM", **more: Any) -> Rows:
    """One list, an item per gender: relevant, not relevant, relevant, and so on; no clicks.

    ``more`` gives further columns: a list of values, one per item, or one value for all.
    """
    rows = [
        {
            "list_id": list_id,
            "item_id": f"{list_id}-{at}",
            "rank": at,
            "relevance": at % 2,
            "click": 0,
            "gender": gender,
        }
        for at, gender in enumerate(genders, start=1)
    ]
    for name, values in more.items():
        each = values if isinstance(values, list) else [values] * len(rows)
        for row, value in zip(rows, each, strict=True):
            row[name] = value
    return rows


def lists(*rankings: Rows) -> Rows:
    """The rows of several lists."""
    return [row for each in rankings for row in each]


def random_lists(seed: int, count: int = 12) -> Rows:
    """Lists of 3 to 9 items with random groups, devices, relevance and clicks."""
    draw = random.Random(seed)
    found: Rows = []
    for at in range(count):
        size = draw.randint(3, 9)
        found += ranking(
            f"q{at}",
            [draw.choice("FFMX") for _ in range(size)],
            relevance=[draw.randint(0, 1) for _ in range(size)],
            click=[draw.randint(0, 1) for _ in range(size)],
            device=draw.choice(["mobile", "desktop"]),
        )
    return found


def write_csv(path: Path, rows: Iterable[Row], *, encoding: str = "utf-8") -> Path:
    """Rows as CSV; None becomes an empty field."""
    rows = list(rows)
    names = list(dict.fromkeys(name for row in rows for name in row))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def deliver(folder: Path, rows: Iterable[Row], batch: str = DAY, name: str = "part.csv") -> Path:
    """Write rows where the settings look for the batch's log."""
    return write_csv(folder / "logs" / batch / name, rows)


def deliver_bytes(folder: Path, data: bytes, name: str, batch: str = DAY) -> Path:
    """Write a file as it is where the settings look for the batch's log."""
    path = folder / "logs" / batch / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def read(path: Path, query: str, values: Sequence[Any] = ()) -> Rows:
    """Rows of a query on a database file."""
    with duckdb.connect(str(path), read_only=True) as connection:
        found = connection.execute(query, list(values))
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def in_batch(settings: Settings, query: str, batch: str = DAY) -> Rows:
    """Rows of a query on the file of a batch."""
    return read(store_of(settings).batch(batch), query)


def in_history(settings: Settings, query: str, values: Sequence[Any] = ()) -> Rows:
    """Rows of a query on the history."""
    return read(store_of(settings).history, query, values)


def without(rows: Rows, *names: str) -> Rows:
    """Rows without some columns, in an order that does not depend on how they were written."""
    kept = [{name: value for name, value in row.items() if name not in names} for row in rows]
    return sorted(kept, key=repr)


def scores(settings: Settings, batch: str = DAY, where: str = "true") -> dict[tuple[Any, ...], Any]:
    """Current values of a batch, and why they are null, by slice, attribute and label."""
    rows = in_history(
        settings,
        "SELECT slice, slice_value, attribute, metric, aggregation, value, reason, worst_group, "
        f"best_group FROM fairness_history WHERE batch = ? AND {where}",
        [batch],
    )
    return {tuple(row.values())[:5]: tuple(row.values())[5:] for row in rows}


def whole_history(settings: Settings) -> dict[str, Rows]:
    """All that the history holds about current batches, but for run ids and times."""
    tables = ("fairness_history", "group_history", "rank_counts", "pair_stats", "prefix_stats")
    kept = (*tables, "slice_counts", "item_gaps", "group_sizes", "batches")
    return {name: without(in_history(settings, f"FROM {name}"), *RUN_COLUMNS[:-1]) for name in kept}
