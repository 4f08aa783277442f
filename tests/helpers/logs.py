"""Small ranking logs for tests: written down, delivered as files, scored and read back."""

import gzip
import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pandas as pd
import pyarrow
import pyarrow.parquet
from stores import LENIENT

from metrics import FAIRNESS, METRICS, Measure, Metric
from pipeline import score
from pipeline.runs.in_memory import score_files
from pipeline.settings.audit import Settings
from pipeline.settings.load import settings_from
from pipeline.store.batch_files import opened
from pipeline.store.paths import store_of

Row = dict[str, Any]
Rows = list[Row]
Columns = Mapping[str, Sequence[Any]]
NUMBERS = {
    "rank": "int64",
    "reference_rank": "int64",
    **dict.fromkeys(("score", "relevance", "click", "propensity", "predicted_click"), "float64"),
}
DAY = "2026-01-05"


def shown(*lists: str, **columns: Sequence[Sequence[Any]]) -> Rows:
    """Rows of lists written as one letter per item, the letter its group; '.' has none.

    ``columns`` hold one value per item, list by list: ``relevance=[[1, 0], [0.5]]``.
    """
    return [
        {
            "list_id": f"l{number}",
            "item_id": f"{number}.{rank}",
            "rank": rank,
            "group": None if letter == "." else letter,
            **{name: values[number][rank - 1] for name, values in columns.items()},
        }
        for number, letters in enumerate(lists)
        for rank, letter in enumerate(letters, start=1)
    ]


def ranked(lists: Sequence[Sequence[str]], groups: Mapping[str, str]) -> Rows:
    """Rows of whole lists of items, numbered from the top."""
    return [
        {"list_id": f"l{number}", "item_id": item, "rank": rank, "group": groups[item]}
        for number, items in enumerate(lists)
        for rank, item in enumerate(items, start=1)
    ]


def again(rows: Rows, name: str = "again") -> Rows:
    """The same lists under other ids."""
    return [{**row, "list_id": f"{name} {row['list_id']}"} for row in rows]


def table(rows: Sequence[Row]) -> pyarrow.Table:
    """Rows as an Arrow table: numbers as numbers, all else as text, None as null."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    types = {"int64": pyarrow.int64(), "float64": pyarrow.float64()}
    return pyarrow.table(
        {
            name: pyarrow.array(
                [row.get(name) for row in rows],
                types[NUMBERS[name]] if name in NUMBERS else pyarrow.string(),
            )
            for name in names
        }
    )


def write(rows: Sequence[Row] | pyarrow.Table, path: Path) -> Path:
    """``rows`` as a file of the kind that its name says, .gz included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = rows if isinstance(rows, pyarrow.Table) else table(rows)
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(data, path)
        return path
    if ".csv" in path.suffixes:
        frame = pd.DataFrame(
            {name: data[name].to_pylist() for name in data.column_names}, dtype=object
        )
        text = frame.to_csv(index=False)
    else:
        text = "".join(json.dumps(row) + "\n" for row in data.to_pylist())
    content = text.encode()
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    return path


@dataclass(frozen=True)
class Found:
    """Scores and group values of some rows, by slice, attribute and label.

    Keys are (slice, slice_value, attribute, label); the attribute is None for metrics over items.
    """

    scores: dict[tuple[str, str, str | None, str], Row]
    make_groups: Callable[[], dict[tuple[str, str, str, str], dict[str, Row]]]

    @cached_property
    def groups(self) -> dict[tuple[str, str, str, str], dict[str, Row]]:
        """Made when they are first asked for, which costs as much as the scores."""
        return self.make_groups()

    def score(self, label: str, attribute: str | None = "group") -> Row:
        """One score of the whole batch."""
        return self.scores["all", "all", attribute, label]

    def values(self, label: str, attribute: str = "group") -> dict[str, Any]:
        """Group values of the whole batch, the reason where there is none."""
        rows = self.groups["all", "all", attribute, label]
        return {name: row["reason"] or row["value"] for name, row in rows.items()}


def found(scores: Sequence[Row], groups: Callable[[], Sequence[Row]]) -> Found:
    """Rows of fairness_history and of group_history, by key."""
    by_label: dict[tuple[str, str, str | None, str], Row] = {}
    for row in scores:
        label = row["metric"] + (f".{row['aggregation']}" if row["aggregation"] else "")
        key = (row["slice"], row["slice_value"], row["attribute"], label)
        assert key not in by_label
        by_label[key] = row
    return Found(by_label, lambda: _by_part(groups()))


