"""The command that generates rankings with a known bias."""

from datetime import timedelta
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from biased_logs import START, contents
from click.testing import Result
from command import evenrank

from pipeline.synthetic.biased import BiasedRankings
from pipeline.synthetic.biased_period import generate_biased
from pipeline.synthetic.biased_request import BiasedIncidents


def said(out: Path, *more: object, days: int = 1, lists: int = 50) -> Result:
    period = ("--start", START, "--days", days, "--lists", lists)
    return evenrank("generate", "--out", out, *period, *more)


FM = ("--group", "F=0.4", "--group", "M=0.6")


def test_the_command_does_what_the_call_does(tmp_path: Path) -> None:
    days = [START + timedelta(n) for n in range(4)]
    result = said(
        tmp_path / "a", "--phi", 0.9, *FM, "--order", "largest", "--attribute", "gender",
        "--items", 300, "--seed", 5, "--length", "5-15", "--candidates", 30,
        "--slice", "market=de:0.6,fr:0.4", "--slice", "device=app,web",
        "--relevance", "binary", "--correlation", 0, "--mean-relevance", 0.3,
        "--group-gap", -0.1, "--clicks", "power", "--eta", 0.5, "--click-noise", 0.05,
        "--propensity", "--unfair", days[1], "--unfair-phi", 0.2, "--unfair-in", "market=de",
        "--broken", days[2], "--missing", days[3], days=4,
    )  # fmt: skip
    assert (result.exit_code, result.stdout) == (0, "")
    assert len(result.stderr.splitlines()) == 4
    assert all(len(line) <= 80 for line in result.stderr.splitlines())
    rankings = BiasedRankings(
        {"F": 0.4, "M": 0.6}, 0.9, order="largest", attribute="gender", items=300, seed=5,
        length=(5, 15), candidates=30,
        slices={"market": {"de": 0.6, "fr": 0.4}, "device": ["app", "web"]},
        relevance="binary", correlation=0.0, mean_relevance=0.3, group_gap=-0.1,
        clicks="power", eta=0.5, click_noise=0.05, propensity=True,
    )  # fmt: skip
    incidents = BiasedIncidents(
        unfair={days[1]: 0.2}, broken=[days[2]], missing=[days[3]], only={"market": "de"}
    )
    generate_biased(tmp_path / "b", rankings, start=START, days=4, lists=50, incidents=incidents)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_defaults_of_the_command_are_those_of_the_call(tmp_path: Path) -> None:
    assert said(tmp_path / "a", "--phi", 0, *FM, "--unfair", START).exit_code == 0
    incidents = BiasedIncidents({START: 0.0})
    rankings = BiasedRankings({"F": 0.4, "M": 0.6}, 0.0)
    generate_biased(tmp_path / "b", rankings, start=START, days=1, lists=50, incidents=incidents)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_what_the_command_writes_can_be_audited(tmp_path: Path) -> None:
    broken = START + timedelta(1)
    result = said(
        tmp_path, "--phi", 0.2, *FM, "--slice", "market=de,fr", "--broken", broken, "--quiet",
        days=2, lists=200,
    )  # fmt: skip
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    config = tmp_path / "audit.yaml"
    config.write_text("items: items.parquet\nattributes: [group]\nslices: [market]\n")
    for day in (START, broken):
        result = evenrank("run", "--batch", day, "--config", config)
        assert result.exit_code == 0, result.output
        assert ("rejected" in result.output) == (day == broken)
    files = sorted((tmp_path / "logs" / START.isoformat()).iterdir())
    result = evenrank("score", *files, "--items", tmp_path / "items.parquet", "--metric", "EXP")
    assert result.exit_code == 0
    assert "200 lists, 4,000 rows" in result.stdout


def test_options_of_bias_need_phi(tmp_path: Path) -> None:
    result = said(tmp_path / "out", *FM, "--length", 5, "--unfair", START, "--propensity")
    assert result.exit_code == 2
    assert "--group, --length, --propensity, --unfair: only" in result.stderr
    assert "--phi" in result.stderr
    assert not (tmp_path / "out").exists()


def test_the_command_tells_all_problems_at_once(tmp_path: Path) -> None:
    wrong = (
        "--phi", 1.5, "--group", "F=lots", "--group", "M", "--group", "F=1", "--length", "few",
        "--slice", "market=de:x,de", "--eta", 2, "--unfair-phi", 0.5, "--unfair-in", "device=app",
        "--broken", START, "--missing", START, "--seed", -2,
    )  # fmt: skip
    result = said(tmp_path / "out", *wrong)
    assert result.exit_code == 2
    for text in (
        "--eta: only with --clicks power",
        "--unfair-phi: on which day?",
        "--group M: write it as in F=0.4",
        "--group F: given twice",
        "--group F: 'lots' is not a number",
        "--length few: write it as in 20 or 5-30",
        "--slice market, de: 'x' is not a number",
        "--slice market: de stands twice",
        "groups: give shares of 2 or more",
        "phi is 1.5",
        "seed is -2",
        "device is no slice",
        "two incidents on one day",
    ):
        assert text in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pyarrow.parquet.ParquetWriter, "write_table", full_disk)
    for more in ((), ("--phi", 0.5, *FM)):
        result = said(tmp_path / "out", *more)
        assert result.exit_code == 1
        assert "cannot be written (No space left on device)" in result.stderr
