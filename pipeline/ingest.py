"""From delivered files to accepted rows: read, check, explain, let in.

Rows are cast and checked in SQL made from the pandera schemas, which finds and names every
offender in one pass.  What passes is written to the batch file, and then the pandera schemas
themselves decide, over Arrow-backed chunks of what was written, whether the transaction commits.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

import duckdb
import pandas as pd
import pandera.errors

from metrics import UNKNOWN
from pipeline.errors import AuditError, DataRefused, NoData, several
from pipeline.readers import ROW, Layout, Source, layout, log_layouts
from pipeline.settings import JOIN, Settings
from pipeline.store import create, first_line, transaction
from schemas.columns import Column, internal, literal, quoted
from schemas.offenders import RowRule, passes, row_rules
from schemas.rules import (
    BINARY,
    BINARY_RELEVANCE,
    LIST_ID,
    LOGGED,
    QUERY_ID,
    RANK,
    SCORE,
    ListRule,
    list_rules,
    ranking_log,
)
from schemas.tables import GROUP_SIZES, REJECTED_ROWS, RULE_COUNTS

_TEXT_CUT = 100
_CHUNK_ROWS = 1_000_000
_SAMPLE = 8
_ESSENTIAL = {LIST_ID.name, RANK.name, SCORE.name}
"""Columns without which a row leaves a hole, so that dropping the row alone is not enough."""


@dataclass(frozen=True)
class RuleCount:
    """How many rows and lists broke one rule, with a few of them as text."""

    rule: str
    rows: int
    lists: int
    sample: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ingested:
    """What became of a batch's rows."""

    rows_read: int
    rows_accepted: int
    lists: int
    lists_rejected: int
    graded_rows: int
    unknown_rows: dict[str, int]
    rules: tuple[RuleCount, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def rows_rejected(self) -> int:
        """Rows not accepted, those of rejected lists included."""
        return self.rows_read - self.rows_accepted


class BatchRefused(DataRefused):
    """The rows of a batch break its contract; carries the counts of what was found."""

    def __init__(self, text: str, ingested: Ingested) -> None:
        super().__init__(text)
        self.ingested = ingested


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
    item_layout = (
        layout(items, settings, ["item_id", *settings.attribute_columns]) if items else None
    )
    from_items = _supplied(items, item_layout, settings)
    layouts = log_layouts(sources, settings, from_items)
    reader = _Reader(connection, settings, database, scratch)
    create(connection, database, REJECTED_ROWS, RULE_COUNTS, GROUP_SIZES)
    reader.stage(sources, layouts)
    reader.explain_rows(sources)
    reader.judge_lists(sources)
    if items and item_layout:
        reader.read_items(items, item_layout)
    logged = frozenset(layouts[0].found) if layouts else frozenset()
    found = reader.summary(logged)
    reader.refuse_if_broken(found)
    with transaction(connection):
        reader.accept(from_items, logged)
        reader.gate(binary=found.graded_rows == 0)
    return reader.checked_limits(found)


def _supplied(items: Source | None, here: Layout | None, settings: Settings) -> list[str]:
    if items is None or here is None:
        return []
    if "item_id" not in here.found:
        raise DataRefused(f"{items.shown}: no column 'item_id', which joins items to the log")
    return [name for name in settings.attribute_columns if name in here.found]


def _number(name: str, kind: str) -> str:
    """SQL of a delivered number as DOUBLE, null where it is none."""
    if kind == "VARCHAR":
        return (
            f"CASE lower({name}) WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 "
            f"ELSE TRY_CAST({name} AS DOUBLE) END"
        )
    return f"TRY_CAST({name} AS DOUBLE)"


def tidy(name: str) -> str:
    """SQL of a slice or attribute value: NFC, without surrounding space, unknown where empty."""
    outside = r"[\s\p{Z}\p{C}]+"
    trimmed = f"regexp_replace(nfc_normalize({name}), '^{outside}|{outside}$', '', 'g')"
    return f"coalesce(nullif({trimmed}, ''), {literal(UNKNOWN)})"


class _Reader:
    """The steps of reading one batch, over one connection."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        settings: Settings,
        database: str,
        scratch: str,
    ) -> None:
        self.connection = connection
        self.settings = settings
        self.database = quoted(database)
        self.scratch = quoted(scratch)
        self.table = ranking_log(settings.slices, settings.attribute_columns)
        self.drop_rows = settings.rejects.policy == "drop_row"
        self.names = (*settings.slices, *settings.attribute_columns)
        self.rules: dict[str, tuple[int, int]] = {}

    def one(self, query: str) -> tuple[int, ...]:
        return tuple(self.connection.execute(query).fetchall()[0])

    # -- staging: every delivered row, cast, with what is wrong with it

    def stage(self, sources: Sequence[Source], layouts: Sequence[Layout]) -> None:
        """One row per delivered row; ``problems`` is null where all row rules hold."""
        columns = ", ".join(
            [
                *(f"{quoted(column.name)} {column.type}" for column in LOGGED),
                *(f"{internal(name)} VARCHAR" for name in self.names),
            ]
        )
        self.connection.execute(
            f"CREATE TABLE {self.scratch}.staged (file INTEGER, row BIGINT, {columns}, problems "
            f'STRUCT(rule VARCHAR, "column" VARCHAR, value VARCHAR, problem VARCHAR)[])'
        )
        total = 0
        for at, (source, here) in enumerate(zip(sources, layouts, strict=True)):
            query = self._staged_rows(at, source, here)
            try:
                self.connection.execute(f"INSERT INTO {self.scratch}.staged BY NAME {query}")
            except duckdb.Error as error:
                raise DataRefused(f"{source.shown}: {_reading_failed(error)}") from None
            (total,) = self.one(f"SELECT count(*) FROM {self.scratch}.staged")
            if total > self.settings.limits.rows:
                raise DataRefused(
                    f"{source.shown}: more than {self.settings.limits.rows:,} rows in the batch "
                    "(limits.rows in the settings)"
                )

    def _staged_rows(self, at: int, source: Source, here: Layout) -> str:
        """SELECT of one source: raw values inside, cast values and broken rules outside."""
        inner = [f"{ROW} AS row"]
        outer = [f"{at}::INTEGER AS file", "row"]
        rules: list[RowRule] = []
        for column in LOGGED:
            delivered = here.found.get(column.name)
            if delivered is None:
                continue
            raw, value = quoted(f"raw {column.name}"), quoted(f"value {column.name}")
            kind = source.columns[delivered]
            said = f"CAST({quoted(delivered)} AS VARCHAR)"
            if column.type == "VARCHAR":
                inner += [f"{said} AS {raw}", f"{said} AS {value}"]
                outer.append(f"{value} AS {quoted(column.name)}")
            else:
                inner.append(f"nullif(trim({said}), '') AS {raw}")
                number = _number(quoted(delivered), kind)
                if column in (RANK,) and self.settings.ranks.start == 0:
                    number = f"({number}) + 1"
                inner.append(f"{number} AS {value}")
                outer.append(f"{_cast(column, value)} AS {quoted(column.name)}")
            if column is not QUERY_ID:
                rules += row_rules(column, raw=raw, value=value)
        for name in self.names:
            if name in here.found:
                inner.append(f"CAST({quoted(here.found[name])} AS VARCHAR) AS {internal(name)}")
                outer.append(f"{tidy(internal(name))} AS {internal(name)}")
        broken = " OR ".join(f"({rule.offends})" for rule in rules)
        each = ", ".join(
            f"CASE WHEN {rule.offends} THEN {{'rule': {literal(rule.name)}, "
            f"'column': {literal(rule.column)}, 'problem': {literal(rule.error)}, "
            f"'value': left({quoted('raw ' + rule.column)}, {_TEXT_CUT})}} END"
            for rule in rules
        )
        outer.append(f"CASE WHEN {broken} THEN [{each}] END AS problems")
        return f"SELECT {', '.join(outer)} FROM (SELECT {', '.join(inner)} FROM {source.table})"

    # -- explaining: rejected_rows and rule_counts

    def explain_rows(self, sources: Sequence[Source]) -> None:
        """Store the rows that break row rules."""
        offenders = (
            f"SELECT file, row, list_id, item_id, unnest(problems, recursive := true) "
            f"FROM {self.scratch}.staged WHERE problems IS NOT NULL"
        )
        self._reject(f"SELECT * FROM ({offenders}) WHERE rule IS NOT NULL", sources)

    def _reject(self, offenders: str, sources: Sequence[Source]) -> None:
        """Store ``offenders`` (file, row, list_id, item_id, rule, column, value, problem)."""
        counts = self.connection.execute(
            f"SELECT rule, count(*), count(DISTINCT list_id) FROM ({offenders}) GROUP BY rule"
        ).fetchall()
        if not counts:
            return
        for rule, rows, lists in counts:
            self.rules[rule] = (rows, lists)
        self.connection.executemany(
            f"INSERT INTO {self.database}.rule_counts VALUES (?, ?, ?)", counts
        )
        files = ", ".join(
            f"({at}, {literal(source.shown)}, {source.lines_before!r})".replace("None", "NULL")
            for at, source in enumerate(sources)
        )
        self.connection.execute(
            f"INSERT INTO {self.database}.rejected_rows BY NAME "
            f"SELECT name AS file, row, row + before AS line, list_id, item_id, rule, "
            f'"column", value, problem FROM ({offenders}) AS o '
            f"JOIN (VALUES {files}) AS f(number, name, before) ON f.number = o.file "
            f"QUALIFY row_number() OVER (PARTITION BY rule ORDER BY o.file, row) "
            f"<= {self.settings.rejects.max_stored_rows} ORDER BY o.file, row, rule"
        )

    def judge_lists(self, sources: Sequence[Source]) -> None:
        """One row per list: whether a rule about the whole list, or about a row, is broken."""
        rules = self._list_rules()
        conditions = "".join(f", coalesce({r.broken}, false) AS b{i}" for i, r in enumerate(rules))
        droppable = ", ".join(literal(name) for name in sorted(_ESSENTIAL))
        fatal = (
            f'len(list_filter(problems, lambda p: p."column" IN ({droppable}))) > 0'
            if self.drop_rows
            else "true"
        )
        self.connection.execute(
            f"CREATE TABLE {self.scratch}.lists AS SELECT list_id, "
            f"bool_or(problems IS NOT NULL AND {fatal}) AS rows_broken{conditions} "
            f"FROM {self.scratch}.staged WHERE list_id IS NOT NULL GROUP BY list_id"
        )
        for at, rule in enumerate(rules):
            windowed = (
                f"SELECT *, ({rule.offends}) AS offends FROM {self.scratch}.staged "
                f"WHERE list_id IN (SELECT list_id FROM {self.scratch}.lists WHERE b{at})"
            )
            self._reject(
                f"SELECT file, row, list_id, item_id, {literal(rule.name)} AS rule, "
                f'{literal(rule.column)} AS "column", left({self._column(rule.column)}::VARCHAR, '
                f"{_TEXT_CUT}) AS value, {literal(rule.error)} AS problem "
                f"FROM ({windowed}) WHERE offends",
                sources,
            )
        broken = " OR ".join(["rows_broken", *(f"b{at}" for at in range(len(rules)))])
        self.connection.execute(f"ALTER TABLE {self.scratch}.lists ADD COLUMN broken BOOLEAN")
        self.connection.execute(f"UPDATE {self.scratch}.lists SET broken = {broken}")

    def _column(self, name: str) -> str:
        """SQL of a staged column: one of the contract, or one of the user's."""
        return internal(name) if name in self.names else quoted(name)

    def _list_rules(self) -> tuple[ListRule, ...]:
        return list_rules(self.settings.slices, gaps_allowed=self.settings.ranks.gaps != "reject")

    # -- the item table

    def read_items(self, items: Source, here: Layout) -> None:
        """One row per item; DataRefused if an item stands there twice."""
        names = [name for name in self.settings.attribute_columns if name in here.found]
        values = "".join(
            f", {tidy(f'CAST({quoted(here.found[name])} AS VARCHAR)')} AS {internal(name)}"
            for name in names
        )
        try:
            self.connection.execute(
                f"CREATE TABLE {self.scratch}.items AS SELECT "
                f"CAST({quoted(here.found['item_id'])} AS VARCHAR) AS item_id{values} "
                f"FROM {items.table}"
            )
        except duckdb.Error as error:
            raise DataRefused(f"{items.shown}: {_reading_failed(error)}") from None
        (rows, apart, missing) = self.one(
            "SELECT count(*), count(DISTINCT item_id), count(*) FILTER (item_id IS NULL) "
            f"FROM {self.scratch}.items"
        )
        if apart < rows:
            doubled = rows - apart - missing
            raise DataRefused(
                f"{items.shown}: {doubled:,} rows repeat an item_id and {missing:,} have none; "
                "the item table has one row per item"
            )
        for attribute in self.settings.attributes:
            if set(attribute) <= set(names):
                self.connection.execute(
                    f"INSERT INTO {self.database}.group_sizes "
                    f"SELECT {literal(JOIN.join(attribute))}, {group_of(attribute, internal)}, "
                    f"count(*) FROM {self.scratch}.items GROUP BY ALL"
                )

    # -- the verdict on the batch

    def summary(self, logged: frozenset[str]) -> Ingested:
        """What was read and what would be accepted."""
        (read,) = self.one(f"SELECT count(*) FROM {self.scratch}.staged")
        if read == 0:
            raise NoData("the files hold no rows")
        lists, rejected = self.one(
            "SELECT count(*) FILTER (NOT broken), count(*) FILTER (broken) "
            f"FROM {self.scratch}.lists"
        )
        binary = " AND ".join(passes(check, "relevance") for check in BINARY.checks)
        graded = f"count(*) FILTER (NOT ({binary}))" if "relevance" in logged else "0"
        (accepted, graded_rows) = self.one(
            f"SELECT count(*), {graded} FROM {self.scratch}.staged {self._accepted}"
        )
        samples = self._samples()
        rules = tuple(
            RuleCount(rule, rows, in_lists, samples.get(rule, ()))
            for rule, (rows, in_lists) in sorted(self.rules.items())
        )
        return Ingested(read, accepted, lists, rejected, graded_rows, {}, rules)

    @property
    def _accepted(self) -> str:
        own = "AND problems IS NULL" if self.drop_rows else ""
        return (
            f"SEMI JOIN (SELECT list_id FROM {self.scratch}.lists WHERE NOT broken) "
            f"USING (list_id) WHERE true {own}"
        )

    def _samples(self) -> dict[str, tuple[str, ...]]:
        rows = self.connection.execute(
            f'SELECT rule, file, coalesce(line, row), line IS NULL, "column", value, problem '
            f"FROM {self.database}.rejected_rows "
            f"QUALIFY row_number() OVER (PARTITION BY rule ORDER BY file, row) <= {_SAMPLE}"
        ).fetchall()
        samples: dict[str, tuple[str, ...]] = {}
        for rule, file, number, is_row, column, value, problem in rows:
            said = "" if value is None else f'"{value}" '
            where = f"{'row' if is_row else 'line'} {number}"
            text = f"{where} of {PurePath(file).name}: {column} {said}{problem}"
            samples[rule] = (*samples.get(rule, ()), text)
        return samples

    def refuse_if_broken(self, found: Ingested) -> None:
        """BatchRefused where the settings do not let the batch in."""
        if not found.rules:
            return
        share = found.rows_rejected / found.rows_read
        limit = self.settings.rejects.max_rejected_share
        if self.settings.rejects.policy == "refuse_batch":
            advice = "To accept the rest of it: rejects.policy in audit.yaml."
        elif found.rows_accepted == 0:
            advice = "No list is left."
        elif share > limit:
            advice = (
                f"At most {limit:.1%} may be rejected: rejects.max_rejected_share in audit.yaml."
            )
        else:
            return
        head = (
            f"{found.rows_rejected:,} of {found.rows_read:,} rows refused ({share:.1%}), "
            f"{found.lists_rejected:,} lists"
        )
        raise BatchRefused(
            several(head, rule_lines(found.rules), advice),
            found,
        )

    # -- accepting

    def accept(self, from_items: Iterable[str], logged: frozenset[str]) -> None:
        """Write the accepted rows as the ranking log."""
        supplied = [name for name in from_items if name not in logged]
        zero = {
            name
            for name, policy in (
                ("relevance", self.settings.missing_relevance),
                ("click", self.settings.missing_click),
            )
            if policy == "zero" and name in logged
        }
        by_score = "rank" not in logged
        ordinal = "row_number() OVER (PARTITION BY list_id ORDER BY {})"
        if by_score:
            rank = position = ordinal.format("score DESC, item_id")
        elif self.settings.ranks.gaps == "compact":
            rank = position = ordinal.format("rank")
        elif self.settings.ranks.gaps == "keep" or self.drop_rows:
            rank, position = "rank", ordinal.format("rank")
        else:
            rank = position = "rank"
        known = {
            "rank": rank,
            "position": position,
            "query_id": "coalesce(nullif(query_id, ''), list_id)",
            **{name: f"coalesce({name}, 0)" for name in zero},
            **{name: f"staged.{internal(name)}" for name in self.names},
            **{name: f"coalesce(items.{internal(name)}, {literal(UNKNOWN)})" for name in supplied},
        }
        said = ", ".join(
            f"{known.get(name, f'staged.{quoted(name)}')} AS {quoted(name)}"
            for name in self.table.names
        )
        join = f"LEFT JOIN {self.scratch}.items USING (item_id)" if supplied else ""
        accepted = f"(SELECT * FROM {self.scratch}.staged {self._accepted}) AS staged"
        create(self.connection, self.database.strip('"'), self.table)
        self.connection.execute(
            f"INSERT INTO {self.database}.ranking_log BY NAME SELECT {said} FROM {accepted} {join}"
        )

    def gate(self, *, binary: bool) -> None:
        """Validate what was written with pandera; an error here rolls the rows back."""
        for name in self.names:
            self._validate([name], distinct=True)
        values = [column.name for column in self.table.columns if column.name not in self.names]
        self._validate(values)
        if binary:
            self._validate(["relevance"], distinct=True, schema=BINARY_RELEVANCE)

    def _validate(
        self, names: list[str], *, distinct: bool = False, schema: object | None = None
    ) -> None:
        columns = {name: self.table.schema.columns[name] for name in names}
        rules = schema or pandera.pandas.DataFrameSchema(columns, name="ranking_log")
        said = ", ".join(map(quoted, names))
        query = f"SELECT {'DISTINCT' if distinct else ''} {said} FROM {self.database}.ranking_log"
        for chunk in self.connection.sql(query).to_arrow_reader(_CHUNK_ROWS):
            frame = chunk.to_pandas(types_mapper=pd.ArrowDtype)
            try:
                rules.validate(frame, lazy=True)  # type: ignore[attr-defined]
            except pandera.errors.SchemaErrors as errors:
                broken = sorted({str(each) for each in errors.failure_cases["check"]})
                raise AuditError(
                    "rows that the checks let through do not pass the schema "
                    f"({', '.join(broken)} on {', '.join(names)}); nothing was stored"
                ) from None

    def checked_limits(self, found: Ingested) -> Ingested:
        """``found`` with what is known only after accepting; DataRefused beyond the limits."""
        unknown: dict[str, int] = {}
        problems: list[str] = []
        log = f"{self.database}.ranking_log"
        for attribute in self.settings.attributes:
            name = JOIN.join(attribute)
            group = group_of(attribute)
            missing, groups = self.one(
                f"SELECT count(*) FILTER ({group} = {literal(UNKNOWN)}), count(DISTINCT {group}) "
                f"FROM {log}"
            )
            unknown[name] = missing
            share = missing / found.rows_accepted
            if share > self.settings.unknown_group.max_share:
                problems.append(
                    f"{name}: {share:.1%} of the rows have no group; at most "
                    f"{self.settings.unknown_group.max_share:.1%} (unknown_group.max_share)"
                )
            if groups > self.settings.limits.groups:
                problems.append(f"{name}: {groups:,} groups (limits.groups)")
        for name in self.settings.slices:
            (values,) = self.one(f"SELECT count(DISTINCT {quoted(name)}) FROM {log}")
            if values > self.settings.limits.slice_values:
                problems.append(f"{name}: {values:,} values (limits.slice_values)")
        if problems:
            raise DataRefused(several("the batch is refused", problems))
        return Ingested(**{**found.__dict__, "unknown_rows": unknown})


def _cast(column: Column, value: str) -> str:
    """SQL of a checked DOUBLE as the column's own type, null where it does not fit."""
    if column.type == "DOUBLE":
        return value
    fits = f"isfinite({value}) AND {value} = floor({value}) AND abs({value}) < 9e15"
    return f"CASE WHEN {fits} THEN CAST({value} AS {column.type}) END"


def group_of(attribute: Sequence[str], column: Callable[[str], str] = quoted) -> str:
    """SQL of the group of a row; an intersection is unknown where one of its parts is.

    ``column`` says what the tables at hand call an attribute column.
    """
    if len(attribute) == 1:
        return column(attribute[0])
    unknown = " OR ".join(f"{column(name)} = {literal(UNKNOWN)}" for name in attribute)
    joined = f" || {literal(JOIN)} || ".join(column(name) for name in attribute)
    return f"CASE WHEN {unknown} THEN {literal(UNKNOWN)} ELSE {joined} END"


def rule_lines(rules: Iterable[RuleCount], samples: int = 3) -> list[str]:
    """Broken rules as text: a line each with counts, then a few of the offenders."""
    lines = []
    for rule in rules:
        rows = f"{rule.rows:,} row{'s' if rule.rows != 1 else ''}"
        lines.append(f"{rule.rule}: {rows} in {rule.lists:,} list{'s' if rule.lists != 1 else ''}")
        lines += [f"  {text}" for text in rule.sample[:samples]]
        if rule.rows > samples:
            lines.append(f"  and {rule.rows - samples:,} more")
    return lines


def _reading_failed(error: duckdb.Error) -> str:
    """DuckDB's message without the data it quotes."""
    text = str(error)
    line = next((w for w in text.split("\n") if "Line:" in w or "line " in w.lower()), "")
    first = first_line(error).removeprefix("Invalid Input Error: ")
    return (
        f"cannot be read: {first}" if line in first else f"cannot be read: {first} ({line.strip()})"
    )
