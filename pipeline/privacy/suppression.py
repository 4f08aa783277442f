"""A history or a batch as others may see it: its tables, without numbers that are about too few.

The store keeps everything.  What leaves it (the published copy, ``evenrank history``, alerts, what
Dagster shows, scores of files) is read through here; with ``privacy.min_cell`` off, that is the
tables as they are.

Not here: which numbers are about too few (``small_cells``).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow

from metrics import WHOLE
from pipeline.privacy.small_cells import SUPPRESSED, Block, Hidden, Place, hidden
from pipeline.settings.audit import Settings
from schemas.columns import Table, literal, quoted
from schemas.counts import ITEM_GAPS, PREFIX_STATS, SLICE_COUNTS
from schemas.history import BATCHES, COUNTS_OF_HISTORY, HISTORY, SUPERSEDED
from schemas.judged import JUDGED_OF
from schemas.monitoring import (
    ALERT_BATCHES,
    ALERTS,
    CHANGE_POINTS,
    GATES,
    MISSING_GROUP,
    RELEASE_CHANGES,
    TRENDS,
)
from schemas.scores import WINDOW_SCORES

_SCORES, _GROUPS = HISTORY
UNTOLD = (*SUPERSEDED, *COUNTS_OF_HISTORY)
"""Tables that say too much beside others: counts by rank, and what scores were before."""
SLICES = "Slices by themselves: "
OTHERS = ("Slices that contribute most: ", "The same in ", SLICES)
"""How lines of an alert begin that are about other slices than its own."""
_SAID = {
    "reason": SUPPRESSED,
    "status": "insufficient",
    "status_reason": SUPPRESSED,
    "verdict": "insufficient",
    "verdict_reason": SUPPRESSED,
}
_OF_VERDICTS = ("status", "status_reason", "verdict", "verdict_reason")
_OF_SCORES = (
    "value",
    "worst_group",
    "best_group",
    "lower",
    "upper",
    "expected",
    "noise_limit",
    "p_noise",
    "against_chance",
    "against_chance_lower",
    "against_chance_upper",
    *JUDGED_OF.values(),
    "judged_groups",
    "thin_groups",
    "assured",
    "detectable",
    "lists_needed",
)
_OF_BATCHES = (
    "lists",
    "rows_read",
    "rows_accepted",
    "rows_rejected",
    "lists_rejected",
    "graded_rows",
    "rows_joined",
)
_OF_LISTS = ("queries", "effective_queries", "lists", "lists_undefined")
"""What is not told of attributes of which something is left out: rule 5 of ``small_cells``."""
_PLACE = ("batch", "slice", "slice_value")
_BLOCK = (*_PLACE, "attribute")


class Shown:
    """The tables of a history, or of one batch's file, as SQL to select from.

    They are those of the attached database ``name``; ``batches`` are the only ones asked about, by
    default all.  Makes tables of the session that say what is left out of which batch.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        settings: Settings,
        name: str = "history",
        batches: Sequence[str] | None = None,
    ) -> None:
        self.connection = connection
        self.hides = settings.privacy.min_cell > 1
        self._name = quoted(name)
        self._hidden: dict[str, Hidden] = {}
        if self.hides:
            sizes = _Sizes(connection, name, batches)
            self._hidden = sizes.hidden(settings.privacy.min_cell)
            _note(connection, self._hidden)

    def tells(self, table: Table) -> bool:
        """Whether anything of a table is told."""
        return not (self.hides and table in UNTOLD)

    def table(self, table: Table) -> str:
        """SQL of a table to select from, with the columns that the database has."""
        source = f"{self._name}.{table.name}"
        query = _QUERIES.get(table.name) if self.hides else None
        if query is None:
            return source
        names = self.connection.sql(f"FROM {source} LIMIT 0").columns
        return f"({query(source, names)})"

    def hidden(self, batch: str) -> Hidden:
        """What is left out of a batch."""
        return self._hidden.get(batch, Hidden())

    @property
    def uncounted(self) -> list[str]:
        """Batches of which groups are left out since nobody counted their items."""
        if not self.hides or "items" not in _columns(self.connection, self._name, PREFIX_STATS):
            return sorted(batch for batch, out in self._hidden.items() if out.blocks)
        rows = self.connection.execute(
            f"SELECT DISTINCT batch FROM {self._name}.{PREFIX_STATS.name} WHERE items IS NULL"
        ).fetchall()
        return sorted(batch for (batch,) in rows)


