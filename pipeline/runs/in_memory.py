"""Scores of a frame or of some files, without a store: for notebooks, tests and a first look.

The rows take the same way as those of a nightly batch (checked, counted, scored); only the files in
between live in a temporary folder.

Not here: frames as documents (``terminal.documents``), anything that is kept.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import pandas as pd
import pyarrow

from pipeline.counts.count import count_batch
from pipeline.counts.stored_counts import StoredCounts
from pipeline.errors import DataRefused, SettingsError
from pipeline.log.column_mapping import listed
from pipeline.log.headers import unquoted
from pipeline.log.ingest import Ingested, ingest
from pipeline.log.sources import Source, open_sources
from pipeline.log.unreadable import unreadable
from pipeline.privacy.suppression import Shown
from pipeline.scores import scoring
from pipeline.scores.evidence.doubt import Evidence
from pipeline.settings.audit import Settings
from pipeline.settings.choices import measures_for
from pipeline.settings.load import settings_from
from pipeline.store.sessions import attach_memory, working
from pipeline.store.tables import create
from schemas.columns import Row, Table, quoted
from schemas.judged import JUDGED_OF
from schemas.rules import LOGGED, POSITION
from schemas.scores import FAIRNESS_HISTORY, GROUP_HISTORY

Frame: TypeAlias = pd.DataFrame | pyarrow.Table
_STAMP = scoring.RunStamp("", "", "", "", datetime(1970, 1, 1))
_OF_VERDICTS = {
    *("status", "status_reason", *JUDGED_OF.values(), "judged_groups", "thin_groups"),
    *("assured", "detectable", "lists_needed"),
}
"""Columns about verdicts, which rows that belong to no batch have none of."""
_OF_A_STORE = {"batch", *_OF_VERDICTS, *_STAMP.__dict__}
"""Columns that say nothing of rows that belong to no batch."""
NO_EVIDENCE = {"resamples": 0, "noise_draws": 0}
"""Settings of evidence where nobody asks for any: it costs more than the scores."""
OF_INTERVALS = ("lower", "upper", "confidence", "seed")
_OF_GROUPS = ("compared_with", "difference_lower", "difference_upper", "effective_queries")
AGAINST_CHANCE = ("against_chance", "against_chance_lower", "against_chance_upper")
OF_NOISE = ("expected", "noise_limit", "p_noise")
_GUESSED_GROUPS = 20
"""Most values that a column may have to be taken for an attribute when none is named.

