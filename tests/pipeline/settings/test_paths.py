"""Relative paths mean what they meant when settings were loaded, wherever the process goes."""

from pathlib import Path

import pytest
from stores import DAY, deliver, ranking, write_csv, write_settings

from pipeline.errors import NoData
from pipeline.log.deliveries import delivery
from pipeline.runs.batches import run_batch
from pipeline.settings.load import deciding_as, load_settings
from pipeline.store.paths import spill_of, store_of

SAID = "attributes: [gender]\nitems: items.csv\nspill: spilled\nmetrics: [EXP]\n"


def audited(folder: Path) -> None:
    write_settings(folder, SAID)
    rows = ranking("a")
    deliver(folder, [{k: v for k, v in row.items() if k != "gender"} for row in rows])
    write_csv(folder / "items.csv", [{k: row[k] for k in ("item_id", "gender")} for row in rows])


@pytest.mark.parametrize("config", [None, "audit.yaml", "../here/audit.yaml"])
def test_paths_of_the_file_do_not_move(
    config: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    audited(here)
    there.mkdir()
    monkeypatch.chdir(here)
    settings = load_settings(Path(config) if config else None)
    again = deciding_as(settings, settings.deciding)
    monkeypatch.chdir(there)
    for each in (settings, again):
        assert store_of(each).root.resolve() == here / "store"
        assert delivery(each, DAY).items
        assert spill_of(each).samefile(here / "spilled")
    assert run_batch(settings, DAY).status == "done"
    assert (here / "store" / "history.duckdb").exists()
    assert list(there.iterdir()) == []


def test_paths_of_the_environment_do_not_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audited(tmp_path / "here")
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path)
    for name, path in {"LOGS": "here/logs/{batch}/*", "STORE": "kept", "SPILL": "spilled"}.items():
        monkeypatch.setenv(f"EVENRANK_{name}", path)
    settings = load_settings(Path("here/audit.yaml"))
    monkeypatch.chdir(tmp_path / "there")
    assert store_of(settings).root == tmp_path / "kept"
    assert spill_of(settings) == tmp_path / "spilled"
    assert delivery(settings, DAY).paths == (tmp_path / "here" / "logs" / DAY / "part.csv",)
    with pytest.raises(NoData):
        delivery(settings, "2026-01-06")
