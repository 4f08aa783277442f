"""SQL that reads files of each format, with every choice that a reader would make left out.

Names and types come from the file, or are texts; nothing is guessed from a sample, and nothing is
taken from the names of folders.

Not here: what a file's columns are (``headers``), and which files there are (``deliveries``).
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from pipeline.log.files import LONGEST_LINE
from pipeline.store.sessions import as_pattern
from schemas.columns import literal

FILE_ROW = "file_row_number"
"""Number of a row in its Parquet file, 0 = first."""
FILE_INDEX = "file_index"
"""Which of several Parquet files a row is from, 0 = the first."""


def parquet(paths: Sequence[Path]) -> str:
    """Rows of Parquet files of the same columns, with FILE_ROW and FILE_INDEX, which a star omits.

    Unless they are columns of the files.
    """
    files = ", ".join(literal(as_pattern(path)) for path in paths)
    return _call("read_parquet", f"[{files}]", [])


def csv(path: Path, names: Iterable[str], *, in_order: bool) -> str:
    """Rows of a CSV file as texts; ``in_order``: read by one thread, from the start.

    Several may lose a row where two pieces of the file meet, or give up where a text holds line
    ends; one reads over a quote that nothing closes.  So the rows have to be counted.
    """
    options = ["header = true", "auto_detect = false", "delim = ','", "quote = '\"'"]
    options += ["escape = '\"'", "nullstr = ''", f"max_line_size = {LONGEST_LINE}"]
    options += [f"parallel = {str(not in_order).lower()}", _texts(names)]
    return _call("read_csv", literal(as_pattern(path)), options)


def json_lines(path: Path, names: Iterable[str]) -> str:
    """Objects of a file of JSON lines, the values of their keys as texts."""
    options = ["format = 'newline_delimited'", f"maximum_object_size = {LONGEST_LINE}"]
    return _call("read_json", literal(as_pattern(path)), [*options, _texts(names)])


def json_objects(path: Path) -> str:
    """Objects of a file of JSON lines as they stand there, in a column ``json``."""
    options = [f"maximum_object_size = {LONGEST_LINE}"]
    return _call("read_ndjson_objects", literal(as_pattern(path)), options)


def _texts(names: Iterable[str]) -> str:
    kinds = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in names)
    return f"columns = {{{kinds}}}"


def _call(function: str, files: str, options: Iterable[str]) -> str:
    return f"{function}({', '.join([files, *options, 'hive_partitioning = false'])})"
