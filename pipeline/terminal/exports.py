"""Rows as CSV and JSON lines, safe to open in a spreadsheet.

Not here: which rows (``pipeline.history.queries``).
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import IO, Any

_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""What a spreadsheet takes for the start of a formula, full-width forms included."""


def plain(value: Any) -> Any:
    """``value`` as JSON can hold it."""
    return value.isoformat() + "Z" if isinstance(value, datetime) else value


def write_csv(rows: Iterable[Mapping[str, Any]], file: IO[str]) -> None:
    """Rows as CSV; text that a spreadsheet would run as a formula is prefixed with a quote."""
    line = io.StringIO(newline="")
    # With these line ends, a carriage return is quoted too, which else would end a row.
    writer = csv.writer(line, lineterminator="\r\n")

    def write(cells: Iterable[Any]) -> None:
        writer.writerow(map(_cell, cells))
        file.write(line.getvalue().removesuffix("\r\n") + "\n")
        line.seek(0)
        line.truncate()

    for at, row in enumerate(rows):
        if at == 0:
            write(row)
        write(row.values())


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_FORMULA):
        return "'" + value
    return plain(value)


def write_json_lines(rows: Iterable[Mapping[str, Any]], file: IO[str]) -> None:
    """Rows as JSON, one object a line."""
    for row in rows:
        file.write(json.dumps({name: plain(value) for name, value in row.items()}) + "\n")
