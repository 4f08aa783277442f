"""What is wrong with a text file that DuckDB cannot read, line by line, in words without its data.

The file is read again for it, which costs a broken delivery what a sound one does not pay.

Not here: rows that are read and break a rule (``rejected_rows``).
"""

import csv
import json
from collections.abc import Iterator
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import IO

from pipeline.formatting.numbers import counted
from pipeline.log.files import LONGEST_LINE, opened_text

_ENDS = {"\n": "a line feed", "\r\n": "carriage return and line feed", "\r": "a carriage return"}
_CUT = ", and this one ends too early"


def fault_of(path: Path, form: str) -> str | None:
    """What is wrong, to follow the name of the file; None where nothing is found."""
    with suppress(UnicodeDecodeError), opened_text(path) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="")
        return next(_csv_faults(text) if form == "csv" else _json_faults(text), None)
    return None


def _csv_faults(text: IO[str]) -> Iterator[str]:
    """Faults as they come: of line ends, of quotes, of rows that are longer or shorter."""
    lines = _Lines(text)
    csv.field_size_limit(LONGEST_LINE)
    reader = csv.reader(lines, strict=True)
    width = None
    while True:
        begins = reader.line_num + 1
        try:
            fields = next(reader, None)
        except csv.Error:
            yield lines.mixed or (
                f"line {begins}: a text that begins with a quote does not end with one"
                if lines.at_end
                else f"line {lines.number}: a quote inside a quoted text has to stand twice"
            )
            return
        if lines.mixed:
            yield lines.mixed
        if fields is None:
            return
        width = width or len(fields)
        if fields and len(fields) != width:
            yield (
                f"line {begins}: has {counted(len(fields), 'field')} and the header {width}; a "
                "text with a comma or a line end stands in double quotes"
            )


class _Lines:
    """Lines of a file for the parser of rows; ``mixed`` says so once they end in several ways."""

    def __init__(self, text: IO[str]) -> None:
        self.text = text
        self.number = 0
        self.mixed: str | None = None
        self.at_end = False
        self._first = ""
        self._quoted = False

    def __iter__(self) -> Iterator[str]:
        for line in self.text:
            self.number += 1
            self._quoted ^= line.count('"') % 2 == 1
            end = line[len(line.rstrip("\r\n")) :]
            # A line end between quotes is part of a text.
            if not self._quoted and end in _ENDS and self.mixed is None:
                self._first = self._first or end
                if end != self._first:
                    self.mixed = (
                        f"line {self.number}: ends with {_ENDS[end]}, and lines before it with "
                        f"{_ENDS[self._first]}; all lines must end alike"
                    )
            yield line
        self.at_end = True


def _json_faults(text: IO[str]) -> Iterator[str]:
    """Faults as they come; empty lines hold no object."""
    for number, line in enumerate(text, 1):
        fault = object_fault(line) if line.strip() else None
        if fault:
            yield f"line {number}: {fault}"


def object_fault(line: str) -> str | None:
    """What is wrong with a line of JSON, None where it is one object that can be read."""
    if line.startswith("\ufeff"):
        return "begins with a byte order mark; write the file without one"
    try:
        pairs = json.loads(line, object_pairs_hook=list, parse_int=str)
        line.encode()
        json.dumps(pairs, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        ends = error.pos >= len(line.rstrip()) or error.msg.startswith("Unterminated string")
        return f"not a JSON object: each line holds one, whole{_CUT if ends else ' and alone'}"
    except RecursionError:
        return "nested too deeply"
    except ValueError:
        return "not a JSON object: half a character stands in it"
    if not isinstance(pairs, list) or not all(isinstance(each, tuple) for each in pairs):
        return "not a JSON object"
    keys = [key for key, _ in pairs]
    return "a key stands twice" if len(set(keys)) < len(keys) else None
