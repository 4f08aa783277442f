"""Which keys a run may begin a batch under, and that others leave no trace."""

from pathlib import Path

import pytest
from command import evenrank
from stores import DAY, audit, deliver, ranking, write_settings

from pipeline.errors import SettingsError
from pipeline.history.manifest import manifest
from pipeline.runs.batches import backfill, run_batch
from pipeline.runs.steps import ingest_batch
from pipeline.settings.batch_keys import batch_keys, expected_key
from pipeline.store.paths import store_of

NAMED = {"batches": "names"}
NEAREST = {
    "2026-3-1": "2026-03-01",
    "2026-02-30": "2026-02-28",
    "2028-02-30": "2028-02-29",
    "2026-13-01": "2026-12-01",
    "2026-00-10": "2026-01-10",
    "20260105": "2026-01-05",
    "2026_01_05": "2026-01-05",
    "2026-01-05.csv": "2026-01-05",
    "2026-01-05T7": "2026-01-05T07",
    "2026-01-05t07": "2026-01-05T07",
    "2026-01-05T24": "2026-01-05T23",
    "2026-01-05T0730": "2026-01-05T07",
    "yesterday": None,
    "5": None,
    "2026": None,
    "2026-W03-1": None,
    "0026-01-05": None,
    "9026-01-05": None,
    "release.7": None,
}
"""What is no day and no hour, and what stands closest."""


@pytest.mark.parametrize("key", [DAY, "2028-02-29", "1970-01-01", "2026-01-05T00", "2026-01-05T23"])
def test_days_and_their_hours_are_batches(key: str, tmp_path: Path) -> None:
    for more in ({}, NAMED):
        assert expected_key(key, audit(tmp_path, schedule=more)) == key


@pytest.mark.parametrize(("key", "near"), NEAREST.items())
def test_other_keys_are_refused_with_the_nearest(
    key: str, near: str | None, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError) as caught:
        expected_key(key, audit(tmp_path))
    said = str(caught.value)
    assert repr(key) in said
    assert "batches: names" in said
    assert (f"did you mean {near}?" in said) == (near is not None)
    assert near is None or expected_key(near, audit(tmp_path)) == near


@pytest.mark.parametrize("key", NEAREST)
def test_where_batches_have_names_any_is_one(key: str, tmp_path: Path) -> None:
    assert expected_key(key, audit(tmp_path, schedule=NAMED)) == key


def test_all_wrong_keys_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        batch_keys(("yesterday", DAY, "2026-3-1", "../x"), audit(tmp_path))
    for words in ("3 problems", "'yesterday'", "2026-03-01", "'../x' cannot name a batch"):
        assert words in str(caught.value)


def test_a_wrong_key_leaves_no_trace(tmp_path: Path) -> None:
    settings = audit(tmp_path)
    for key in ("yesterday", "2026-02-30"):
        # Even where there are logs of that name.
        deliver(tmp_path, ranking("a"), batch=key)
        for begin in (
            lambda key=key: run_batch(settings, key),
            lambda key=key: list(backfill(settings, [DAY, key])),
            lambda key=key: ingest_batch(settings, key, "run"),
        ):
            with pytest.raises(SettingsError, match=key):
                begin()
    assert not store_of(settings).root.exists()


def test_wrong_keys_on_the_command_line_end_with_2(tmp_path: Path) -> None:
    config = write_settings(tmp_path)
    deliver(tmp_path, ranking("a"))
    result = evenrank(
        "run", "--batch", DAY, "--batch", "yesterday", "--batch", "2026-3-1", "--config", config
    )
    assert result.exit_code == 2
    for words in ("2 problems", "'yesterday'", "did you mean 2026-03-01?"):
        assert words in result.stderr
    assert not (tmp_path / "store").exists()


def test_a_store_that_holds_other_keys_is_read_as_before(tmp_path: Path) -> None:
    deliver(tmp_path, ranking("a"), batch="odd.1")
    assert run_batch(audit(tmp_path, schedule=NAMED), "odd.1").status == "done"
    settings = audit(tmp_path)
    assert [*manifest(settings)] == ["odd.1"]
    config = write_settings(tmp_path)
    for words in (["publish"], ["verify", "--recompute"], ["history"], ["report"]):
        assert evenrank(*words, "--config", config).exit_code == 0, words