def _columns(connection: duckdb.DuckDBPyConnection, database: str, table: Table) -> list[str]:
    return connection.sql(f"FROM {database}.{table.name} LIMIT 0").columns


class _Sizes:
    """How many each slice and cell of some batches rests on, from their count tables.

    It is the least of queries, lists and items; where one of them was never counted, 1.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, name: str, batches: Sequence[str] | None
    ) -> None:
        self._connection, self._database = connection, quoted(name)
        self._batches = None if batches is None else list(batches)
        tables = connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = ?", [name]
        ).fetchall()
        self._tables = {table for (table,) in tables}

    def hidden(self, k: int) -> dict[str, Hidden]:
        """What is left out of each batch."""
        places: dict[str, dict[Place, int]] = defaultdict(dict)
        blocks: dict[str, dict[Block, dict[str, int]]] = defaultdict(dict)
        for batch, *place, size in self._slices():
            places[batch][Place(*place)] = size
        for batch, *block, group, size in self._cells():
            blocks[batch].setdefault(Block(*block), {})[group] = size
        # Scores of batches whose counts are not kept rest on nobody knows how many.
        for batch, name, value, attribute in self._scored():
            places[batch].setdefault(Place(name, value), 1)
            if attribute is not None:
                blocks[batch].setdefault(Block(name, value, attribute), {"": 1})
        return {batch: hidden(sizes, blocks[batch], k) for batch, sizes in places.items()}

    def _slices(self) -> list[tuple[Any, ...]]:
        counts = self._rows(SLICE_COUNTS, "queries")
        items = "SELECT NULL AS batch, NULL AS slice, NULL AS slice_value, NULL AS items"
        if ITEM_GAPS.name in self._tables:
            items = f"SELECT {', '.join(_PLACE)}, items FROM {self._rows(ITEM_GAPS, 'items')}"
        return self._asked(
            f"SELECT {', '.join(_PLACE)}, {_SIZE} FROM {counts} "
            f"LEFT JOIN ({items}) USING ({', '.join(_PLACE)})"
        )

    def _cells(self) -> list[tuple[Any, ...]]:
        counts = self._rows(PREFIX_STATS, "queries", "items")
        return self._asked(f"SELECT {', '.join(_BLOCK)}, group_value, {_SIZE} FROM {counts}")

    def _scored(self) -> list[tuple[Any, ...]]:
        if _SCORES.name not in self._tables:
            return []
        return self._asked(
            f"SELECT DISTINCT {', '.join(_BLOCK)} FROM {self._database}.{_SCORES.name}"
        )

    def _rows(self, table: Table, *perhaps: str) -> str:
        """SQL of a count table with a column ``batch``, and with those that it may lack."""
        names = _columns(self._connection, self._database, table)
        absent = [f"NULL::BIGINT AS {name}" for name in perhaps if name not in names]
        if "batch" not in names:
            absent.append(
                f"(SELECT any_value(batch) FROM {self._database}.{_SCORES.name}) AS batch"
            )
        return f"(SELECT {', '.join(['*', *absent])} FROM {self._database}.{table.name})"

    def _asked(self, query: str) -> list[tuple[Any, ...]]:
        if self._batches is None:
            return self._connection.execute(query).fetchall()
        return self._connection.execute(
            f"FROM ({query}) WHERE list_contains(?, batch)", [self._batches]
        ).fetchall()


_SIZE = "least(coalesce(queries, lists), lists, coalesce(items, 1))"
"""SQL of a size.  Files of before know no queries, and then their lists count."""


def _note(connection: duckdb.DuckDBPyConnection, hidden_by_batch: Mapping[str, Hidden]) -> None:
    """Tables of the session: slices and blocks that are left out, and torn attributes."""
    for name, columns, rows in (
        (
            "hidden_places",
            _PLACE,
            [(b, *each) for b, out in hidden_by_batch.items() for each in out.places],
        ),
        (
            "hidden_blocks",
            _BLOCK,
            [(b, *each) for b, out in hidden_by_batch.items() for each in out.blocks],
        ),
    ):
        table = pyarrow.table(
            {column: [row[n] for row in rows] for n, column in enumerate(columns)},
            pyarrow.schema([(column, pyarrow.string()) for column in columns]),
        )
        connection.register("hidden_rows", table)
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM hidden_rows")
        connection.unregister("hidden_rows")
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE torn_attributes AS "
        "SELECT DISTINCT batch, attribute FROM hidden_blocks"
    )
    # Series are compared with their past: what was once left out can be told from that.
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE hidden_parts AS SELECT DISTINCT batch, slice, slice_value, "
        "attribute, attribute IS NULL AS every FROM "
        "(FROM hidden_blocks UNION ALL SELECT *, NULL FROM hidden_places)"
    )


def _no_place() -> str:
    """SQL: the slice of a row is not left out of its batch."""
    return f"NOT EXISTS (FROM hidden_places AS p WHERE {_same('p', 't', _PLACE)})"


def _same(one: str, other: str, names: Iterable[str]) -> str:
    return " AND ".join(f"{one}.{name} = {other}.{name}" for name in names)


_REASON = (
    f"CASE WHEN t.status_reason LIKE '{MISSING_GROUP}: %' AND EXISTS (FROM hidden_parts AS p "
    f"WHERE p.slice = {literal(WHOLE)} AND (p.every OR p.attribute = t.attribute)) "
    f"THEN '{MISSING_GROUP}' ELSE t.status_reason END"
)
"""SQL of a reason: which group was there earlier is not told where it was left out at times."""


def _scores(source: str, names: list[str]) -> str:
    expressions = {name: f"t.{quoted(name)}" for name in names}
    for name in expressions.keys() & {*_SAID, *_OF_SCORES}:
        other = literal(_SAID[name]) if name in _SAID else "NULL"
        told = _REASON if name == "status_reason" else f"t.{name}"
        shown = "h.batch IS NULL"
        if name in _OF_VERDICTS and "verdict" in names:
            # What no threshold is about would otherwise count as judged.
            shown += " OR t.verdict = 'not_judged'"
        expressions[name] = f"CASE WHEN {shown} THEN {told} ELSE {other} END"
    if "lists_undefined" in expressions:
        expressions["lists_undefined"] = "CASE WHEN torn.batch IS NULL THEN t.lists_undefined END"
    return (
        f"SELECT {_aliased(expressions)} FROM {source} AS t LEFT JOIN hidden_blocks AS h "
        f"ON {_same('h', 't', _BLOCK)} LEFT JOIN {_TORN} WHERE {_no_place()}"
    )


_TORN = "torn_attributes AS torn ON torn.batch = t.batch AND torn.attribute = t.attribute"


def _aliased(said: Mapping[str, str]) -> str:
    return ", ".join(f"{sql} AS {quoted(name)}" for name, sql in said.items())


def _groups(source: str, names: list[str]) -> str:
    expressions = {
        name: f"CASE WHEN torn.batch IS NULL THEN t.{name} END"
        if name in _OF_LISTS
        else f"t.{quoted(name)}"
        for name in names
    }
    return (
        f"SELECT {_aliased(expressions)} FROM {source} AS t LEFT JOIN {_TORN} "
        f"WHERE NOT EXISTS (FROM hidden_blocks AS b WHERE {_same('b', 't', _BLOCK)})"
    )


def _batches(source: str, names: list[str]) -> str:
    """Counts of a batch that is left out; and no digest of numbers of which some are not told."""
    whole = f"(SELECT batch FROM hidden_places WHERE slice = {literal(WHOLE)})"
    expressions = {name: quoted(name) for name in names}
    for name in expressions.keys() & {*_OF_BATCHES}:
        expressions[name] = f"CASE WHEN batch NOT IN {whole} THEN {name} END"
    if "result_hash" in expressions:
        expressions["result_hash"] = (
            "CASE WHEN batch NOT IN (SELECT batch FROM hidden_parts) THEN result_hash END"
        )
    return f"SELECT {_aliased(expressions)} FROM {source}"


def _never_hidden(where: str = "true") -> str:
    """SQL: nothing of the slice and attribute of a row was ever left out."""
    return (
        "NOT EXISTS (FROM hidden_parts AS h WHERE h.slice = t.slice "
        "AND h.slice_value = t.slice_value "
        f"AND (h.every OR h.attribute = t.attribute) AND {where})"
    )


def _series(source: str, names: list[str]) -> str:
    return f"SELECT t.* FROM {source} AS t WHERE {_never_hidden()}"


def _windows(source: str, names: list[str]) -> str:
    """Windows of slices and attributes of which nothing is left out of any of their days."""
    within = "h.batch BETWEEN t.first_day AND t.batch"
    torn = f"EXISTS (FROM torn_attributes AS h WHERE h.attribute = t.attribute AND {within})"
    return (
        f"SELECT t.* REPLACE (CASE WHEN NOT {torn} THEN t.lists_undefined END AS lists_undefined) "
        f"FROM {source} AS t WHERE {_never_hidden(within)}"
    )


def _gates(source: str, names: list[str]) -> str:
    return (
        f"SELECT t.* FROM {source} AS t WHERE NOT EXISTS (FROM hidden_parts AS h "
        f"WHERE h.slice = {literal(WHOLE)} AND (h.every OR h.attribute = t.attribute))"
    )


def _alerts(source: str, names: list[str]) -> str:
    """Alerts about what is told, without lines about slices that may not be.

    Those in whose place others came are told of there as well.
    """
    those = "IN (t.alert, t.supersedes)" if "supersedes" in names else "= t.alert"
    seen = f"(SELECT batch FROM history.{ALERT_BATCHES.name} AS s WHERE s.alert {those})"
    past = f"(t.kind <> 'breach' OR h.batch IN {seen} OR h.batch = t.last_seen)"
    return (
        f"SELECT t.* REPLACE ({_own_lines('t.text', 't.last_seen')} AS text) "
        f"FROM {source} AS t WHERE {_never_hidden(past)}"
    )


def _own_lines(text: str, batch: str) -> str:
    """SQL of a text without lines about other slices, where anything of the batch is left out."""
    kept = " AND ".join(f"NOT starts_with(line, {literal(words)})" for words in OTHERS)
    lines = f"list_filter(string_split({text}, chr(10)), lambda line: {kept})"
    return (
        f"CASE WHEN {batch} IN (SELECT batch FROM hidden_parts) "
        f"THEN array_to_string({lines}, chr(10)) ELSE {text} END"
    )


def _sightings(source: str, names: list[str]) -> str:
    # Both tables got their readings at once.
    alerts = _alerts(f"history.{ALERTS.name}", ["supersedes"] if "reading_of" in names else [])
    return (
        f"SELECT t.* REPLACE ({_own_lines('t.text', 't.batch')} AS text) FROM {source} AS t "
        f"SEMI JOIN ({alerts}) AS told USING (alert)"
    )


_QUERIES = {
    _SCORES.name: _scores,
    _GROUPS.name: _groups,
    BATCHES.name: _batches,
    TRENDS.name: _series,
    CHANGE_POINTS.name: _series,
    GATES.name: _gates,
    RELEASE_CHANGES.name: _gates,
    WINDOW_SCORES.name: _windows,
    ALERTS.name: _alerts,
    ALERT_BATCHES.name: _sightings,
}
