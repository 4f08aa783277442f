"""Another batch, or another version of a model, beside the first: query by query and overall.

Two logs are read with the checks of every log, and each list of A is compared with the list of B
that answers the same query.  Rows are joined in the database and looked at some lists at a time;
what is held is a few numbers per query.

Not here: which list answers which (``pairing``), and what is made of the numbers (``report``).
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import fsum
from pathlib import Path

import duckdb
import numpy as np

from metrics import Measure, ScoreName
from metrics.comparison import COMPARISON_METRICS
from metrics.families import COMPARISON
from metrics.weights import FloatArray, IntArray, ratio_of
from pipeline.compare.logs.pairing import Matching, match
from pipeline.compare.logs.report import Comparison, Overall, Side
from pipeline.counts.rankings import chunks_of
from pipeline.errors import DataRefused, NoData, SettingsError
from pipeline.history.proof import check_batch_file
from pipeline.log.deliveries import batch_files
from pipeline.log.ingest import ingest
from pipeline.log.rejected_rows import rule_lines
from pipeline.log.sources import open_sources
from pipeline.log.whole_lists import run_starts
from pipeline.privacy.small_cells import SUPPRESSED
from pipeline.settings.audit import Settings
from pipeline.settings.batch_keys import BATCH_KEY
from pipeline.settings.choices import measures_for
from pipeline.settings.load import DEFAULT_FILE, load_settings, settings_from
from pipeline.store.paths import store_of
from pipeline.store.sessions import attach, attach_memory, working
from schemas.columns import quoted


def compare(
    a: str | Path,
    b: str | Path,
    *,
    metrics: Sequence[str] = (),
    k: int | None = None,
    p: float | None = None,
    config: str | Path | None = None,
) -> Comparison:
    """Compare the lists of ``a`` with those of ``b`` that answer the same queries.

    Each is a log file, a folder of them, or the key of a batch in the store of the settings
    ``config``, audit.yaml by default; those settings also say how files are read.  ``metrics`` are
    labels of the family comparison, all of them by default; ``k`` and ``p`` go to the metrics that
    take them.  The order of B is the reference.

    Raises SettingsError, DataRefused, or NoData where no query is in both, or too few are.
    """
    measures = _measures(metrics, k=k, p=p)
    settings = None
    if config or (Path(DEFAULT_FILE).is_file() and not all(Path(each).exists() for each in (a, b))):
        settings = load_settings(Path(config) if config else None)
    places = [_place(str(name), settings) for name in (a, b)]
    base = settings or _any_settings()
    with _workspace(base, places) as (workspace, connection):
        sides = [
            _read(connection, workspace, place, database)
            for place, database in zip(places, ("a", "b"), strict=True)
        ]
        matching = match(connection)
        if matching.lists == 0 and base.privacy.min_cell > 1:
            raise NoData("no query is in both")
        if matching.lists == 0:
            raise NoData(
                f"no query is in both: {sides[0].name} has {matching.only_a:,} and "
                f"{sides[1].name} {matching.only_b:,}; lists are matched by query_id, or by "
                "list_id where none is logged"
            )
        least = base.privacy.min_cell
        if least > 1 and _fewest(connection) < least:
            raise NoData(
                "too few queries or items are in both for anything to be told (privacy.min_cell)"
            )
        comparison = _compared(connection, workspace, sides, matching, measures)
    return comparison if least <= 1 else _without_few(comparison, least)


def _measures(metrics: Sequence[str], *, k: int | None, p: float | None) -> tuple[Measure, ...]:
    labels = [metrics] if isinstance(metrics, str) else list(metrics)
    try:
        measures = measures_for(labels or (COMPARISON.name,), k=k, p=p)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    for measure in measures:
        if measure.metric.family != COMPARISON:
            own = ", ".join(metric.name for metric in COMPARISON_METRICS)
            raise SettingsError(f"{measure.label} does not compare two rankings; there are {own}")
        if measure.given["reference"] != "logged":
            raise SettingsError(f"{measure.label}: the reference is B's order; leave reference out")
    return measures


@dataclass(frozen=True)
class _Place:
    """Where one side comes from: log files, or the file of a stored batch."""

    name: str
    files: tuple[Path, ...] = ()
    stored: Path | None = None
    patience: float = 0.0

    @property
    def folders(self) -> set[Path]:
        """Folders that reading it opens, where links lead to."""
        if self.stored is not None:
            return {self.stored.parent}
        return {path.resolve().parent for path in self.files}


def _any_settings() -> Settings:
    """Settings at their defaults; the attribute that they must name is not looked at."""
    return settings_from({"attributes": ["any"]}, folder=Path())


def _place(name: str, settings: Settings | None) -> _Place:
    """What ``name`` means: a file, else a folder, else a batch of the store."""
    path = Path(name)
    if path.is_file():
        return _Place(name, files=(path,))
    if path.is_dir():
        inside = settings or _any_settings()
        files = batch_files(inside.model_copy(update={"folder": path, "logs": ("*",)}), "")
        if not files:
            raise NoData(f"{name}: no files in this folder")
        return _Place(name, files=tuple(files))
    if settings is None or not BATCH_KEY.fullmatch(name):
        hint = "" if settings else "; for a batch of a store, name its settings with --config"
        raise SettingsError(f"{name}: no such file or folder{hint}")
    stored = store_of(settings).batch(name)
    if not stored.exists():
        raise NoData(f"{name}: no such file or folder, and no batch of the store {settings.store}")
    check_batch_file(store_of(settings), name)
    return _Place(name, stored=stored, patience=settings.busy_seconds)


@contextmanager
def _workspace(
    base: Settings, places: Sequence[_Place]
) -> Iterator[tuple[Settings, duckdb.DuckDBPyConnection]]:
    """A session over a temporary store that can open what is compared.

    Groups and slices play no part, so the settings here have none and no log needs to have them.
    """
    with tempfile.TemporaryDirectory(prefix="evenrank-") as name:
        here = base.model_copy(update={"store": name, "attributes": (), "slices": ()})
        folders = set[Path]().union(*(place.folders for place in places))
        with working(here, [*folders, Path(name)]) as connection:
            yield here, connection


def _read(
    connection: duckdb.DuckDBPyConnection, settings: Settings, place: _Place, database: str
) -> Side:
    """Rows of one side as the view ``rows_a`` or ``rows_b``, and what was read."""
    if place.stored:
        # Both sides may be the same batch; a file is attached once.
        attached = {
            path: name
            for name, path in connection.execute(
                "SELECT database_name, path FROM duckdb_databases()"
            ).fetchall()
        }
        source = attached.get(str(place.stored), database)
        if source == database:
            attach(connection, place.stored, database, read_only=True, patience=place.patience)
        side = Side(place.name, *_size(connection, source))
        if side.rows == 0:
            raise NoData(f"{place.name}: the batch keeps no rows; name its log files instead")
    else:
        side, source = _ingested(connection, settings, place, database), database
    connection.execute(
        f"CREATE TEMP VIEW rows_{database} AS "
        f"SELECT list_id, item_id, rank, query_id FROM {source}.ranking_log"
    )
    return side


def _size(connection: duckdb.DuckDBPyConnection, database: str) -> tuple[int, int]:
    """Lists and rows of a database."""
    ((lists, rows),) = connection.execute(
        f"SELECT count(DISTINCT list_id), count(*) FROM {quoted(database)}.ranking_log"
    ).fetchall()
    return lists, rows


def _ingested(
    connection: duckdb.DuckDBPyConnection, settings: Settings, place: _Place, database: str
) -> Side:
    attach_memory(connection, database)
    try:
        sources = open_sources(place.files, settings, connection)
        ingested, rows = ingest(connection, settings, sources, None, database)
        rows.store()
    except NoData as error:
        raise NoData(f"{place.name}: {error}") from None
    except DataRefused as error:
        raise DataRefused(f"{place.name}: {error}") from None
    notes = (*ingested.notes, *rule_lines(ingested.rules))
    return Side(place.name, ingested.lists, ingested.rows_accepted, ingested.rows_rejected, notes)


def _compared(
    connection: duckdb.DuckDBPyConnection,
    settings: Settings,
    sides: Sequence[Side],
    matching: Matching,
    measures: Sequence[Measure],
) -> Comparison:
    names = [name for measure in measures for name in measure.scores()]
    values_by_chunk: dict[str, list[FloatArray]] = {name.label: [] for name in names}
    shared: list[IntArray] = []
    query = (
        "SELECT list, a.rank AS rank, b.rank AS reference_rank, depth_b AS reference_length "
        "FROM pairs JOIN rows_a AS a ON a.list_id = list_a "
        "LEFT JOIN rows_b AS b ON b.list_id = list_b AND b.item_id = a.item_id "
        "ORDER BY list, a.rank"
    )
    for chunk in chunks_of(connection, query, relevant_from=settings.relevant_from):
        shared.append(chunk.lists.count(chunk.lists.reference_rank > 0))
        for name in names:
            reading = name.aggregation.name if name.aggregation else None
            function = name.measure.list_functions[reading]
            values_by_chunk[name.label].append(function(chunk.lists, name.measure.given).value)
    pairs = connection.sql(
        "SELECT query_id, items_a, items_b FROM pairs ORDER BY list"
    ).to_arrow_table()
    queries = pairs["query_id"].to_numpy()
    first = run_starts(queries)
    values = {label: np.concatenate(found) for label, found in values_by_chunk.items()}

    def per_query(counts: IntArray) -> IntArray:
        found: IntArray = np.add.reduceat(counts, first)
        return found

    return Comparison(
        a=sides[0],
        b=sides[1],
        matching=matching,
        overall=tuple(_overall(name, values[name.label]) for name in names),
        queries=queries[first].tolist(),
        lists=np.diff(first, append=len(pairs)),
        items_a=per_query(pairs["items_a"].to_numpy()),
        items_b=per_query(pairs["items_b"].to_numpy()),
        shared=per_query(np.concatenate(shared)),
        values={label: _means(found, first) for label, found in values.items()},
    )


def _fewest(connection: duckdb.DuckDBPyConnection) -> int:
    """The fewest queries or items that a side has, in all or in lists that have a partner."""
    counts = [
        connection.execute(
            f"SELECT least(count(DISTINCT query_id), count(DISTINCT item_id)) FROM rows_{side}{of}"
        ).fetchall()[0][0]
        for side in ("a", "b")
        for of in ("", f" WHERE list_id IN (SELECT list_{side} FROM pairs)")
    ]
    return int(min(counts))


def _without_few(comparison: Comparison, least: int) -> Comparison:
    """What is about all matched lists, or enough of them."""
    return replace(
        comparison,
        told=False,
        overall=tuple(
            each if each.lists >= least else Overall(each.name, None, SUPPRESSED, each.lists)
            for each in comparison.overall
        ),
    )


def _means(values: FloatArray, first: IntArray) -> FloatArray:
    """Mean of the numbers of each query, NaN where it has none."""
    known = ~np.isnan(values)
    sums = np.add.reduceat(np.where(known, values, 0.0), first)
    return ratio_of(sums, np.add.reduceat(known.astype(np.int64), first))


def _overall(name: ScoreName, values: FloatArray) -> Overall:
    known = values[~np.isnan(values)]
    if len(known) == 0:
        return Overall(name, None, name.measure.metric.empty.value, 0)
    return Overall(name, fsum(known.tolist()) / len(known), None, len(known))
