"""From delivered files to accepted rows: read, screen, store what is clean, explain the rest.

Nearly all lists obey every rule.  One pass finds those that may not and numbers all others, which
are stored at once.  Suspect lists are cast and checked row by row, in SQL made from the pandera
schemas, which finds and names every offender; what is let in of them takes the same pass.
Everything that is stored is validated: pandera schemas decide whether the transaction commits.

Here: the order of the steps, and limits on a batch as a whole.  Not here: any single step.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import duckdb
import pyarrow

from metrics import UNKNOWN
from pipeline.errors import AuditError, DataRefused, NoData, several
from pipeline.formatting.numbers import counted
from pipeline.log.accepted_rows import AcceptedLog, store
from pipeline.log.alike import notes_on_alike
from pipeline.log.checked_lists import NUMBERS, CheckedLists, Gaps, ListTooLong
from pipeline.log.column_mapping import Layout, layout, log_layouts, misspelt, nested_columns
from pipeline.log.counted_as import notes_on_counted, open_counted_as
from pipeline.log.delivered_batches import delivered_batches, described
from pipeline.log.delivered_rows import blamed, open_delivered
from pipeline.log.held_rows import HeldRows
from pipeline.log.item_table import read_items
from pipeline.log.joined_items import joined_rows, notes_on_joined, open_joined
from pipeline.log.parquet_batches import NotReadable, are_readable, parquet_batches
from pipeline.log.placed_batches import BYTES_PER_ROW, placed_batches
from pipeline.log.reading import Reading, key_of, value_of
from pipeline.log.rejected_rows import RuleCount, accepted, judge, rule_counts, rule_lines
from pipeline.log.screening import (
    CLEAN,
    NOT_BINARY,
    SUSPECTS,
    Surveyed,
    are_long,
    refuse_long,
    spanning,
    survey,
    surveyed,
)
from pipeline.log.sources import Source
from pipeline.log.staged_rows import stage
from pipeline.log.validation import gate
from pipeline.log.values import group_of
from pipeline.log.whole_lists import ListsApart
from pipeline.privacy.hashed_ids import hash_with_key
from pipeline.settings.audit import Settings
from pipeline.settings.labels import JOIN
from pipeline.store.memory import allowed_memory
from pipeline.store.tables import create, transaction
from schemas.columns import internal, literal, quoted
from schemas.counts import GROUP_SIZES
from schemas.history import IdsDiffer
from schemas.rules import LOGGED, RANK
from schemas.stored_log import LOG_ITEMS, stored_log, views
from schemas.tables import REJECTED_ROWS, RULE_COUNTS

_SHOWN_GROUPS = 10  # values in one line of a message
_SHARE_HELD = 4
"""Rows in hand may take a fourth of what a session may, before they go to a file."""


@dataclass(frozen=True)
class Ingested:
    """What became of a batch's rows.

    ``graded_rows`` have a relevance other than 0 and 1; ``unknown_rows`` counts, per attribute,
    accepted rows without a group; ``notes`` are remarks on what was delivered.  ``rows_joined``
    counts accepted rows whose item the item table holds, None where no attribute comes from one,
    and ``ids_differ_in`` says why few do, where that is plain.  ``few``: accepted
    rows are of too few queries or items for any number about them to be told.
    """

    rows_read: int
    rows_accepted: int
    lists: int
    lists_rejected: int
    graded_rows: int
    unknown_rows: dict[str, int]
    rules: tuple[RuleCount, ...] = ()
    notes: tuple[str, ...] = ()
    rows_joined: int | None = None
    ids_differ_in: IdsDiffer | None = None
    few: bool = False

    @property
    def rows_rejected(self) -> int:
        """Rows not accepted, those of rejected lists included."""
        return self.rows_read - self.rows_accepted


class RowsMissing(AuditError):
    """Rows were counted that did not all come when they were read."""

    def __init__(self) -> None:
        super().__init__("the files changed while they were read; run the batch again")


class BatchRefused(DataRefused):
    """The rows of a batch break its contract; carries the counts of what was found."""

    def __init__(self, text: str, ingested: Ingested) -> None:
        super().__init__(text)
        self.ingested = ingested

    def __reduce__(self) -> tuple[type["BatchRefused"], tuple[str, Ingested]]:
        """How it comes back from a worker process, whole."""
        return BatchRefused, (str(self), self.ingested)


def ingest(
    connection: duckdb.DuckDBPyConnection,
    settings: Settings,
    sources: Sequence[Source],
    items: Source | None,
    database: str,
) -> tuple[Ingested, AcceptedLog]:
    """Read ``sources``: what became of the rows, and those that were accepted, in hand.

    Lists, items and groups of these are written to ``database``, and so are rejected rows; the
    rows themselves are written when somebody stores them.  DataRefused if the files break the
    contract as a whole or too many rows do; NoData if there are no rows.
    """
    hash_with_key(connection, settings)
    item_layout = _item_layout(items, settings) if items else None
    from_items = list(item_layout.found)[1:] if item_layout else []
    layouts = log_layouts(sources, settings, from_items)
    logged = frozenset(layouts[0].found) if layouts else frozenset()
    supplied = [name for name in from_items if name not in logged]
    reading = Reading(connection, settings, database, logged)
    create(connection, database, REJECTED_ROWS, RULE_COUNTS, GROUP_SIZES)
    rows_read = open_delivered(reading, sources, layouts)
    if rows_read == 0:
        raise NoData("the files hold no rows")
    open_counted_as(reading)
    open_joined(reading)
    if items is not None and item_layout is not None:
        read_items(reading, items, item_layout)
    notes = _notes(sources, layouts, logged)
    rows = AcceptedLog(reading)
    try:
        ingested = _ingested(
            reading,
            rows,
            _Delivered(sources, layouts, supplied),
            Ingested(rows_read, 0, 0, 0, 0, {}, (), notes),
        )
    except (duckdb.OutOfMemoryException, duckdb.InterruptException):
        raise
    except duckdb.Error as error:
        raise blamed(reading, sources, layouts, error) from None
    remarks = (*notes_on_counted(reading), *notes_on_alike(reading))
    ingested = replace(ingested, notes=(*ingested.notes, *remarks))
    if items is not None and (joined := joined_rows(reading)):
        ingested = replace(
            ingested,
            rows_joined=joined.joined,
            ids_differ_in=joined.differ,
            notes=(
                *ingested.notes,
                *notes_on_joined(reading, joined, items.shown, few=ingested.few),
            ),
        )
    changed = [f"{source.shown}: changed while it was read" for source in sources if source.changed]
    if changed:
        raise DataRefused(several("the files are not whole yet; run the batch again", changed))
    return ingested, rows


@dataclass(frozen=True)
class _Delivered:
    """Files, where their columns are, and the attributes that come from the item table."""

    sources: Sequence[Source]
    layouts: Sequence[Layout]
    supplied: Sequence[str]


def _ingested(
    reading: Reading, rows: AcceptedLog, delivered: _Delivered, ingested: Ingested
) -> Ingested:
    """``ingested`` with what became of the rows of ``delivered``; fills ``rows``."""
    sources = delivered.sources
    try:
        checked = _checked(reading, sources, delivered.layouts, ingested.rows_read)
    except ListTooLong:
        refuse_long(reading)
        raise RowsMissing from None
    if checked.rows_seen != ingested.rows_read:
        raise RowsMissing
    survey(reading, checked)
    span = spanning(reading, sources)
    ingested = replace(ingested, notes=(*ingested.notes, *([span] if span else [])))
    if are_long(reading):
        refuse_long(reading)
    clean = _store_clean(reading, rows, checked, delivered.supplied)
    ingested = replace(
        ingested, rows_accepted=clean.rows, lists=clean.lists, graded_rows=clean.graded_rows
    )
    if clean.suspects:
        stage(reading, SUSPECTS)
        judge(reading, sources)
        ingested = _with_judged(reading, ingested)
        _refuse_if_broken(reading, ingested)
        _store_judged(reading, rows, ingested, delivered.supplied)
    return _within_limits(reading, ingested)


def _checked(
    reading: Reading, sources: Sequence[Source], layouts: Sequence[Layout], rows: int
) -> CheckedLists:
    """All ``rows`` that were delivered, in the cheapest way that they can be read in."""
    ways: list[Callable[[], Generator[pyarrow.RecordBatch]]] = []
    if are_readable(reading, sources, layouts):
        ways.append(partial(parquet_batches, reading, sources, layouts))
    ways.append(partial(delivered_batches, reading))
    for way in ways:
        try:
            checked = _read(reading, way())
        except ListsApart:
            ways[:] = [way]
            break
        except NotReadable:
            continue
        if checked.are_texts:
            return checked
    room = allowed_memory(reading.connection)
    if RANK.name in reading.logged and rows * BYTES_PER_ROW <= room:
        with suppress(NotReadable), closing(ways[-1]()) as batches:
            checked = _read(reading, placed_batches(batches))
            if checked.are_texts:
                return checked
    return _read(reading, delivered_batches(reading, apart=True))


def _read(
    reading: Reading, batches: Generator[pyarrow.RecordBatch], gaps: Gaps | None = None
) -> CheckedLists:
    """All rows of some batches."""
    checked = _lists(reading, gaps)
    # A result that nobody closes would hold the session.
    with closing(batches):
        checked.read(batches)
    return checked


def _lists(reading: Reading, gaps: Gaps | None) -> CheckedLists:
    """Nothing yet, with what is to be looked at."""
    settings = reading.settings
    said = {"relevance": settings.missing_relevance, "click": settings.missing_click}
    ((spill,),) = reading.connection.execute("SELECT current_setting('temp_directory')").fetchall()
    return CheckedLists(
        HeldRows(Path(spill), allowed_memory(reading.connection) // _SHARE_HELD),
        numbers=[column for column in NUMBERS if column.name in reading.logged],
        said=described(reading),
        attributes=[name for name in settings.attribute_columns if name in reading.logged],
        zero=[name for name, missing in said.items() if missing == "zero"],
        ranked=RANK.name in reading.logged,
        gaps=gaps or settings.ranks.gaps,
        most_rows=settings.limits.list_rows,
    )


def _item_layout(items: Source, settings: Settings) -> Layout:
    """Where the item table holds its id, which comes first, and attributes."""
    item_layout = layout(items, settings, ["item_id", *settings.attribute_columns])
    if "item_id" not in item_layout.found:
        raise DataRefused(f"{items.shown}: no column 'item_id', which joins items to the log")
    if nested := nested_columns(items, item_layout):
        raise DataRefused(several("columns cannot be read", nested))
    return item_layout


def _notes(
    sources: Sequence[Source], layouts: Sequence[Layout], logged: frozenset[str]
) -> tuple[str, ...]:
    """Remarks on columns that are not read, and may have been meant to be."""
    optional = [column.name for column in LOGGED if column.name not in logged]
    return tuple(
        f"{source.shown}: column {near!r} is not read; did you mean {name!r}?"
        for source, here in zip(sources, layouts, strict=True)
        for name, near in misspelt(here, optional)
    )


def _store_clean(
    reading: Reading, rows: AcceptedLog, checked: CheckedLists, supplied: Sequence[str]
) -> Surveyed:
    """Store the lists that are not suspect."""
    settings = reading.settings
    names = settings.slices, settings.attribute_columns
    create(reading.connection, reading.name, *stored_log(*names, reading.entries))
    reading.run("CREATE OR REPLACE TEMP TABLE cell_rows (cell INTEGER, rows BIGINT)")
    reading.run(f"USE {reading.database}")
    for statement in views(*names, reading.entries):
        reading.run(statement)
    reading.run("USE memory")
    found = surveyed(reading)
    with transaction(reading.connection):
        stored = store(reading, checked, CLEAN, supplied)
        gate(reading, stored, binary=found.graded_rows == 0)
    rows.add(stored)
    return found


def _with_judged(reading: Reading, ingested: Ingested) -> Ingested:
    """``ingested`` with the lists that were looked at closely."""
    ((lists, rejected),) = reading.rows(
        "SELECT count(*) FILTER (NOT broken), count(*) FILTER (broken) FROM judged_lists"
    )
    ((let_in, graded),) = reading.rows(
        f"SELECT count(*), count(*) FILTER ({NOT_BINARY.format('relevance')}) "
        f"FROM staged {accepted(reading)}"
    )
    return replace(
        ingested,
        rows_accepted=ingested.rows_accepted + let_in,
        lists=ingested.lists + lists,
        lists_rejected=rejected,
        graded_rows=ingested.graded_rows + graded,
        rules=rule_counts(reading),
    )


def _store_judged(
    reading: Reading, rows: AcceptedLog, found: Ingested, supplied: Sequence[str]
) -> None:
    """Add what was let in of the suspect lists to the clean ones."""
    settings = reading.settings
    holes = settings.rejects.policy == "drop_row" and settings.ranks.gaps == "reject"
    said = [
        f"{quoted(each.name)} AS {key_of(each) if each.type == 'VARCHAR' else value_of(each)}"
        for each in reading.columns
    ]
    users = [internal(name) for name in reading.users]
    let_in = f"(SELECT file, {', '.join([*said, *users])} FROM staged {accepted(reading)})"
    batches = delivered_batches(reading, let_in, judged=True, apart=True)
    checked = _read(reading, batches, gaps="keep" if holes else None)
    if not checked.runs_seen:
        return
    with (
        reading.registered("judged_runs", checked.survey()),
        transaction(reading.connection),
    ):
        stored = store(reading, checked, "judged_runs", supplied)
        gate(reading, stored, binary=found.graded_rows == 0)
    rows.add(stored)


def _refuse_if_broken(reading: Reading, ingested: Ingested) -> None:
    """BatchRefused where the settings do not let the batch in; no row of it is kept then."""
    if not ingested.rules:
        return
    settings = reading.settings
    share = ingested.rows_rejected / ingested.rows_read
    limit = settings.rejects.max_rejected_share
    if settings.rejects.policy == "refuse_batch":
        advice = "To accept the rest of it: rejects.policy in audit.yaml."
    elif ingested.rows_accepted == 0:
        advice = "No list is left."
    elif share > limit:
        advice = f"At most {limit:.1%} may be rejected: rejects.max_rejected_share in audit.yaml."
    else:
        return
    head = (
        f"{ingested.rows_rejected:,} of {counted(ingested.rows_read, 'row')} refused "
        f"({share:.1%}), {counted(ingested.lists_rejected, 'list')}"
    )
    for table in stored_log(settings.slices, settings.attribute_columns, reading.entries):
        reading.run(f"DELETE FROM {reading.database}.{table.name}")
    raise BatchRefused(several(head, rule_lines(ingested.rules), advice), ingested)


def _within_limits(reading: Reading, ingested: Ingested) -> Ingested:
    """``ingested`` with what is known only after accepting; DataRefused beyond the limits."""
    settings = reading.settings
    unknown: dict[str, int] = {}
    problems: list[str] = []
    cells = (
        "(SELECT cell, sum(rows) AS rows FROM cell_rows GROUP BY cell) "
        f"JOIN {reading.database}.log_cells USING (cell)"
    )
    for attribute in settings.attributes:
        name, group = JOIN.join(attribute), group_of(attribute, internal)
        ((missing, groups, longest),) = reading.rows(
            f"SELECT coalesce(sum(rows) FILTER ({group} = {literal(UNKNOWN)}), 0)::BIGINT, "
            f"count(DISTINCT {group}), max(length({group})) FROM {cells}"
        )
        problems += _long_names(settings, name, longest)
        unknown[name] = missing
        share = missing / ingested.rows_accepted
        if share > settings.unknown_group.max_share:
            problems.append(
                f"{name}: {share:.1%} of the rows have no group; at most "
                f"{settings.unknown_group.max_share:.1%} (unknown_group.max_share)"
            )
        if groups > settings.limits.groups:
            problems.append(f"{name}: {groups:,} groups (limits.groups)")
    for name, expected_groups in settings.groups.items():
        strange = reading.connection.execute(
            f"SELECT {internal(name)} AS value, sum(rows)::BIGINT FROM {cells} "
            "WHERE NOT list_contains(?, value) GROUP BY value ORDER BY value",
            [[*expected_groups, UNKNOWN]],
        ).fetchall()
        if strange:
            rows = sum(count for _, count in strange)
            strange_groups = ", ".join(repr(value) for value, _ in strange[:_SHOWN_GROUPS])
            shown = f": {strange_groups}" if settings.privacy.names_groups else ""
            said = f"{counted(rows, 'row')} in {counted(len(strange), 'group')}"
            if settings.privacy.min_cell > 1:
                said = "rows in groups"
            problems.append(f"{name}: {said} that `groups` in the settings does not name{shown}")
    for name in settings.slices:
        ((values, longest),) = reading.rows(
            f"SELECT count(DISTINCT {internal(name)}), max(length({internal(name)})) "
            f"FROM {reading.database}.log_lists"
        )
        problems += _long_names(settings, name, longest)
        if values > settings.limits.slice_values:
            problems.append(f"{name}: {values:,} values (limits.slice_values)")
    if problems:
        raise DataRefused(several("the batch is refused", problems))
    return replace(ingested, unknown_rows=unknown, few=_are_few(reading))


def _are_few(reading: Reading) -> bool:
    """Whether fewer queries or items were accepted than a number must be about to be told."""
    least = reading.settings.privacy.min_cell
    if least <= 1:
        return False
    ((queries, items),) = reading.rows(
        f"SELECT (SELECT count(DISTINCT query_id) FROM {reading.database}.log_lists), "
        f"(SELECT count(*) FROM {reading.database}.{LOG_ITEMS.name})"
    )
    return bool(min(queries, items) < least)


def _long_names(settings: Settings, column: str, longest: int) -> list[str]:
    """A group or a slice with a name of thousands of characters is some other text."""
    if longest <= settings.limits.name_length:
        return []
    return [f"{column}: a value of {longest:,} characters (limits.name_length)"]