With more it is more likely an id or a number; who means it can name it."""


@dataclass(frozen=True)
class Quick:
    """Scores of some rows: what was read, rows of fairness_history and of group_history.

    ``scores`` and ``groups`` are what may be told; where anything is left out, ``less`` says so.
    """

    ingested: Ingested
    scores: list[Row]
    groups: list[Row]
    settings: Settings
    less: bool = False


@contextmanager
def _workspace(
    settings: Settings, folders: Iterable[Path]
) -> Iterator[tuple[Settings, duckdb.DuckDBPyConnection]]:
    """A session over a temporary store, with a database ``batch`` in memory."""
    with tempfile.TemporaryDirectory(prefix="evenrank-") as folder:
        root = Path(folder)
        here = settings.model_copy(update={"store": folder})
        with working(here, [*folders, root]) as connection:
            attach_memory(connection, "batch")
            yield here, connection


def _folders(*paths: Path) -> set[Path]:
    """Folders that reading files opens, where links lead to."""
    folders = {path.absolute().parent for path in paths}
    for path in paths:
        with suppress(OSError, RuntimeError):
            folders.add(path.resolve().parent)
    return folders


def check_files(settings: Settings, paths: Sequence[Path], items: Path | None) -> Ingested:
    """Read and check files; DataRefused as a nightly batch would raise it."""
    with _workspace(settings, _folders(*paths, *([items] if items else []))) as (here, connection):
        sources = open_sources(paths, here, connection)
        table = open_sources([items], here, connection)[0] if items else None
        return ingest(connection, here, sources, table, "batch")[0]


def score_files(settings: Settings, paths: Sequence[Path], items: Path | None) -> Quick:
    """Scores of log files, all read as one batch."""
    with _workspace(settings, _folders(*paths, *([items] if items else []))) as (here, connection):
        sources = open_sources(paths, here, connection)
        table = open_sources([items], here, connection)[0] if items else None
        return _scored(here, connection, sources, table)


def guess_attributes(
    paths: Sequence[Path], items: Path | None, known: Iterable[str], *, show_values: bool = False
) -> list[str]:
    """Columns that look like attributes: not of the contract, and with few values.

    Taken from the item table where there is one, else from the log.  SettingsError when there is
    no such column.
    """
    skipped = {*known, *(column.name for column in (*LOGGED, POSITION))}
    given = {"attributes": ["any"], "privacy": {"show_values": show_values}}
    settings = settings_from(given, folder=Path())
    files = [items] if items else list(paths)
    with _workspace(settings, _folders(*files)) as (workspace, connection):
        source = open_sources(files, workspace, connection)[0]
        if not listed(source, ["any"], workspace):
            raise DataRefused(f"{source.shown}: names no column of a log; is there a header?")
        names = [name for name in source.columns if name not in skipped and "*" not in name]
        try:
            few = [name for name in names if _has_few(connection, source, name)]
        except duckdb.Error as error:
            raise unreadable(source, error) from None
    if not few:
        columns = listed(source, names, workspace)
        raise SettingsError(
            f"{source.shown}: which column holds the groups? Name it with --attribute"
            + (f"; there are {columns}" if columns else "")
        )
    return few


def _has_few(connection: duckdb.DuckDBPyConnection, source: Source, name: str) -> bool:
    """Whether a column has values, and few enough of them to be groups."""
    ((values,),) = connection.execute(
        f"SELECT count(DISTINCT {quoted(name)}) FROM {source.table}"
    ).fetchall()
    return values in range(1, _GUESSED_GROUPS + 1)


def _scored(
    settings: Settings,
    connection: duckdb.DuckDBPyConnection,
    sources: Sequence[Source],
    items: Source | None,
) -> Quick:
    ingested, rows = ingest(connection, settings, sources, items, "batch")
    asked = settings.evidence.resamples > 0 or settings.evidence.noise_draws > 0
    count_batch(connection, settings, "batch", rows, evidence=asked)
    stored = StoredCounts(connection, "batch")
    found = scoring.scored(stored, settings, settings.measures)
    evidence = Evidence(connection, "batch", settings, settings.measures)
    scores, groups = scoring.rows_of(found, stored, settings, "", _STAMP, evidence)
    if settings.privacy.min_cell <= 1:
        return Quick(ingested, scores, groups, settings)
    create(connection, "batch", FAIRNESS_HISTORY, GROUP_HISTORY)
    scoring.write_scores(connection, "batch", scores, groups, settings.measures)
    shown = Shown(connection, settings, "batch")
    told, told_groups = (
        _told(connection, shown, table, rows)
        for table, rows in ((FAIRNESS_HISTORY, scores), (GROUP_HISTORY, groups))
    )
    out = shown.hidden("")
    return Quick(ingested, told, told_groups, settings, less=bool(out.blocks or out.places))


def _told(
    connection: duckdb.DuckDBPyConnection, shown: Shown, table: Table, rows: Sequence[Row]
) -> list[Row]:
    """What may be told of stored ``rows`` of a table, in their order."""
    place = {tuple(row[name] for name in table.key): at for at, row in enumerate(rows)}
    told = connection.sql(f"FROM {shown.table(table)}").to_arrow_table().to_pylist()
    return sorted(told, key=lambda row: place[tuple(row[name] for name in table.key)])


def _registered(connection: duckdb.DuckDBPyConnection, name: str, frame: Frame) -> Source:
    try:
        table = (
            frame
            if isinstance(frame, pyarrow.Table)
            else pyarrow.Table.from_pandas(frame, preserve_index=False)
        )
        if table.num_columns == 0:
            raise DataRefused(f"{name}: has no columns")
        if len({column.casefold() for column in table.column_names}) < table.num_columns:
            raise DataRefused(f"{name}: two columns have one name")
        connection.register(name, table)
        described = connection.execute(f"DESCRIBE SELECT * FROM {quoted(name)}").fetchall()
    except (pyarrow.ArrowException, TypeError, ValueError, duckdb.Error) as error:
        # Of what pyarrow says, the last part names the column; the first may quote a value.
        said = unquoted(str(error.args[-1] if error.args else error))
        raise DataRefused(f"{name}: a column cannot be read ({said})") from None
    return Source(name, "frame", {column: kind for column, kind, *_ in described})


def score(
    frame: Frame,
    attributes: Sequence[str | Sequence[str]],
    *,
    slices: Sequence[str] = (),
    items: Frame | None = None,
    metrics: Sequence[str] = (),
    k: int | None = None,
    p: float | None = None,
    decay: float | None = None,
    denominator: str | None = None,
    groups: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Fairness scores of a ranking log in memory.

    ``frame`` has one row per item and list: list_id, item_id, rank (or score), optional relevance
    and click in [0, 1], slice and attribute columns; attributes may come from ``items`` (item_id
    and attributes) instead.  In a pandas frame NaN means missing.  ``attributes`` are column
    names; a list of names is their intersection.  ``metrics`` are labels such as
    ``AWRF(p=0.2)@10``, all ten by default; ``k``, ``p``, ``decay`` and ``denominator`` go to the
    metrics that take them.  ``settings`` may hold any other key of audit.yaml; with
    ``{"evidence": {}}`` there, intervals and noise floors are computed as in an audit.

    Returns a tidy frame, one row per slice, attribute, metric and aggregation, with value, reason,
    worst_group and best_group; with ``groups``, one row per group and its value instead.  Raises
    SettingsError or DataRefused with a text that says what to change.
    """
    try:
        measures = measures_for(_listed(metrics), k=k, p=p, decay=decay, denominator=denominator)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    given = {
        "evidence": NO_EVIDENCE,
        **(settings or {}),
        "attributes": [
            each if isinstance(each, str) else list(each) for each in _listed(attributes)
        ],
        "slices": _listed(slices),
        "metrics": [measure.label for measure in measures],
    }
    with _workspace(settings_from(given, folder=Path()), []) as (workspace, connection):
        source = _registered(connection, "frame", frame)
        table = None if items is None else _registered(connection, "items", items)
        scored = _scored(workspace, connection, [source], table)
    table_of, rows = (GROUP_HISTORY, scored.groups) if groups else (FAIRNESS_HISTORY, scored.scores)
    evidence = scored.settings.evidence
    hidden = {
        *_OF_A_STORE,
        *(() if evidence.resamples else (*OF_INTERVALS, *AGAINST_CHANCE, *_OF_GROUPS)),
        *(() if evidence.noise_draws else OF_NOISE),
    }
    names = [name for name in table_of.names if name not in hidden]
    return pd.DataFrame(rows, columns=names)


def _listed(names: Any) -> list[Any]:
    """One name or several, as a list."""
    return [names] if isinstance(names, str) else list(names)