def _by_part(groups: Sequence[Row]) -> dict[tuple[str, str, str, str], dict[str, Row]]:
    values: dict[tuple[str, str, str, str], dict[str, Row]] = {}
    for row in groups:
        part = (row["slice"], row["slice_value"], row["attribute"], row["metric"])
        assert row["group_value"] not in values.setdefault(part, {})
        values[part][row["group_value"]] = row
    return values


def records(frame: pd.DataFrame) -> Rows:
    """Rows of a frame, None where a value is missing."""
    return [
        {name: None if pd.isna(value) else value for name, value in row.items()}
        for row in frame.to_dict("records")
    ]


def scored(
    rows: Sequence[Row] | pyarrow.Table,
    attributes: Sequence[str | Sequence[str]] = ("group",),
    *,
    items: Sequence[Row] | None = None,
    **options: Any,
) -> Found:
    """Scores and group values of ``rows`` by ``pipeline.score``."""
    data = rows if isinstance(rows, pyarrow.Table) else table(rows)
    options["items"] = None if items is None else table(items)
    scores = records(score(data, attributes, **options))
    grouped = any(row["aggregation"] for row in scores)

    def groups() -> Rows:
        return records(score(data, attributes, groups=True, **options)) if grouped else []

    return found(scores, groups)


def scored_file(rows: Sequence[Row], *, items: Sequence[Row] | None = None, **said: Any) -> Found:
    """The same from a file, which takes half the time: scores and group values in one go."""
    with TemporaryDirectory() as name:
        log = write(rows, Path(name) / "log.parquet")
        pool = None if items is None else write(items, Path(name) / "items.parquet")
        return scored_files([log], pool, **said)


def scored_files(paths: Sequence[Path], items: Path | None = None, **said: Any) -> Found:
    """Scores and group values of log files, read as one batch."""
    settings = settings_from({"attributes": ["group"], "evidence": LENIENT, **said}, folder=Path())
    quick = score_files(settings, paths, items)
    return found(quick.scores, lambda: quick.groups)


def audit(folder: Path, **said: Any) -> Settings:
    """Settings of an audit in ``folder``; its logs go to ``deliver``."""
    return settings_from({"attributes": ["group"], "evidence": LENIENT, **said}, folder=folder)


def deliver(
    settings: Settings, rows: Sequence[Row], batch: str = DAY, name: str = "part-0.parquet"
) -> Path:
    """One more file of a batch."""
    return write(rows, settings.folder / "logs" / batch / name)


@contextmanager
def batch_file(
    settings: Settings, batch: str = DAY, *, read_only: bool = True
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A session on the file of a batch."""
    with opened(settings, store_of(settings).batch(batch), read_only=read_only) as connection:
        yield connection


def stored(settings: Settings, batch: str = DAY) -> Found:
    """Scores and group values in the file of a batch."""
    with batch_file(settings, batch) as connection:
        scores, groups = (
            connection.sql(f"FROM batch.{name}").to_arrow_table().to_pylist()
            for name in ("fairness_history", "group_history")
        )
        return found(scores, lambda: groups)


TEN = tuple(metric for metric in METRICS if metric.family is FAIRNESS)
"""The fairness metrics that are computed where nobody says otherwise."""


def every_measure(
    p: float = 0.1, decay: float = 0.75, k: int = 2, metrics: Iterable[Metric] = TEN
) -> Iterator[Measure]:
    """Every metric with every choice that it offers, without a cut-off and with one."""
    numbers = {"p": p, "decay": decay}
    for metric in metrics:
        options = [
            each.choices or (numbers.get(each.name, each.default),) for each in metric.parameters
        ]
        for chosen in product(*options):
            said = {each.name: v for each, v in zip(metric.parameters, chosen, strict=True)}
            if not metric.needs_cutoff:
                yield metric.at(**said)
            if metric.cutoff:
                yield metric.at(k, **said)


def bits(value: float | None) -> bytes | None:
    """The eight bytes of a double: equal only where not one bit differs."""
    return None if value is None else struct.pack("<d", value)


def same(value: Found, *, evidence: bool = True) -> dict[Any, Any]:
    """What may not differ between two ways to the same scores, to the bit.

    Without ``evidence``, how sure they are may differ.
    """
    sure = ("lower", "upper", "expected", "noise_limit", "p_noise")
    numbers = ("value", *(sure if evidence else ()))
    said = ("reason", "worst_group", "best_group", "n", "relevant", "queries", "lists", "rows")
    rows = {
        **value.scores,
        **{(*key, name): row for key, rows in value.groups.items() for name, row in rows.items()},
    }
    return {
        key: (
            *(bits(row.get(name)) for name in numbers),
            *(row.get(name) for name in said),
        )
        for key, row in rows.items()
    }
