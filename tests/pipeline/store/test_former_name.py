"""What was made while the product was named Rankaudit stays readable, and the name is used no more.

``data/store_of_rankaudit.tar.gz`` was made by the last version of that name: logs of three days, by
``rankaudit generate --days 3 --lists 12 --items 60``, and a store of the first two, with ids hashed
under the key below, an alert and a release.
"""

import json
import os
import shutil
import subprocess
import tarfile
import time
from pathlib import Path

import pyarrow.parquet
import pytest
from command import evenrank
from places import ROOT
from stores import in_batch, in_history

from pipeline.errors import SettingsError
from pipeline.integrity.verify import verify
from pipeline.privacy.hashed_ids import keyed_hash
from pipeline.publish.copy import publish
from pipeline.runs.batches import run_batch
from pipeline.settings.audit import Settings
from pipeline.settings.load import load_settings
from pipeline.store.paths import store_of

KEPT = ROOT / "tests" / "data" / "store_of_rankaudit.tar.gz"
KEY = "0123456789abcdef-0123456789abcdef"
DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")
ALERT = "f1b85eebc740"
SAYS_IT = {
    "CHANGELOG.md": "what was renamed",
    "Makefile": "clean-data removes demos of before",
    "pipeline/former_name.py": "what is still read",
    "tests/pipeline/integrity/test_trust.py": "a kept store bears it",
    "tests/pipeline/store/test_former_name.py": "this file",
}
"""The only text files that hold the former name, and what for."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The audit as the version before left it; it is the current folder."""
    with tarfile.open(KEPT) as archive:
        archive.extractall(tmp_path, filter="data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENRANK_KEY", KEY)
    return tmp_path


@pytest.fixture
def settings(folder: Path) -> Settings:
    return load_settings(folder / "audit.yaml")


def said(*words: str) -> str:
    result = evenrank(*words)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_store_of_before_is_whole_and_read(settings: Settings) -> None:
    found = verify(settings)
    assert (found.problems, found.batches) == ([], 2)
    assessed, copy = found.unfinished
    assert "older version, which the next run settles" in copy
    assert "is of an older version; `evenrank assess` brings what follows" in assessed
    scores = json.loads(said("history", "--slice", "all", "--json").splitlines()[-1])["scores"]
    of_exposure = {
        score["batch"]: (round(score["value"], 4), score["status"])
        for score in scores
        if (score["label"], score["attribute"]) == ("EXP.MinMaxRatio", "gender")
    }
    assert of_exposure == {DAYS[0]: (0.9732, "breach"), DAYS[1]: (0.9417, "breach")}
    assert ALERT in said("alerts", "--all")
    assert "model v2" in said("mark")
    # Under another key, or with another text below it, every batch would count as other rows.
    stored = in_history(settings, "SELECT DISTINCT rows_hash, config_hash FROM batches")
    assert stored == [{"rows_hash": settings.rows_hash, "config_hash": settings.config_hash}]


def test_a_store_of_before_takes_a_further_run(settings: Settings) -> None:
    spilled = store_of(settings).root / "spill" / "rankaudit-4711"
    spilled.mkdir(parents=True)
    days_ago = time.time() - 3 * 86_400
    os.utime(spilled, (days_ago, days_ago))
    assert run_batch(settings, DAYS[2]).status == "done"
    publish(settings)
    found = verify(settings)
    assert (found.problems, found.unfinished, found.batches) == ([], [], 3)
    assert not spilled.exists()
    rows = in_history(settings, "SELECT batch, rows_hash FROM batches ORDER BY batch")
    assert rows == [{"batch": day, "rows_hash": settings.rows_hash} for day in DAYS]
    for day in (DAYS[0], DAYS[2]):
        log = pyarrow.parquet.read_table(f"logs/{day}/part-0.parquet").to_pylist()
        delivered = {(hashed(row["list_id"]), hashed(row["item_id"])) for row in log}
        kept = in_batch(settings, "SELECT DISTINCT list_id, item_id FROM ranking_log", day)
        assert kept
        assert {tuple(row.values()) for row in kept} <= delivered


def hashed(text: str) -> str:
    return keyed_hash(KEY.encode(), text)


def test_the_key_is_asked_for_by_its_new_name(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = settings.rows_hash
    monkeypatch.delenv("EVENRANK_KEY")
    monkeypatch.setenv("RANKAUDIT_KEY", KEY)
    with pytest.raises(SettingsError, match="EVENRANK_KEY holds no key"):
        _ = settings.rows_hash
    privacy = settings.privacy.model_copy(update={"key": "RANKAUDIT_KEY"})
    assert settings.model_copy(update={"privacy": privacy}).rows_hash == expected


def test_generated_files_are_the_same_and_replaced(folder: Path) -> None:
    files = ["items.parquet", *(f"logs/{day}/part-0.parquet" for day in DAYS)]
    before = [pyarrow.parquet.read_table(folder / name) for name in files]
    period = ("--start", DAYS[0], "--days", "3")
    said("generate", "--out", ".", *period, "--lists", "12", "--items", "60", "--quiet")
    after = [pyarrow.parquet.read_table(folder / name) for name in files]
    for new, old in zip(after, before, strict=True):
        if "relevance" not in old.column_names:
            assert new == old
            continue
        assert new.drop_columns(["relevance"]) == old.drop_columns(["relevance"])
        # It was graded then, and is yes or no now.
        graded, relevant = (table["relevance"].to_pylist() for table in (old, new))
        assert relevant == [float(each >= 0.5) for each in graded]
    assert {key for table in before for key in table.schema.metadata} == {b"rankaudit.generated"}
    assert {key for table in after for key in table.schema.metadata} == {b"evenrank.generated"}


def test_clean_data_knows_generated_files_of_both_names(folder: Path) -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("there is no make")
    # The item table and the first day get the new mark; the other days keep the old one.
    period = ("--start", DAYS[0], "--days", "1")
    said("generate", "--out", ".", *period, "--lists", "2", "--items", "60", "--quiet")
    own = folder / "logs" / DAYS[1] / "own.csv"
    own.write_text("list_id,item_id,rank\n", "utf-8")
    clean = [make, "--silent", "-C", folder, "-f", ROOT / "Makefile", "clean-data"]
    # Started by `make test`, the inner make would take the outer one's flags.
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    refused = subprocess.run(clean, capture_output=True, text=True, check=False, env=quiet)
    assert refused.returncode
    found = [line for line in refused.stderr.splitlines() if line.startswith(("logs", "items"))]
    assert found == [f"logs/{DAYS[1]}/own.csv"]
    own.unlink()
    subprocess.run(clean, capture_output=True, check=True, env=quiet)
    assert [path.name for path in folder.iterdir()] == ["audit.yaml"]


def test_the_former_name_stands_nowhere_else() -> None:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a checkout of git")
    asked = [git, "-C", ROOT, "grep", "-Iil", "rankaudit"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert not found.stderr
    assert {*found.stdout.splitlines()} <= SAYS_IT.keys()
    asked = [git, "-C", ROOT, "ls-files", "*[Rr]ank[Aa]udit*"]
    named = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert named.stdout.splitlines() == [str(KEPT.relative_to(ROOT))]
