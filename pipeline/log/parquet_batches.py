"""Rows of Parquet files as Arrow, straight from the files, where lists stand together in them.

Only for columns whose values need no second look: whole and real numbers, and texts.  All else, and
every file that cannot be read, is left to DuckDB, which can, or says what is wrong.

Not here: any other format, and what DuckDB makes of rows (``delivered_batches``).
"""

from collections.abc import Generator, Sequence

import numpy as np
import pyarrow
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.log.column_mapping import Layout
from pipeline.log.delivered_batches import BATCH_ROWS
from pipeline.log.reading import IDS, Reading
from pipeline.log.sources import Source
from pipeline.log.values import FLOATS, INTEGERS
from schemas.columns import Column
from schemas.rules import RANK, REFERENCE_RANK, SCORE

_ENCODED = {"RLE_DICTIONARY", "PLAIN_DICTIONARY"}
_NUMBERS = (*INTEGERS, *FLOATS, "BOOLEAN")
_TEXTS = ("VARCHAR", *INTEGERS, "BOOLEAN")
"""Kinds that are the same text here and in DuckDB."""


class NotReadable(Exception):
    """Files that are left to DuckDB."""


def parquet_batches(
    reading: Reading, sources: Sequence[Source], layouts: Sequence[Layout]
) -> Generator[pyarrow.RecordBatch]:
    """Batches of all rows, as ``delivered_batches`` has them.

    NotReadable where DuckDB has to look, which may show after some rows only.
    """
    for number, (source, layout) in enumerate(zip(sources, layouts, strict=True)):
        try:
            yield from _batches_of(reading, number, source, layout)
        except (OSError, pyarrow.ArrowException):
            raise NotReadable from None


def are_readable(reading: Reading, sources: Sequence[Source], layouts: Sequence[Layout]) -> bool:
    """Whether all values can be taken as they stand, by what the files say of their columns."""
    if RANK.name not in reading.logged:
        return False
    pairs = list(zip(sources, layouts, strict=True))
    if not all(_is_readable(reading, source, layout) for source, layout in pairs):
        return False
    kinds = [{source.kinds[layout.found[each.name]] for source, layout in pairs} for each in IDS]
    return all(len(each) == 1 for each in kinds)


def _is_readable(reading: Reading, source: Source, layout: Layout) -> bool:
    if source.format != "parquet" or source.path is None:
        return False
    wanted = {column.name: _kinds(column) for column in reading.columns if column is not SCORE}
    wanted |= dict.fromkeys(reading.users, _TEXTS)
    try:
        with pq.ParquetFile(source.path) as file:
            schema = file.schema_arrow
    except (OSError, pyarrow.ArrowException):
        return False
    for name, kinds in wanted.items():
        delivered = layout.found[name]
        if delivered in source.folders and delivered not in source.columns:
            if name not in reading.users:
                return False
            continue
        if source.kinds[delivered] not in kinds or schema.names.count(delivered) != 1:
            return False
        if "." in delivered or not _is_plain(schema.field(delivered).type, source.kinds[delivered]):
            return False
    return True


def _kinds(column: Column) -> Sequence[str]:
    if column in IDS:
        return ("VARCHAR", *INTEGERS)
    return _TEXTS if column.type == "VARCHAR" else _NUMBERS


def _is_plain(kind: pyarrow.DataType, said: str) -> bool:
    """Whether pyarrow reads what DuckDB calls ``said`` as the same thing."""
    types = pyarrow.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if said == "VARCHAR":
        return bool(types.is_string(kind) or types.is_large_string(kind))
    if said == "BOOLEAN":
        return bool(types.is_boolean(kind))
    return bool(types.is_floating(kind) if said in FLOATS else types.is_integer(kind))


def _batches_of(
    reading: Reading, number: int, source: Source, layout: Layout
) -> Generator[pyarrow.RecordBatch]:
    names = {
        column.name: layout.found[column.name] for column in reading.columns if column is not SCORE
    }
    names |= {"=" + name: layout.found[name] for name in reading.users}
    said = {name: value for name, value in source.folders.items() if name not in source.columns}
    stored = sorted({name for name in names.values() if name not in said})
    with pq.ParquetFile(source.path) as metadata:
        encoded = [name for name in stored if _is_encoded(metadata, name)]
    texts = {"=" + name for name in reading.users}
    texts |= {column.name for column in reading.columns if column.type == "VARCHAR"}
    texts -= {column.name for column in IDS}
    # Not mapped into memory: a file that is cut short meanwhile would end the process.
    with pq.ParquetFile(source.path, read_dictionary=encoded, pre_buffer=False) as file:
        for batch in file.iter_batches(BATCH_ROWS, columns=stored, use_threads=False):
            columns = {}
            for name, delivered in names.items():
                if delivered in said:
                    columns[name] = _constant(said[delivered], len(batch))
                else:
                    columns[name] = _as_read(batch.column(delivered), text=name in texts)
            if reading.settings.ranks.start == 0:
                for name in {RANK.name, REFERENCE_RANK.name} & columns.keys():
                    columns[name] = pc.add_checked(_wide(columns[name]), 1)
            columns["file"] = pyarrow.array(np.full(len(batch), number, dtype=np.int32))
            yield pyarrow.RecordBatch.from_pydict(columns)


def _is_encoded(file: pq.ParquetFile, name: str) -> bool:
    """Whether a column of texts is stored as a dictionary throughout: to make one costs more."""
    place = file.schema_arrow.names.index(name)
    if not pyarrow.types.is_string(file.schema_arrow.types[place]):
        return False
    groups = file.metadata
    at = [groups.schema.column(i).path for i in range(groups.num_columns)].index(name)
    return all(
        _ENCODED & set(groups.row_group(group).column(at).encodings)
        for group in range(groups.num_row_groups)
    )


def _constant(text: str | None, rows: int) -> pyarrow.Array:
    """The same text in each row."""
    values = pyarrow.array([text or ""])
    places = pyarrow.array(np.zeros(rows, dtype=np.int32), mask=np.full(rows, text is None))
    return pyarrow.DictionaryArray.from_arrays(places, values)


def _wide(numbers: pyarrow.Array) -> pyarrow.Array:
    return numbers.cast(pyarrow.int64()) if pyarrow.types.is_integer(numbers.type) else numbers


def _as_read(array: pyarrow.Array, *, text: bool) -> pyarrow.Array:
    """Texts as strings, whatever they are stored as; anything else as it is."""
    if pyarrow.types.is_dictionary(array.type):
        if array.dictionary.null_count or not pyarrow.types.is_string(array.type.value_type):
            return _as_read(array.dictionary_decode(), text=text)
        return array
    if text or pyarrow.types.is_large_string(array.type):
        return array.cast(pyarrow.string())
    return array
