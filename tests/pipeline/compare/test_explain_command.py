"""How the command explain ends, and what it prints."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from places import ROOT
from stores import Rows, deliver, lists, ranking, write_settings

from pipeline.cli.explain import explain
from pipeline.runs.batches import run_batch
from pipeline.settings.load import load_settings
from pipeline.store.paths import store_of

DAYS = ("2026-01-05", "2026-01-06", "2026-01-07")
METRICS = "metrics: [EXP@1, EXPU, IAA, EEL, ARP, nDCG@2, Skew@1]\n"
SETTINGS = f"attributes: [gender]\nslices: [device, market]\n{METRICS}"
LABEL = "EXP@1.MinMaxRatio"


def tops(device: str, women: int, count: int) -> Rows:
    """Lists of one woman and one man for many markets; she leads the first ``women`` of them."""
    named = ((f"{device}{at}", "FM" if at < women else "MF", at) for at in range(count))
    return lists(
        *(
            ranking(name, genders, device=device, market=f"m{at % 12}", relevance=1)
            for name, genders, at in named
        )
    )


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explained")
    path = write_settings(folder, SETTINGS)
    deliver(folder, tops("app", 8, 20) + tops("web", 1, 10), batch=DAYS[0])
    deliver(folder, tops("app", 5, 10) + tops("web", 3, 20), batch=DAYS[1])
    # A day on which nobody but men is shown.
    deliver(folder, lists(*(ranking(f"l{at}", "MM", device="app") for at in range(3))), DAYS[2])
    settings = load_settings(path)
    for day in DAYS[:2]:
        assert run_batch(settings, day).status == "done"
    return path


def explained(config: Path, *words: object) -> Result:
    given = [*map(str, words), "--config", str(config)]
    found = CliRunner().invoke(explain, given)
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return found


def test_the_verdict_comes_first(config: Path) -> None:
    found = explained(config, "--batch", DAYS[1], "--score", LABEL)
    assert found.exit_code == 0, found.output
    shown = found.stdout.splitlines()
    assert max(map(len, shown)) <= 80
    assert " ".join(found.stdout.split()).startswith(
        "F got 36% of the exposure per item in the first place that M got; in 2026-01-05 it was "
        "43%. EXP@1.MinMaxRatio of gender fell from 0.429 to 0.364, whether by chance is not known: "
        "there are no intervals (evidence.resamples is 0) (change -0.0649; by device)."
    )
    assert "A 2026-01-05, 30 lists; B 2026-01-06, 30 lists" in shown
    assert "worst off: F" in shown
    # (1/4 - 3/7 + 4/11 - 23/37) / 2 and (23/37 - 3/7 + 4/11 - 1/4) / 2.
    told = [line.split() for line in shown]
    assert ["mix", "-0.218", "not", "known"] in told
    assert ["treatment", "+0.153", "not", "known"] in told
    assert [line.split()[0] for line in shown if line.startswith(("app ", "web "))] == [
        "app",
        "web",
    ]


def test_many_cells_are_summed_up(config: Path) -> None:
    found = explained(config, "--batch", DAYS[1], "--score", LABEL, "--by", "market")
    (rest,) = (line for line in found.stdout.splitlines() if " more " in line)
    assert rest.startswith("4 more")
    assert explained(config, "--batch", DAYS[1], "--score", LABEL, "--quiet").stdout == ""


def test_a_document_for_scripts(config: Path) -> None:
    found = explained(config, "--batch", DAYS[1], "--score", LABEL, "--json")
    document: dict[str, Any] = json.loads(found.stdout.splitlines()[-1])
    assert set(document["by"]) == {"device", "market", "query"}
    assert (document["before"]["batch"], document["after"]["batch"]) == DAYS[:2]
    device = document["by"]["device"]
    assert device["score"]["mix"] + device["score"]["treatment"] == device["score"]["change"]
    assert device["score"]["change"] == document["change"]
    assert [part["cell"] for part in device["parts"]] == ["app", "web"]
    assert set(device["groups"]) == set(device["parts"][0]["groups"]) == {"F", "M"}
    assert len(document["by"]["market"]["parts"]) == 12


def test_the_other_way_round(config: Path) -> None:
    found = explained(config, "--batch", DAYS[0], "--against", DAYS[1], "--score", LABEL)
    first, second, *_ = " ".join(found.stdout.split()).split(" EXP@1")
    assert first.endswith("that M got; in 2026-01-06 it was 36%.")
    assert second.startswith(".MinMaxRatio of gender rose from 0.364 to 0.429")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--score", "EXPP.MinMaxRatio"), 2, "did you mean EXP"),
        (("--score", "EXP@1"), 2, "say which, as in EXP@1.MinMaxRatio"),
        (("--score", LABEL, "--attribute", "sex"), 2, "--attribute sex: there are gender"),
        (("--score", "IAA", "--attribute", "gender"), 2, "IAA has no groups; leave it out"),
        (("--score", LABEL, "--by", "shop"), 2, "--by shop: there are device, market, query"),
        (("--score", LABEL, "--against", DAYS[1]), 2, "not compared with itself"),
        (("--score", LABEL, "--against", "2026-02-01"), 4, "2026-02-01: nothing is stored"),
        (("--score", LABEL, "--against", "../x"), 2, "cannot name a batch"),
        (("--score", "IAA"), 2, "by device: it sums up items"),
        (("--score", "EEL"), 2, "by market: it looks at all lists of a query"),
        (("--score", "ARP.MinMaxRatio", "--by", "query"), 2, "kept per slice only"),
        (("--score", "EXPRU.MinMaxRatio"), 4, "2026-01-05: all_zero"),
        (("--score", "nDCG@7"), 4, "2026-01-06: not_counted"),
    ],
)
def test_how_it_ends(config: Path, words: tuple[str, ...], code: int, said: str) -> None:
    found = explained(config, "--batch", DAYS[1], *words)
    assert found.exit_code == code, found.output
    assert said in found.stderr
    assert found.stdout == ""


def test_what_cannot_be_split_one_way_is_split_the_others(config: Path) -> None:
    found = explained(config, "--batch", DAYS[1], "--score", "ARP.MinMaxRatio")
    assert "not split by query: it needs sums over lists" in found.stdout
    assert "\nBy market" in found.stdout


def test_the_first_batch_has_none_before(config: Path) -> None:
    found = explained(config, "--batch", DAYS[0], "--score", LABEL, "--json")
    assert found.exit_code == 4
    assert "no batch before 2026-01-05" in json.loads(found.stdout)["error"]


@pytest.mark.slow
def test_a_group_that_is_not_there(tmp_path: Path) -> None:
    path = write_settings(tmp_path, "attributes: [gender]\nslices: [device]\nmetrics: [EXP]\n")
    settings = load_settings(path)
    deliver(tmp_path, tops("app", 2, 4), batch=DAYS[0])
    deliver(tmp_path, lists(ranking("l", "MM", device="app")), batch=DAYS[1])
    for day in DAYS[:2]:
        assert run_batch(settings, day).status == "done"
    found = explained(path, "--batch", DAYS[1], "--score", "EXP.MinMaxRatio")
    assert found.exit_code == 4
    assert "2026-01-06: one_group" in found.stderr


@pytest.mark.slow
def test_counts_outlive_the_batch_file(config: Path, tmp_path: Path) -> None:
    settings = load_settings(config)
    path, away = store_of(settings).batch(DAYS[0]), tmp_path / "away"
    whole = explained(config, "--batch", DAYS[1], "--score", LABEL, "--by", "device").stdout
    path.rename(away)
    try:
        found = explained(config, "--batch", DAYS[1], "--score", LABEL, "--by", "device")
        assert found.stdout == whole
        found = explained(config, "--batch", DAYS[1], "--score", LABEL)
        assert "not split by query: 2026-01-05 keeps no rows" in found.stdout
    finally:
        away.rename(path)


def test_other_settings_need_another_run(config: Path) -> None:
    other = config.with_name("other.yaml")
    other.write_text(config.read_text("utf-8") + "relevant_from: 0.7\n", "utf-8")
    found = explained(other, "--batch", DAYS[1], "--score", LABEL)
    assert found.exit_code == 1
    assert "2026-01-05: its rows were counted under other settings" in found.stderr


@pytest.mark.slow
def test_names_cannot_steer_the_terminal(tmp_path: Path) -> None:
    path = write_settings(tmp_path, "attributes: [gender]\nslices: [device]\nmetrics: [EXP@1]\n")
    settings = load_settings(path)
    for day, women in zip(DAYS[:2], (1, 3), strict=True):
        rows = [row | {"device": "a\x1b[31m[bold]"} for row in tops("a", women, 4)]
        deliver(tmp_path, rows, batch=day)
        assert run_batch(settings, day).status == "done"
    found = explained(path, "--batch", DAYS[1], "--score", LABEL)
    assert "\x1b" not in found.stdout
    assert "[bold]" in found.stdout


@pytest.mark.slow
def test_the_page_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "explaining.md").read_text("utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (shown,) = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "the page", "exec"), {"__name__": "block"})
    settings = load_settings(Path("simpson/audit.yaml"))
    for day in DAYS[:2]:
        assert run_batch(settings, day).status == "done"
    found = explained(
        Path("simpson/audit.yaml"), "--batch", DAYS[1], "--score", LABEL, "--by", "device"
    )
    assert [line.rstrip() for line in found.stdout.splitlines()] == shown.splitlines()
