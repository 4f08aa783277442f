"""What statements that count share: a session, the batch's database, and how rows meet slices.

Not here: a statement that fills one table, which stands in the module of that table.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import duckdb
import pyarrow

from metrics import WHOLE
from pipeline.log.accepted_rows import AcceptedLog
from pipeline.log.checked_lists import NUMBERS
from pipeline.log.row_chunks import Extent, RowChunk, row_chunks
from pipeline.log.values import group_of
from pipeline.log.whole_lists import CHUNK_ROWS
from pipeline.settings.audit import Settings
from pipeline.settings.labels import JOIN
from schemas.columns import Table, internal, literal, quoted
from schemas.counts import BUCKET_SUMS, BUCKETS


def slice_structs(settings: Settings) -> str:
    """SQL of the slices that a row belongs to, as a list of structs: the whole batch first."""
    pairs = [(literal(WHOLE), literal(WHOLE))]
    pairs += [(literal(name), internal(name)) for name in settings.slices]
    return structs("slice", "slice_value", pairs)


def attribute_structs(settings: Settings) -> str:
    """SQL of the groups of a row, one per attribute, as a list of structs."""
    groups = [
        (literal(JOIN.join(attribute)), group_of(attribute, internal))
        for attribute in settings.attributes
    ]
    return structs("attribute", "group_value", groups)


class Counting:
    """The means of filling count tables of one batch.

    ``evidence``: more than scores may be asked of these counts.  Where it will not, all queries go
    into one bucket, and what only intervals, noise floors and a look at items need is left out.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        settings: Settings,
        database: str,
        rows: AcceptedLog | None = None,
        *,
        evidence: bool = True,
    ) -> None:
        self.connection = connection
        self.settings = settings
        self.evidence = evidence
        self.name = database
        self.database = quoted(database)
        self._slices = slice_structs(settings)
        self._rows = rows

    def need_rows(self) -> None:
        """Have the rows in the file, where a statement is to read them."""
        if self._rows is not None:
            self._rows.store()

    def extent(self) -> Extent:
        """How many rows there are, how deep, and how many say each number."""
        if self._rows is not None:
            return self._rows.extent()
        names = [column.name for column in NUMBERS]
        known = ", ".join(f"count({name})" for name in names)
        rows, rank, position, *counts = self.connection.execute(
            f"SELECT count(*), max(rank), max(position), {known} FROM {self.database}.log_rows"
        ).fetchall()[0]
        said = dict(zip(names, counts, strict=True))
        return Extent(rows, int(rank or 0), int(position or 0), said)

    def chunks(self, columns: Sequence[str], chunk_rows: int = CHUNK_ROWS) -> Iterator[RowChunk]:
        """The accepted rows, whole lists at a time, each with ``columns`` of log_rows."""
        if self._rows is not None:
            yield from self._rows.chunks(columns, chunk_rows)
            return
        # A session of its own reads, so that this one can write meanwhile.
        with self.connection.cursor() as reading:
            yield from row_chunks(reading, self.name, columns, chunk_rows)

    def fill(self, table: Table, query: str, *, ordered: bool = False) -> None:
        """Add the rows of ``query``, matched by name; columns that it lacks are null.

        They are stored in order, which ``ordered`` says they are in already.
        """
        order = "" if ordered else "ORDER BY ALL"
        self.connection.execute(
            f"INSERT INTO {self.database}.{quoted(table.name)} BY NAME {query} {order}"
        )

    def make(self, table: Table, query: str, kind: str = "TABLE") -> None:
        """Make a table of the session, or a VIEW, whose columns are those of ``query``."""
        self.connection.execute(f"CREATE OR REPLACE TEMP {kind} {table.name} AS {query}")

    @contextmanager
    def registered(self, name: str, rows: pyarrow.Table) -> Iterator[None]:
        """For the time being, ``rows`` under a name that statements can select from."""
        self.connection.register(name, rows)
        yield
        # After an error the session ends; its transaction would answer nothing but another error.
        self.connection.unregister(name)

    def by_slice(self, source: str, columns: str, where: str = "true") -> str:
        """Rows of ``source`` once per slice they belong to, with ``slice`` and ``slice_value``."""
        return (
            f"SELECT * EXCLUDE (s), s.slice AS slice, s.slice_value AS slice_value FROM "
            f"(SELECT {columns}, unnest({self._slices}) AS s FROM {source} WHERE {where})"
        )

    def lists_slices(self, table: str) -> str:
        """SQL of a table's slice columns under their own names, to go on in a select list."""
        return "".join(
            f", {table}.{internal(name)} AS {internal(name)}" for name in self.settings.slices
        )

    def fill_buckets(
        self, rows: str, key: Sequence[str], statistics: Mapping[str, str], **constants: str
    ) -> None:
        """Add sums over ``rows`` to bucket_sums: one row per key and statistic.

        ``rows`` has the columns of ``key`` and ``bucket``; ``statistics`` gives the SQL of each
        sum over some of them, exact until it becomes a double.  ``constants`` are further columns.
        """
        names = ", ".join(key)
        sums = ", ".join(f"({sql})::DOUBLE AS {name}" for name, sql in statistics.items())
        packed = ", ".join(f"list({name} ORDER BY bucket) AS {name}" for name in statistics)
        entries = structs("statistic", "sums", [(literal(name), name) for name in statistics])
        more = "".join(f", {literal(value)} AS {name}" for name, value in constants.items())
        self.fill(
            BUCKET_SUMS,
            f"SELECT {names}, e.statistic AS statistic, buckets, e.sums AS sums{more} FROM "
            f"(SELECT *, unnest({entries}) AS e FROM "
            f"(SELECT {names}, list(bucket ORDER BY bucket) AS buckets, {packed} FROM "
            f"(SELECT {names}, bucket, {sums} FROM ({rows}) GROUP BY {names}, bucket) "
            f"GROUP BY {names}))",
        )


def structs(name: str, value: str, pairs: list[tuple[str, str]]) -> str:
    """SQL of a list of {name, value} structs, to be unnested."""
    return "[" + ", ".join(f"{{'{name}': {a}, '{value}': {b}}}" for a, b in pairs) + "]"


def bucket_of(query: str) -> str:
    """SQL of the bucket that a query falls into: the same on every machine."""
    # The upper half is what md5_number_lower takes four times as long to compute.
    return f"((md5_number({query}) >> 64) & {BUCKETS - 1})::INTEGER"
