"""The documentation does what it says: its commands, queries and examples run, and its links lead
somewhere.

Pages run in a copy of a small store, with the days of the demo that they speak of.
"""

import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import date
from io import StringIO
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow.parquet
import pytest
import yaml
from click.testing import CliRunner
from logs import TEN
from places import ROOT

from assets.due import DEMO_LISTS
from docs.build import pages
from docs.build.settings import MEANINGS, fields
from metrics import AGGREGATIONS, METRICS, catalogue, fairness
from pipeline import errors, score
from pipeline.cli.main import main
from pipeline.errors import AuditError, Terminated
from pipeline.settings.load import settings_from
from pipeline.synthetic.marketplace import Incidents, generate
from schemas.history import BATCH_STATUSES
from schemas.rules import LOGGED
from schemas.scores import STATUSES
from schemas.views import VIEWS_VERSION

PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.md")],
    key=lambda page: str(page.relative_to(ROOT)),
)
_TABLES_ONLY = {"architecture", "bad-inputs", "dependencies"}
RUN = [
    ROOT / "README.md",
    *(page for page in sorted(ROOT.glob("docs/*.md")) if page.stem not in _TABLES_ONLY),
]
"""Pages whose blocks are executed, each from top to bottom."""
NUMBERS = {7: "seven", 8: "eight", 9: "nine", 10: "ten", 11: "eleven", 12: "twelve"}

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_EXIT = re.compile(r"#.*exit code (\d+)")
_TARGET = re.compile(r"^(?P<name>[a-z-]+):.*?##[^\n]*\n(?P<recipe>(?:\t[^\n]*\n)*)", re.MULTILINE)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


