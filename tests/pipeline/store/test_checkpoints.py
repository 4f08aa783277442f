"""Checkpoints that can be taken back."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest
from stores import audit, read

from pipeline.errors import AuditError
from pipeline.store.checkpoints import checkpoint, mend, undo_of
from pipeline.store.sessions import attach, working

HEADERS, BLOCK = 3 * 4096, 262144
NAME = "data"


@contextmanager
def attached(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with working(audit(path.parent), [path.parent]) as connection:
        attach(connection, path, NAME)
        yield connection


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with one number in its file and another in its write-ahead log."""
    path = tmp_path / "data.duckdb"
    with attached(path) as connection:
        connection.execute(f"CREATE TABLE {NAME}.numbers AS SELECT 1 AS number")
        checkpoint(connection, NAME)
        connection.execute(f"INSERT INTO {NAME}.numbers VALUES (2)")
    assert path.with_name(f"{path.name}.wal").exists()
    return path


def numbers(path: Path) -> list[int]:
    return sorted(row["number"] for row in read(path, "FROM numbers"))


def interrupted(path: Path) -> None:
    """A checkpoint that got as far as half of a block with metadata, and died."""

    class Died(Exception):
        pass

    class Torn:
        """A connection that tears instead of a checkpoint."""

        def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
            self.connection = connection

        def execute(self, query: str, *values: object) -> object:
            if query.startswith("CHECKPOINT"):
                raise Died
            return self.connection.execute(query, *values)

    with attached(path) as connection, pytest.raises(Died):
        checkpoint(Torn(connection), NAME)  # type: ignore[arg-type]
    with path.open("r+b") as file:
        file.seek(HEADERS)
        file.write(b"\xff" * (BLOCK // 2))


def test_a_checkpoint_leaves_nothing_behind(path: Path) -> None:
    with attached(path) as connection:
        checkpoint(connection, NAME)
    assert sorted(each.name for each in path.parent.glob("data*")) == ["data.duckdb"]
    assert numbers(path) == [1, 2]


def test_a_torn_checkpoint_is_taken_back(path: Path) -> None:
    interrupted(path)
    with pytest.raises(duckdb.Error):
        numbers(path)
    with attached(path) as connection:
        assert not undo_of(path).exists()
        connection.execute(f"INSERT INTO {NAME}.numbers VALUES (3)")
        checkpoint(connection, NAME)
    assert numbers(path) == [1, 2, 3]


def test_a_checkpoint_that_came_to_its_end_is_not(path: Path) -> None:
    interrupted(path)
    kept = undo_of(path).read_bytes()
    with attached(path) as connection:
        checkpoint(connection, NAME)
    undo_of(path).write_bytes(kept)
    assert mend(path)
    assert not undo_of(path).exists()
    assert numbers(path) == [1, 2]


@pytest.mark.parametrize("kept", [0, 1, 1000, -1])
def test_what_was_not_kept_whole_is_not_put_back(path: Path, kept: int) -> None:
    interrupted(path)
    torn = path.read_bytes()
    undo_of(path).write_bytes(undo_of(path).read_bytes()[:kept])
    assert mend(path)
    assert not undo_of(path).exists()
    assert path.read_bytes() == torn


def test_nobody_takes_back_what_goes_on(path: Path) -> None:
    interrupted(path)
    torn = path.read_bytes()
    with undo_of(path).open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert not mend(path)
        assert (undo_of(path).exists(), path.read_bytes()) == (True, torn)
    assert mend(path)
    assert numbers(path) == [1, 2]


def test_without_room_nothing_is_written_over(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()

    def full(file: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with attached(path) as connection:
        monkeypatch.setattr("pipeline.store.checkpoints.os.write", full)
        with pytest.raises(AuditError, match=r"data\.duckdb\.undo: .*No space left on device"):
            checkpoint(connection, NAME)
    assert path.read_bytes() == before
    monkeypatch.undo()
    assert mend(path)
    assert numbers(path) == [1, 2]
