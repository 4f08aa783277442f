"""Rows that were checked, held as small numbers until all of them have come.

Beyond what may stay in memory they go to a file of the session, from which they are read again a
piece at a time.

Not here: what numbers mean (``checked_lists``), and tables (``accepted_rows``).
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from weakref import finalize

import numpy as np
import numpy.typing as npt

from metrics.weights import IntArray
from pipeline.store.memory import OutOfMemory, no_room

Column = npt.NDArray[Any]
MOST_BYTES = 256_000_000
"""Bytes of rows that stay in memory at most; a row of a usual log is seven."""


@dataclass(frozen=True)
class Piece:
    """Some whole runs of rows: ``first`` is the number of the first, ``lengths`` has their rows.

    ``columns`` have shape (rows,), the rows of a run in order of rank.
    """

    first: int
    lengths: IntArray
    columns: Mapping[str, Column]

    @property
    def rows(self) -> int:
        """How many rows."""
        return int(self.lengths.sum())


@dataclass(frozen=True)
class _Written:
    """Where in the file the columns of a piece stand."""

    first: int
    lengths: IntArray
    places: Mapping[str, tuple[int, np.dtype[Any]]]


class HeldRows:
    """Pieces in the order in which they came; ``folder`` is where those go that find no room."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder, self._room = folder, min(most_bytes, MOST_BYTES)
        self._pieces: list[Piece | _Written] = []
        self._file: IO[bytes] | None = None

    def add(self, piece: Piece) -> None:
        """Hold a piece."""
        size = sum(column.nbytes for column in piece.columns.values())
        if size <= self._room:
            self._room -= size
            self._pieces.append(piece)
            return
        try:
            self._pieces.append(_Written(piece.first, piece.lengths, self._written(piece)))
        except OSError as error:
            raise OutOfMemory(no_room(self._folder, os.strerror(error.errno or 0))) from None

    def _written(self, piece: Piece) -> dict[str, tuple[int, np.dtype[Any]]]:
        """Where the columns of a piece stand in the file, to which they are added."""
        if self._file is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            # It has no name: what holds it open is the only one who can, and it ends with it.
            self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115
            finalize(self, self._file.close)
        places: dict[str, tuple[int, np.dtype[Any]]] = {}
        for name, column in piece.columns.items():
            places[name] = self._file.seek(0, 2), column.dtype
            left = memoryview(column.tobytes())
            while left:
                left = left[self._file.write(left) :]
        return places

    def __iter__(self) -> Iterator[Piece]:
        for piece in self._pieces:
            yield self._read(piece) if isinstance(piece, _Written) else piece

    def _read(self, piece: _Written) -> Piece:
        columns = {}
        rows = int(piece.lengths.sum())
        for name, (place, kind) in piece.places.items():
            if self._file is not None:
                self._file.seek(place)
                columns[name] = np.fromfile(self._file, kind, rows)
        return Piece(piece.first, piece.lengths, columns)