every_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the file it stands for, its text."""

    language: str
    file: str
    text: str


def blocks(page: Path) -> list[Block]:
    found = []
    for match in _FENCE.finditer(page.read_text("utf-8")):
        language, _, file = match["info"].partition(" ")
        found.append(Block(language or "sh", file, match["text"]))
    return found


def lines(block: Block) -> Iterator[str]:
    """Commands of a shell block."""
    yield from (line for line in block.text.splitlines() if line.strip())


# -- the derived parts


def test_derived_parts_are_fresh() -> None:
    stale = [
        name_of(page)
        for page in pages.PAGES
        if pages.rewritten(page.read_text("utf-8")) != page.read_text("utf-8")
    ]
    assert not stale, "stale; run make docs"


def test_every_derived_part_has_one_place() -> None:
    used = [part for page in pages.PAGES for part in pages.parts_of(page.read_text("utf-8"))]
    assert sorted(used) == sorted(pages.PARTS)


def test_building_mends_a_stale_page_and_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "before\n<!-- derived: reasons -->\nstale words\n<!-- /derived -->\nafter\n", "utf-8"
    )
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "PAGES", (page,))
    assert pages.main(["--check"]) == 1
    assert "page.md is stale" in capsys.readouterr().out
    assert pages.main([]) == 0
    assert pages.main(["--check"]) == 0
    text = page.read_text("utf-8")
    assert "stale words" not in text
    assert "`one_group`" in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")


# -- facts that prose repeats


def test_every_setting_has_a_meaning_and_an_example() -> None:
    names = [name for name, _ in fields()]
    assert sorted(names) == sorted(MEANINGS)
    commented = (ROOT / "audit.yaml").read_text("utf-8")
    # One side of a threshold stands for the other.
    for name in {*names} - {"thresholds.*.max"}:
        assert re.search(rf"\b{name.split('.')[-1]}:", commented), f"{name} is not in audit.yaml"


def test_readme_knows_columns_and_statuses() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    for name in [column.name for column in LOGGED] + [*STATUSES, *BATCH_STATUSES]:
        assert f"\n| `{name}` |" in text, name
    needing: dict[str, list[str]] = {"relevance": [], "click": []}
    for metric in TEN:
        for column in metric.columns:
            needing[column].append(metric.name)
    for column, metrics in needing.items():
        assert f"\n| `{column}` | for {', '.join(metrics)} and other families |" in text


def test_counts_in_words() -> None:
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    said = f"{NUMBERS[len(TEN)]} fairness metrics in {NUMBERS[len(AGGREGATIONS)]} aggregations"
    assert said in text
    assert f"{len(METRICS) - len(TEN)} more metrics" in text


def test_every_exit_code_is_explained() -> None:
    kinds = [each for each in vars(errors).values() if isinstance(each, type)]
    codes = {each.exit_code for each in kinds if issubclass(each, AuditError | Terminated)}
    text = (ROOT / "docs" / "operations.md").read_text("utf-8")
    assert codes | {0} == {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}


# -- links, targets, settings


def anchors(page: Path) -> set[str]:
    """Anchors of the headings of a page, as they are made where pages are shown."""
    text = _FENCE.sub("", page.read_text("utf-8"))
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    text = _FENCE.sub("", page.read_text("utf-8"))
    for match in _LINK.finditer(text):
        target, _, anchor = match["target"].partition("#")
        if "://" in target:
            continue
        file = page.parent / target if target else page
        assert file.is_file(), f"{match['target']} leads nowhere"
        if anchor:
            assert anchor in anchors(file), f"{match['target']}: no such heading"


@every_page
def test_commands_exist(page: Path) -> None:
    """make targets and files that blocks name; what starts otherwise is not known to be right."""
    recipes = {m["name"]: m["recipe"] for m in _TARGET.finditer((ROOT / "Makefile").read_text())}
    for block in blocks(page):
        if block.language != "sh":
            continue
        for line in lines(block):
            first, *rest = shlex.split(line, comments=True)
            if first == "make":
                target, *given = rest
                assert target in recipes, line
                for each in given:
                    variable = each.partition("=")[0]
                    assert f"$({variable})" in recipes[target], line
            elif first == ".venv/bin/python":
                assert (ROOT / rest[0]).is_file(), line
            else:
                known = ("evenrank", "airflow", ".", ".ci/run", ".venv/bin/pre-commit")
                assert first in known, f"{line}: no test knows this command"


@every_page
def test_settings_are_accepted(page: Path) -> None:
    for block in blocks(page):
        if block.language == "yaml":
            said = {"attributes": ["gender"], **yaml.safe_load(block.text)}
            assert settings_from(said, folder=Path())


# -- pages that run

DAYS = [("2026-01-11", "2026-01-12"), ("2026-01-17", "2026-01-20"), ("2026-01-24", "2026-01-24")]
RERUN = "2026-01-18"
"""A day that was first run with a part of its log."""
UNFAIR = "2026-01-19"
NO_LOG = "2026-01-24"
DONE = [f"2026-01-{day}" for day in (11, 12, 17, 18, 19, 20)]


@dataclass(frozen=True)
class Demo:
    """The days of the demo that pages speak of, and what auditing them printed."""

    folder: Path
    printed: str


def evenrank(*arguments: str, expected: int = 0) -> str:
    """What a command prints, once it has ended with the expected exit code."""
    answer = CliRunner().invoke(main, arguments)
    assert answer.exit_code == expected, f"{arguments}: {answer.exit_code}\n{answer.output}"
    return answer.output


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    folder = tmp_path_factory.mktemp("docs")
    first, last = date.fromisoformat(DAYS[0][0]), date.fromisoformat(DAYS[-1][1])
    generate(
        folder,
        start=first,
        days=(last - first).days + 1,
        lists=DEMO_LISTS,
        incidents=Incidents.spread(date(2026, 1, 1), 30),
    )
    shutil.copy(ROOT / "audit.yaml", folder)
    printed = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        log = folder / "logs" / RERUN / "part-0.parquet"
        whole = log.read_bytes()
        pyarrow.parquet.write_table(pyarrow.parquet.read_table(log).slice(0, 5000), log)
        evenrank("run", "--batch", RERUN)
        log.write_bytes(whole)
        for start, end in DAYS:
            code = 4 if start == NO_LOG else 0
            printed.append(evenrank("backfill", "--from", start, "--to", end, expected=code))
    return Demo(folder, "\n".join(printed))


@pytest.fixture
def sandbox(demo: Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the demo, as the current folder."""
    folder = tmp_path / "demo"
    shutil.copytree(demo.folder, folder)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.slow
