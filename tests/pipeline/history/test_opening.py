"""Opening the history: many questions in one session."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest
from stores import DAY, audit, deliver, random_lists

import pipeline.history.opening
from pipeline.history.manifest import manifest
from pipeline.history.opening import open_history, reading_history
from pipeline.history.queries import labelled
from pipeline.runs.batches import run_batch
from pipeline.settings.audit import Settings


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of an audit whose day has been run."""
    settings = audit(tmp_path_factory.mktemp("done"), metrics=["EXP"])
    deliver(Path(settings.folder), random_lists(1))
    assert run_batch(settings, DAY).revision == 1
    return settings


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An entry for every session that is opened on a history."""
    opened: list[str] = []
    working = pipeline.history.opening.working

    @contextmanager
    def noted(*args: Any) -> Iterator[duckdb.DuckDBPyConnection]:
        opened.append("session")
        with working(*args) as connection:
            yield connection

    monkeypatch.setattr(pipeline.history.opening, "working", noted)
    return opened


def test_many_questions_are_asked_in_one_session(done: Settings, sessions: list[str]) -> None:
    alone = manifest(done), labelled(done)
    assert len(sessions) == 2
    with reading_history(done):
        assert (manifest(done), labelled(done)) == alone
    assert len(sessions) == 3
    assert manifest(done) == alone[0]
    assert len(sessions) == 4


def test_what_one_question_makes_is_gone_with_it(done: Settings) -> None:
    with reading_history(done):
        with open_history(done, read_only=True) as connection:
            connection.execute("CREATE TEMP TABLE own AS SELECT 1 AS one")
        with open_history(done, read_only=True) as connection:
            names = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    assert ("own",) not in names
    assert ("batches",) in names


def test_another_store_is_another_history(
    done: Settings, tmp_path: Path, sessions: list[str]
) -> None:
    other = audit(tmp_path, metrics=["EXP"])
    with reading_history(done):
        assert manifest(other) == {}
        deliver(tmp_path, random_lists(2))
        assert run_batch(other, DAY).revision == 1
        assert manifest(done)[DAY].result_hash != manifest(other)[DAY].result_hash
    assert manifest(other).keys() == {DAY}


def test_a_store_without_history_stays_without(tmp_path: Path) -> None:
    settings = audit(tmp_path, metrics=["EXP"])
    with reading_history(settings):
        assert manifest(settings) == {}
    assert not (Path(settings.folder) / "store" / "history.duckdb").exists()
