"""Validation of what was written: it is read back, and decides whether it stays.

The pandera schemas validate Arrow-backed chunks of what was stored; every id and name once, where
it is stored once.  That no item and no rank stands in a list twice is proven on whole numbers.

Not here: why a delivered row is rejected (``rejected_rows``), and whether a batch is like those
before it (``monitoring.gates``).
"""

from itertools import pairwise

import numpy as np
import pandas as pd
import pandera.errors
import pandera.pandas as pa
import pyarrow

from metrics.weights import IntArray
from pipeline.errors import AuditError
from pipeline.log.reading import Reading
from pipeline.log.whole_lists import CHUNK_ROWS, run_starts, whole_lists
from schemas.rules import BINARY_RELEVANCE
from schemas.stored_log import LOG_ITEMS, log_cells, log_lists

_FAULT = "nothing was stored. This is a fault of the program: please report it."
_TEXTS = 100_000
"""Ids and names that are validated at a time, so that memory does not grow with their number."""
_PIECE = 65_536
"""Rows that are compared at a time: their slots stay in the processor's cache."""
_MIX = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio: multiplied by it, neighbouring keys fall into slots far apart."""


class RowsMissing(AuditError):
    """Lists were seen whose rows did not all come when they were stored."""

    def __init__(self) -> None:
        super().__init__("the files changed while they were read; run the batch again")


class Broken(AuditError):
    """Some lists break a rule, which shows when they are stored; carries their ids."""

    def __init__(self, lists: list[str]) -> None:
        super().__init__(f"{len(lists):,} stored lists break a rule; {_FAULT}")
        self.lists = lists


def gate(reading: Reading, *, binary: bool, dense: bool, first: int = 0) -> None:
    """Validate lists from number ``first`` on, and their rows.

    ``binary``: relevance is said to be 0 or 1 throughout.  ``dense``: ranks of a list of n rows
    lie in 1..n.  Broken where something stands twice in a list; ListsApart where rows of lists
    are stored apart; RowsMissing where there are fewer than there should be; AuditError where a
    schema refuses what the rules let through.
    """
    settings = reading.settings
    for table in (log_lists(settings.slices), LOG_ITEMS, log_cells(settings.attribute_columns)):
        stored = reading.connection.sql(f"FROM {reading.database}.{table.name}")
        for batch in stored.to_arrow_reader(_TEXTS):
            _validate(table.schema_of(table.names), pyarrow.Table.from_batches([batch]))
    entries = reading.entries
    schema = entries.schema_of(column.name for column in entries.columns if column.checks)
    repeated: list[int] = []
    rows = 0
    select = (
        f"SELECT {entries.column_list} FROM {reading.database}.{entries.name} WHERE list >= {first}"
    )
    with whole_lists(reading.connection, reading.name, select, CHUNK_ROWS) as chunks:
        for chunk in chunks:
            _validate(schema, chunk)
            if binary and "relevance" in entries.names:
                _validate(BINARY_RELEVANCE, chunk)
            repeated += _repeated(chunk, dense=dense)
            rows += len(chunk)
    ((expected,),) = reading.rows(
        f"SELECT coalesce(sum(list_rows), 0) FROM {reading.database}.log_lists "
        f"WHERE list >= {first}"
    )
    if rows != expected:
        raise RowsMissing
    if not repeated:
        return
    # Stored ids may be hashes; suspects are looked for among the delivered ones.
    found = reading.connection.execute(
        "SELECT CAST(key AS VARCHAR) FROM list_numbers WHERE list IN (SELECT unnest(?))",
        [repeated],
    ).fetchall()
    raise Broken([name for (name,) in found])


def _validate(schema: pa.DataFrameSchema, rows: pyarrow.Table) -> None:
    described_columns = [name for name in rows.column_names if name in schema.columns]
    try:
        schema.validate(
            rows.select(described_columns).to_pandas(types_mapper=pd.ArrowDtype), lazy=True
        )
    except pandera.errors.SchemaErrors as errors:
        broken = sorted({str(each) for each in errors.failure_cases["check"]})
        raise AuditError(
            f"rows that the checks let through do not pass the schema ({', '.join(broken)} on "
            f"{', '.join(described_columns)}); {_FAULT}"
        ) from None


def _repeated(rows: pyarrow.Table, *, dense: bool) -> list[int]:
    """Numbers of the lists in which an item or a rank stands twice.

    ``dense``: ranks of a list of n rows lie in 1..n.
    """
    number = rows["list"].to_numpy()
    starts = run_starts(number)
    lengths = np.diff(starts, append=len(number))
    own = np.repeat(np.arange(len(starts)), lengths)
    item, rank = (rows[name].to_numpy() for name in ("item", "rank"))
    repeated = [own[_twice(own << 32 | item, starts)]]
    if dense:
        seen = np.zeros(len(number), dtype=bool)
        seen[np.repeat(starts - 1, lengths) + rank] = True
        repeated.append(own[~seen])
    else:
        repeated.append(own[_twice(own << 32 | rank, starts)])
    return [int(each) for each in number[starts[np.unique(np.concatenate(repeated))]]]


def _twice(keys: IntArray, starts: IntArray) -> IntArray:
    """Places of keys that stand twice in their list; keys of two lists differ."""
    cuts = starts[np.unique(np.searchsorted(starts, np.arange(0, len(keys), _PIECE)) - 1)[1:]]
    pieces = np.concatenate([[0], cuts[cuts > 0], [len(keys)]])
    return np.concatenate(
        [start + twice(keys[start:stop]) for start, stop in pairwise(pieces.tolist())]
    )


def twice(keys: IntArray) -> IntArray:
    """Places of ``keys`` that stand there before, in no order; exact, without sorting.

    Keys are thrown into slots, the last one stays.  Who finds an equal key in his slot is a
    repetition; who finds another one goes on to the next round, in which that one is not.
    """
    bits = max(20, len(keys).bit_length() + 1)
    spread = keys.view(np.uint64) * _MIX >> np.uint64(64 - bits)
    slots = spread.astype(np.int64)
    rows = np.arange(len(keys), dtype=np.int32)
    table = np.empty(1 << bits, dtype=np.int32)
    repetitions = []
    while len(rows):
        table[slots] = rows
        holder = table[slots]
        lost = np.flatnonzero(holder != rows)
        same = keys[holder[lost]] == keys[rows[lost]]
        repetitions.append(rows[lost[same]])
        rows, slots = rows[lost[~same]], slots[lost[~same]]
    return np.concatenate(repetitions) if repetitions else np.empty(0, dtype=np.int32)