def test_the_demo_shows_every_fairness_metric_on_every_day(demo: Demo) -> None:
    with duckdb.connect(str(demo.folder / "store" / "dashboard.duckdb"), read_only=True) as store:
        values = store.execute(
            "SELECT batch, regexp_extract(metric, '^[A-Za-z]+'), count(*) - count(value) "
            "FROM v_history WHERE slice = 'all' GROUP BY ALL"
        ).fetchall()
    without = {(batch, name): gaps for batch, name, gaps in values if name in {m.name for m in TEN}}
    assert without == dict.fromkeys(((day, metric.name) for day in DONE for metric in TEN), 0)


def run_shell(block: Block) -> None:
    for line in lines(block):
        command, *arguments = shlex.split(line, comments=True)
        if command == "evenrank":
            code = _EXIT.search(line)
            evenrank(*arguments, expected=int(code[1]) if code else 0)


def run_python(block: Block) -> None:
    with redirect_stdout(StringIO()):
        exec(compile(block.text, "the block", "exec"), {"__name__": "block"})


def run_sql(block: Block) -> None:
    title = block.text.splitlines()[0].removeprefix("-- ")
    with duckdb.connect("store/dashboard.duckdb", read_only=True) as store:
        found = store.execute(block.text)
        names = [column[0] for column in found.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    assert rows, f"{title}: no rows"
    ANSWERS[title](rows)


def write_file(block: Block) -> None:
    """A block that stands for a file; with a plus, for settings to be changed in it."""
    if not block.file:
        return
    path = Path(block.file.removeprefix("+"))
    path.parent.mkdir(parents=True, exist_ok=True)
    if block.file.startswith("+"):
        changed = yaml.safe_load(block.text)
        said = yaml.safe_load(path.read_text("utf-8")) | changed
        if "metrics" in changed:
            said.pop("thresholds")
        path.write_text(yaml.safe_dump(said), "utf-8")
    else:
        path.write_text(block.text, "utf-8")


RUNNERS: dict[str, Callable[[Block], None]] = {
    "sh": run_shell,
    "python": run_python,
    "sql": run_sql,
    "yaml": write_file,
    "csv": write_file,
    "text": lambda block: None,
}


@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_page_runs(page: Path, request: pytest.FixtureRequest) -> None:
    found = blocks(page)
    assert found
    request.getfixturevalue("sandbox")
    for block in found:
        RUNNERS[block.language](block)


def test_readme_shows_what_is_printed(demo: Demo) -> None:
    (shown,) = (block for block in blocks(ROOT / "README.md") if block.language == "text")
    printed = [line.rstrip() for line in demo.printed.splitlines()]
    for line in shown.text.splitlines():
        assert line == "..." or line in printed, f"not printed: {line}"


# -- answers of the queries

Rows = list[dict[str, Any]]


def _trend(rows: Rows) -> None:
    scored = [row for row in rows if row["state"] == "done"]
    assert [row["batch"] for row in scored] == DONE
    lowest = min(scored, key=lambda row: row["value"])
    assert (lowest["batch"], lowest["status"], lowest["worst_group"]) == (UNFAIR, "breach", "F")
    assert {row["status"] for row in scored if row is not lowest} == {"ok"}
    assert {row["threshold_min"] for row in scored} == {0.8}
    gaps = {row["batch"]: row["state"] for row in rows if row["state"] != "done"}
    assert gaps == {day: state for day, state in _without_scores().items() if day > DONE[0]}
    assert all(row["value"] is row["threshold_min"] is None for row in rows if row not in scored)


def _without_scores() -> dict[str, str]:
    """Days of the schedule that have no scores, and what became of each."""
    days = {f"2026-01-{day:02}": "missing" for day in range(1, 31)}
    return {day: state for day, state in days.items() if day not in DONE} | {NO_LOG: "no_data"}


def _breaches(rows: Rows) -> None:
    assert {row["batch"] for row in rows} == {UNFAIR}
    assert {row["attribute"] for row in rows} == {"gender"}
    assert {row["worst_group"] for row in rows} == {"F"}


def _whole_first(rows: Rows) -> None:
    _breaches(rows)
    assert [row["slice"] for row in rows[:2]] == ["all", "all"]


def _worst_counts(rows: Rows) -> None:
    parts = {(row["slice"], row["slice_value"]) for row in rows}
    assert ("all", "all") in parts
    for part in parts:
        counted = [r["batches"] for r in rows if (r["slice"], r["slice_value"]) == part]
        assert sum(counted) == len(DONE)


def _missing(rows: Rows) -> None:
    assert {row["batch"]: row["state"] for row in rows} == _without_scores()
    assert all((row["message"] is None) == (row["state"] == "missing") for row in rows)


def _worst_lists(rows: Rows) -> None:
    assert [row["place"] for row in rows] == list(range(1, 11))
    lacks = [row["shortfall"] for row in rows]
    assert lacks == sorted(lacks, reverse=True)
    assert all(row["losing_group"] in row["groups"].split() for row in rows)


def _lists_of_a_day(rows: Rows) -> None:
    assert [row["place"] for row in rows] == list(range(1, 11))
    assert all(row["list_id"].startswith(UNFAIR) for row in rows)
    assert {row["losing_group"] for row in rows} <= {"F", "M"}
    assert all(json.loads(row["slices"]).keys() == {"device", "market"} for row in rows)


def _freshness(rows: Rows) -> None:
    (row,) = rows
    assert (row["state"], row["newest_batch"]) == ("overdue", DONE[-1])
    assert row["late"] == len([day for day in _without_scores() if day > DONE[-1]])


def _by_margin(rows: Rows) -> None:
    margins = [row["margin"] for row in rows]
    assert margins == sorted(margins)
    assert {row["plain"] for row in rows} == {"exposure ratio", "pairs-won ratio"}
    assert {row["status"] for row in rows} == {"ok"}


def _usual(rows: Rows) -> None:
    assert [row["batch"] for row in rows] == DONE
    # Six days: too few to say.
    assert {row["usual"] for row in rows} == {None}


def _alerts_at_worst(rows: Rows) -> None:
    about = {row["about"] for row in rows if row["kind"] == "breach"}
    assert about == {"exposure ratio", "pairs-won ratio"}
    for row in rows:
        if row["kind"] == "breach":
            assert (row["worst_batch"], row["worst_loser"]) == (UNFAIR, "F")
            assert row["worst_value"] < row["threshold_min"]


def _releases(rows: Rows) -> None:
    (row,) = rows
    assert (row["release"], row["first_batch"], row["last_batch"]) == (None, DONE[0], DONE[-1])
    assert (row["worst_batch"], row["breaches"], row["previous_value"]) == (UNFAIR, 1, None)


def _about(rows: Rows) -> None:
    (row,) = rows
    assert (row["newest_batch"], row["next_due_at"]) == (DONE[-1], None)
    assert row["views_version"] == VIEWS_VERSION


def _conclusions(rows: Rows) -> None:
    said = {row["batch"]: row for row in rows}
    bad, fine, gap, missing = (said[day] for day in ("2026-01-19", DONE[-1], NO_LOG, "2026-01-30"))
    assert (bad["sign"], bad["since"]) == ("✕", "2026-01-19")
    assert bad["sentence"] == "Women got 72% of the exposure per item that men got."
    assert fine["sentence"] == "No score is beyond its limit."
    assert gap["sentence"] == "No data came for 24 January."
    assert missing["sentence"] == "Nobody has run 2026-01-30."


def _last_night(rows: Rows) -> None:
    (row,) = rows
    assert (row["batch"], row["state"], row["scored"]) == ("2026-01-30", "missing", False)


def _newest_verdicts(rows: Rows) -> None:
    (row,) = rows
    assert (row["batch"], row["breach"]) == (DONE[-1], 0)
    assert row["ok"] > 0


def _over_time(rows: Rows) -> None:
    times = [row["time"] for row in rows]
    assert times == sorted(times)
    lowest = min((row for row in rows if row["value"] is not None), key=lambda row: row["value"])
    assert f"{lowest['time']:%Y-%m-%d}" == UNFAIR
    gaps = {f"{row['time']:%Y-%m-%d}" for row in rows if row["value"] is None}
    assert gaps == {day for day in _without_scores() if day > DONE[0]}


def _heat(rows: Rows) -> None:
    cells = [(row["score"], row["place"]) for row in rows]
    assert len(set(cells)) == len(cells)
    assert ("gender: EXP.MinMaxRatio", "whole batch") in cells
    assert {row["status"] for row in rows} <= {*STATUSES} - {"not_judged"}


def _groups_of_breaches(rows: Rows) -> None:
    assert {row["batch"] for row in rows} == {UNFAIR}
    first = {(row["label"], row["slice_value"]): row for row in reversed(rows)}
    assert {row["group_value"] for row in first.values()} == {"F"}


def _revised(rows: Rows) -> None:
    assert {row["batch"] for row in rows} == {RERUN}
    assert {row["revision"] for row in rows} == {1}
    assert [row["aggregation"] for row in rows] == sorted(each.name for each in AGGREGATIONS)
    assert all(row["was"] != row["value"] for row in rows)


def exposures(*days: str) -> dict[str, float]:
    """EXP of the logs of some days, by group, computed from their rows."""
    logs = [pd.read_parquet(file) for day in days for file in Path("logs", day).iterdir()]
    found = score(
        pd.concat(logs)[["list_id", "item_id", "rank"]],
        ["gender"],
        items=pd.read_parquet("items.parquet"),
        metrics=["EXP"],
        groups=True,
    )
    return dict(zip(found["group_value"], found["value"], strict=True))


def _agree(*days: str) -> Callable[[Rows], None]:
    def check(rows: Rows) -> None:
        given = {row["group_value"]: row["value"] for row in rows}
        assert given == pytest.approx(exposures(*days), rel=1e-12)
        assert sorted(given) == ["F", "M", "unknown"]

    return check


def _alert_lives(rows: Rows) -> None:
    assert {row["kind"] for row in rows} == {"breach", "night"}
    rows = [row for row in rows if row["kind"] == "breach"]
    assert {row["label"] for row in rows} == {"EXP.MinMaxRatio", "ARP.MinMaxRatio"}
    for row in rows:
        assert (row["opened"], row["last_seen"], row["state"]) == (UNFAIR, UNFAIR, "resolved")


def _alert_texts(rows: Rows) -> None:
    (row,) = rows
    assert row["batch"] == UNFAIR
    assert "Worst off: women" in row["text"]


def _followed(rows: Rows) -> None:
    assert {row["batch"] for row in rows} == {*DONE}
    assert not any(row["shift"] for row in rows)


def _by_chance(rows: Rows) -> None:
    assert rows
    assert all(row["p_noise"] > 0.05 for row in rows)


def _by_noise(rows: Rows) -> None:
    limits = [row["noise_limit"] for row in rows]
    assert limits
    assert limits == sorted(limits)


def _beside(rows: Rows) -> None:
    assert [row["batch"] for row in rows] == DONE
    for row in rows:
        assert row["lower"] <= row["value"] <= row["upper"]
        assert (row["p_noise"] <= 0.05) == (row["value"] <= row["noise_limit"])


def _sure(rows: Rows) -> None:
    assert rows
    assert all(row["lower"] <= row["value"] <= row["upper"] for row in rows)


def _windows(rows: Rows) -> None:
    assert {row["days"] for row in rows} == {7, 28}
    assert rows[0]["batch"] == DONE[-1]
    for row in rows:
        assert row["judged_lower"] <= row["judged_value"] <= row["judged_upper"]
        assert 1 <= row["days_used"] <= row["days"]


def _untold(rows: Rows) -> None:
    assert all(row["cause"] for row in rows)


def _results(rows: Rows) -> None:
    assert [row["batch"] for row in rows] == DONE
    assert len({row["result_hash"] for row in rows}) == len(DONE)
    assert all(row["gigabytes"] is None or 0.01 < row["gigabytes"] < 100 for row in rows)


def _within(rows: Rows) -> None:
    limits = {"EXP.MinMaxRatio": 0.8, "ARP.MinMaxRatio": 0.7}
    assert {row["label"] for row in rows} == set(limits)
    for row in rows:
        assert row["detectable"] < limits[row["label"]] <= row["judged_lower"]
        assert row["judged_lower"] <= row["judged_value"]


ANSWERS: dict[str, Callable[[Rows], None]] = {
    "the last verdicts, worst batch first": _breaches,
    "trend of one score, with its gaps": _trend,
    "latest breaches": _whole_first,
    "a score over the last days": _windows,
    "how often each group is worst off, per slice": _worst_counts,
    "days that are missing, or have no scores": _missing,
    "the worst lists of the newest batch, from the top": _worst_lists,
    "the worst lists of a day, by the request they answered": _lists_of_a_day,
    "whether scores are as new as they should be": _freshness,
    "judged scores of the newest batch in plain words, the nearest to its limit first": _by_margin,
    "a score beside what is usual of it": _usual,
    "alerts at their worst, and in the last batch they were seen in": _alerts_at_worst,
    "releases beside each other": _releases,
    "how old the copy is": _about,
    "whether last night is there": _last_night,
    "what the last batches came to, in sentences": _conclusions,
    "verdicts of the newest batch": _newest_verdicts,
    "trend of one score over time, with its interval": _over_time,
    "a heat map: score by slice": _heat,
    "groups behind each breach, the worst off first": _groups_of_breaches,
    "scores that changed when a batch was run again": _revised,
    "alerts and how long they lasted": _alert_lives,
    "what an alert said, batch by batch": _alert_texts,
    "followed scores and what they are compared with": _followed,
    "how sure the scores of a day are": _sure,
    "why there were no verdicts": _untold,
    "scores that are ok with their whole interval, and what would have been noticed": _within,
    "what days came to, and what they took": _results,
    "scores that chance alone explains": _by_chance,
    "slices by what chance alone can do to them": _by_noise,
    "a score beside its interval and its noise floor": _beside,
    "values of the groups behind a score": _agree(UNFAIR),
    "EXP of a day, from its counts": _agree(UNFAIR),
    "EXP of several days at once: counts add up": _agree("2026-01-17", RERUN),
}


def test_every_answer_belongs_to_a_query() -> None:
    titles = [
        block.text.splitlines()[0].removeprefix("-- ")
        for page in RUN
        for block in blocks(page)
        if block.language == "sql"
    ]
    assert sorted(titles) == sorted(ANSWERS)


# -- the example of a new metric


def test_declaring_a_metric_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    declaration, golden = (
        block.text for block in blocks(ROOT / "CONTRIBUTING.md") if block.language == "python"
    )
    declared: dict[str, Any] = dict(vars(fairness))
    exec(declaration, declared)
    (name,) = set(declared) - set(vars(fairness)) - {"__builtins__"}
    metric = declared[name]
    assert metric.name == name
    assert metric.columns == {"click"}
    monkeypatch.setitem(catalogue.BY_NAME, name, metric)
    assert [each.label for each in metric.usual.scores()] == [
        f"{name}.{aggregation.name}" for aggregation in AGGREGATIONS
    ]
    tests: dict[str, Any] = {"pd": pd, "pytest": pytest, "score": score}
    exec(golden, tests)
    (test,) = (each for key, each in tests.items() if key.startswith("test_"))
    test()
    without = pd.DataFrame(
        {"list_id": "a", "item_id": ["1", "2"], "rank": [1, 2], "gender": ["F", "M"]}
    )
    assert set(score(without, ["gender"], metrics=[name])["reason"]) == {"click_missing"}
