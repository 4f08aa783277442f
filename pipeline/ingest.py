"""From delivered files to accepted rows: read, check, explain, let in.

Rows are cast and checked in SQL made from the pandera schemas, which finds and names every
offender.  What passes is written to the batch file, and then the pandera schemas themselves
decide, over Arrow-backed chunks of what was written, whether the transaction commits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import duckdb
import pandas as pd
import pandera.errors
import pandera.pandas as pa

from metrics import UNKNOWN
from pipeline.errors import AuditError, DataRefused, NoData, several
from pipeline.layouts import Layout, layout, log_layouts, misspelt
from pipeline.readers import Source
from pipeline.rejects import (
    RuleCount,
    accepted,
    counted,
    judge,
    rule_counts,
    rule_lines,
)
from pipeline.settings import JOIN, Settings
from pipeline.staging import Reading, group_of, read_items, stage
from pipeline.store import create, transaction
from schemas.columns import internal, literal, quoted
from schemas.offenders import passes
from schemas.rules import BINARY, BINARY_RELEVANCE, LOGGED
from schemas.tables import GROUP_SIZES, REJECTED_ROWS, RULE_COUNTS

_CHUNK_ROWS = 1_000_000


@dataclass(frozen=True)
class Ingested:
    """What became of a batch's rows.

    ``graded_rows`` have a relevance other than 0 and 1; ``unknown_rows`` counts, per attribute,
    accepted rows without a group; ``notes`` are remarks on what was delivered.
    """

    rows_read: int
    rows_accepted: int
    lists: int
    lists_rejected: int
    graded_rows: int
    unknown_rows: dict[str, int]
    rules: tuple[RuleCount, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def rows_rejected(self) -> int:
        """Rows not accepted, those of rejected lists included."""
        return self.rows_read - self.rows_accepted


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
    scratch: str,
) -> Ingested:
    """Read ``sources`` and write accepted and rejected rows to ``database``.

    ``scratch`` is an attached database for what is not kept.  DataRefused if the files break the
    contract as a whole or too many rows do; NoData if there are no rows.  Rejected rows are
    written in either case.
    """
    reading = Reading(connection, settings, quoted(database), quoted(scratch))
    item_layout = _item_layout(items, settings) if items else None
    from_items = list(item_layout.found)[1:] if item_layout else []
    layouts = log_layouts(sources, settings, from_items)
    logged = frozenset(layouts[0].found) if layouts else frozenset()
    create(connection, database, REJECTED_ROWS, RULE_COUNTS, GROUP_SIZES)
    stage(reading, sources, layouts)
    judge(reading, sources)
    if items is not None and item_layout is not None:
        read_items(reading, items, item_layout)
    found = _summary(reading, sources, layouts, logged)
    _refuse_if_broken(settings, found)
    create(connection, database, reading.table)
    with transaction(connection):
        _accept(reading, [name for name in from_items if name not in logged], logged)
        _gate(reading, binary=found.graded_rows == 0)
    return _within_limits(reading, found)


def _item_layout(items: Source, settings: Settings) -> Layout:
    """Where the item table holds its id, which comes first, and attributes."""
    found = layout(items, settings, ["item_id", *settings.attribute_columns])
    if "item_id" not in found.found:
        raise DataRefused(f"{items.shown}: no column 'item_id', which joins items to the log")
    return found


def _summary(
    reading: Reading,
    sources: Sequence[Source],
    layouts: Sequence[Layout],
    logged: frozenset[str],
) -> Ingested:
    """What was read and what would be accepted; NoData if nothing was read."""
    staged = f"{reading.scratch}.staged"
    ((read,),) = reading.rows(f"SELECT count(*) FROM {staged}")
    if read == 0:
        raise NoData("the files hold no rows")
    ((lists, rejected),) = reading.rows(
        "SELECT count(*) FILTER (NOT broken), count(*) FILTER (broken) "
        f"FROM {reading.scratch}.lists"
    )
    binary = " AND ".join(passes(check, "relevance") for check in BINARY.checks)
    ((let_in, graded),) = reading.rows(
        f"SELECT count(*), count(*) FILTER (NOT ({binary})) FROM {staged} {accepted(reading)}"
    )
    optional = [column.name for column in LOGGED if column.name not in logged]
    notes = tuple(
        f"{source.shown}: column {near!r} is not read; did you mean {name!r}?"
        for source, here in zip(sources, layouts, strict=True)
        for name, near in misspelt(here, optional)
    )
    return Ingested(read, let_in, lists, rejected, graded, {}, rule_counts(reading), notes)


def _refuse_if_broken(settings: Settings, found: Ingested) -> None:
    """BatchRefused where the settings do not let the batch in."""
    if not found.rules:
        return
    share = found.rows_rejected / found.rows_read
    limit = settings.rejects.max_rejected_share
    if settings.rejects.policy == "refuse_batch":
        advice = "To accept the rest of it: rejects.policy in audit.yaml."
    elif found.rows_accepted == 0:
        advice = "No list is left."
    elif share > limit:
        advice = f"At most {limit:.1%} may be rejected: rejects.max_rejected_share in audit.yaml."
    else:
        return
    head = (
        f"{found.rows_rejected:,} of {counted(found.rows_read, 'row')} refused ({share:.1%}), "
        f"{counted(found.lists_rejected, 'list')}"
    )
    raise BatchRefused(several(head, rule_lines(found.rules), advice), found)


def _accept(reading: Reading, supplied: Sequence[str], logged: frozenset[str]) -> None:
    """Write the accepted rows as the ranking log.

    ``supplied`` are attributes that come from the item table, ``logged`` the columns of the log.
    """
    settings = reading.settings
    ordinal = "row_number() OVER (PARTITION BY list_id ORDER BY {})"
    rank = position = "rank"
    if "rank" not in logged:
        rank = position = ordinal.format("score DESC, item_id")
    elif settings.ranks.gaps == "compact":
        rank = position = ordinal.format("rank")
    elif settings.ranks.gaps == "keep" or settings.rejects.policy == "drop_row":
        position = ordinal.format("rank")
    values = {name: f"staged.{quoted(name)}" for name in reading.table.names}
    values |= {
        "rank": rank,
        "position": position,
        "query_id": "coalesce(nullif(query_id, ''), list_id)",
    }
    if "relevance" in logged and settings.missing_relevance == "zero":
        values["relevance"] = "coalesce(relevance, 0)"
    if "click" in logged and settings.missing_click == "zero":
        values["click"] = "coalesce(click, 0)"
    values |= {name: f"staged.{internal(name)}" for name in reading.names}
    values |= {name: f"coalesce(items.{internal(name)}, {literal(UNKNOWN)})" for name in supplied}
    said = ", ".join(f"{values[name]} AS {quoted(name)}" for name in reading.table.names)
    join = f"LEFT JOIN {reading.scratch}.items USING (item_id)" if supplied else ""
    reading.run(
        f"INSERT INTO {reading.database}.ranking_log BY NAME SELECT {said} "
        f"FROM (SELECT * FROM {reading.scratch}.staged {accepted(reading)}) AS staged {join}"
    )


def _gate(reading: Reading, *, binary: bool) -> None:
    """Validate what was written with pandera; an error here rolls the rows back."""
    columns = reading.table.schema.columns
    for name in reading.names:
        _validate(reading, pa.DataFrameSchema({name: columns[name]}), distinct=True)
    others = {name: column for name, column in columns.items() if name not in reading.names}
    _validate(reading, pa.DataFrameSchema(others))
    if binary:
        _validate(reading, BINARY_RELEVANCE, distinct=True)


def _validate(reading: Reading, schema: pa.DataFrameSchema, *, distinct: bool = False) -> None:
    said = ", ".join(quoted(str(name)) for name in schema.columns)
    query = f"SELECT {'DISTINCT' if distinct else ''} {said} FROM {reading.database}.ranking_log"
    for chunk in reading.connection.sql(query).to_arrow_reader(_CHUNK_ROWS):
        try:
            schema.validate(chunk.to_pandas(types_mapper=pd.ArrowDtype), lazy=True)
        except pandera.errors.SchemaErrors as errors:
            broken = sorted({str(each) for each in errors.failure_cases["check"]})
            raise AuditError(
                f"rows that the checks let through do not pass the schema ({', '.join(broken)} on "
                f"{said}); nothing was stored. This is a fault of the program: please report it."
            ) from None


def _within_limits(reading: Reading, found: Ingested) -> Ingested:
    """``found`` with what is known only after accepting; DataRefused beyond the limits."""
    settings = reading.settings
    unknown: dict[str, int] = {}
    problems: list[str] = []
    log = f"{reading.database}.ranking_log"
    for attribute in settings.attributes:
        name, group = JOIN.join(attribute), group_of(attribute)
        ((missing, groups),) = reading.rows(
            f"SELECT count(*) FILTER ({group} = {literal(UNKNOWN)}), count(DISTINCT {group}) "
            f"FROM {log}"
        )
        unknown[name] = missing
        share = missing / found.rows_accepted
        if share > settings.unknown_group.max_share:
            problems.append(
                f"{name}: {share:.1%} of the rows have no group; at most "
                f"{settings.unknown_group.max_share:.1%} (unknown_group.max_share)"
            )
        if groups > settings.limits.groups:
            problems.append(f"{name}: {groups:,} groups (limits.groups)")
    for name in settings.slices:
        ((values,),) = reading.rows(f"SELECT count(DISTINCT {quoted(name)}) FROM {log}")
        if values > settings.limits.slice_values:
            problems.append(f"{name}: {values:,} values (limits.slice_values)")
    if problems:
        raise DataRefused(several("the batch is refused", problems))
    return replace(found, unknown_rows=unknown)
