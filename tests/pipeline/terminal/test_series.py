"""Scores over batches in a terminal: what is drawn, what is left open, and that it fits."""

import io
from pathlib import Path

import pytest
from command import evenrank
from histories import NIGHTS, Given, fill, gap, group, put, score, small_audit, write
from rich.console import Console
from stores import write_settings

from pipeline.errors import NoData
from pipeline.history.queries import labelled
from pipeline.history.series import (
    batches_of,
    courses,
    last_month,
    limit_text,
    month_before,
    watched,
)
from pipeline.monitoring.alerts import mark
from pipeline.settings.audit import Settings
from pipeline.settings.load import load_settings
from pipeline.settings.sections import Threshold
from pipeline.terminal.printing import WIDTH
from pipeline.terminal.series import print_course, print_trends, print_watched

LIMITS = "thresholds: {EXP.MinMaxRatio: {min: 0.8}}\nslices: [device]\nmetrics: [EXP]\n"


def screen(encoding: str = "utf-8", *, colour: bool = False) -> tuple[Console, io.BytesIO]:
    """A console of 80 columns, and what it wrote."""
    written = io.BytesIO()
    file = io.TextIOWrapper(written, encoding=encoding, write_through=True)
    found = Console(file=file, width=WIDTH, force_terminal=colour, highlight=False, no_color=None)
    return found, written


def said(written: io.BytesIO, encoding: str = "utf-8") -> list[str]:
    return [line.rstrip() for line in written.getvalue().decode(encoding).splitlines()]


# -- which batches


def test_a_month_is_of_days_of_the_schedule(tmp_path: Path) -> None:
    settings = small_audit(tmp_path, schedule={"start": "2026-01-10", "end": "2026-01-20"})
    assert month_before(settings, "2026-01-12") == ["2026-01-10", "2026-01-11", "2026-01-12"]
    assert month_before(settings, "2026-01-25", 2) == ["2026-01-19", "2026-01-20"]
    for other in ("release-7", "20260112", "2026-W03-1", "0001-01-01", "2026-01-09"):
        assert month_before(settings, other) == []
    assert last_month(settings) == []


def test_a_month_ends_with_the_newest_batch_and_holds_what_is_there(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    fill(settings, 40)
    assert last_month(settings) == NIGHTS[10:40]
    put(settings, "2026-01-05-again", [score(0.9)])
    assert last_month(settings, NIGHTS[5])[-3:] == [NIGHTS[4], "2026-01-05-again", NIGHTS[5]]


def test_scores_without_a_row_are_gaps(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    fill(settings, 2)
    put(settings, NIGHTS[4], [score(None), score(0.7, attribute="region")])
    rows = labelled(settings)
    batches = batches_of(settings, rows)
    gender, region = courses(rows, batches)
    assert batches == NIGHTS[:5]
    assert [value is None for value in gender.values] == [False, False, True, True, True]
    assert gender.statuses == ["ok", "ok", None, None, "undefined"]
    assert gender.last["batch"] == NIGHTS[4]
    assert region.values == [None, None, None, None, 0.7]
    assert gender.extent(settings)[0] == 0.8, "the threshold is in the picture"
    assert gender.worst([0.9, None, 0.85]) == 0.85


def test_limits_are_said_in_a_few_signs() -> None:
    assert limit_text(Threshold(min=0.8)) == ">=0.8"
    assert limit_text(Threshold(max=2.5)) == "<=2.5"
    assert limit_text(None) == ""


def test_what_is_watched_has_a_threshold_or_is_followed(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    rows = [
        score(0.9, status="not_judged", attribute="region"),
        score(0.1, aggregation="MaxMinDiff", status="not_judged"),
        score(0.9, slice="device", slice_value="app"),
        score(0.9),
    ]
    put(settings, NIGHTS[3], rows)
    kept, found = watched(settings, NIGHTS[:5])
    assert kept == NIGHTS[3:5]
    assert [(each.attribute, each.label) for each in found] == [("gender", "EXP.MinMaxRatio")]
    _, found = watched(settings.model_copy(update={"thresholds": {}}), NIGHTS[:5])
    assert [each.attribute for each in found] == ["gender", "region"]


# -- as printed


def history_of(folder: Path, bad: int = 7) -> Settings:
    """Twelve nights; one is unfair, one is missing, and on one a release began."""
    settings = small_audit(folder)
    nights = [at for at in range(12) if at != 4]
    write(
        settings,
        [Given(NIGHTS[at], [score(0.5 if at == bad else 0.9)], [group("F", 0.5)]) for at in nights],
    )
    gap(settings, NIGHTS[4])
    mark(settings, NIGHTS[2], "model v7")
    return settings


def test_a_chart_marks_breaches_releases_and_gaps(tmp_path: Path) -> None:
    out, written = screen()
    print_watched(out, history_of(tmp_path), NIGHTS[:12])
    assert said(written) == [
        "",
        "Whole batches, 2026-01-01 to 2026-01-12",
        "by      score            trend         last   status",
        "gender  EXP.MinMaxRatio  ████·██▁████  0.900  ✓ ok",
        "                           |    ✕      >=0.8",
        "✕ breach   | release   · no value",
    ]


@pytest.mark.slow
def test_a_chart_reads_the_same_without_blocks_and_in_colour(tmp_path: Path) -> None:
    settings = history_of(tmp_path, bad=11)
    out, written = screen("ascii")
    print_watched(out, settings, NIGHTS[:12])
    assert "gender  EXP.MinMaxRatio  ^^^^o^^^^^^_  0.500  x breach" in said(written, "ascii")
    out, written = screen(colour=True)
    print_watched(out, settings, NIGHTS[:12])
    text = written.getvalue().decode()
    assert "\x1b[1;31m▁" in text
    assert "\x1b[1;31m✕ breach" in text


def test_no_colour_is_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = history_of(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    out, written = screen(colour=True)
    print_watched(out, settings, NIGHTS[:12])
    assert "31m" not in written.getvalue().decode()


def test_a_verdict_that_is_not_of_the_last_batch_says_so(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    fill(settings, 3)
    out, written = screen()
    print_watched(out, settings, NIGHTS[:4])
    *_, chart, below, _ = said(written)
    assert chart.endswith("✓ ok")
    assert below.split() == [">=0.8", NIGHTS[2]]


def test_one_batch_and_none_are_no_chart(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    out, written = screen()
    print_watched(out, settings, NIGHTS[:3])
    put(settings, NIGHTS[3], [score(0.9)])
    print_watched(out, settings, NIGHTS[:4])
    assert written.getvalue() == b""


def test_many_batches_share_columns_that_show_the_worst(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    fill(settings, 60, {33: 0.2})
    out, written = screen()
    print_trends(out, settings, labelled(settings), None, every=True)
    *_, chart, marks, legend = said(written)
    assert chart.split()[2].index("▁") == marks.index("✕") - chart.index("█") == 33 // 2
    assert len(chart.split()[2]) == 30
    assert legend == "✕ breach   a column: the worst of 2 batches"


def test_long_names_and_numbers_fit(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    long = {"slice": "market", "slice_value": "United Kingdom", "attribute": "gender*region"}
    rows = [
        score(0.00012345, **long, metric="AttentionWeighted", status="insufficient"),
        score(0.9, **long, metric="EXP"),
        score(0.9, slice="d[/]", slice_value="[red]x[/]\x1b", metric="EXP"),
    ]
    write(settings, [Given(night, rows[1:]) for night in NIGHTS[:30]])
    put(settings, NIGHTS[30], rows)
    out, written = screen()
    print_trends(out, settings, labelled(settings), None, every=True)
    lines = said(written)
    assert max(map(len, lines)) <= WIDTH
    assert "[red]x[/]?" in "".join("".join(lines).split())
    for whole in ("0.000123", "? insufficient", "AttentionWeighted.MinMaxRatio"):
        assert any(whole in line for line in lines), "numbers, verdicts and labels stay whole"


def test_trends_are_chosen_by_the_last_status(tmp_path: Path) -> None:
    settings = history_of(tmp_path, bad=11)
    rows = labelled(settings)
    out, written = screen()
    print_trends(out, settings, rows, "breach", every=False)
    assert "EXP.MinMaxRatio" in written.getvalue().decode()
    with pytest.raises(NoData, match="no score is gated at last"):
        print_trends(out, settings, rows, "gated", every=True)


def test_of_many_trends_the_gravest_of_the_period_come_first(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    slices = [{"slice": "device", "slice_value": f"d{at:02}"} for at in range(20)]
    nights = {0: {3: 0.5}, 1: {}}
    for night, bad in nights.items():
        put(settings, NIGHTS[night], [score(bad.get(at, 0.9), **slices[at]) for at in range(20)])
    rows = labelled(settings)
    out, written = screen()
    print_trends(out, settings, rows, None, every=False)
    lines = said(written)
    assert lines[2] == "device d03  EXP.MinMaxRatio  ▁█     0.900  ✓ ok"
    assert lines[-1] == "4 more scores: --all shows them, --format csv exports them."
    print_trends(out, settings, rows, None, every=True)
    assert "more scores" not in said(written)[-1]


def test_a_chart_stands_above_one_score_only(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    fill(settings, 3)
    put(settings, NIGHTS[3], [score(0.9), score(0.9, attribute="region")])
    out, written = screen()
    print_course(out, settings, labelled(settings))
    print_course(out, settings, labelled(settings, "batch = ?", [NIGHTS[0]]))
    assert written.getvalue() == b""
    print_course(out, settings, labelled(settings, "attribute = 'gender'"))
    assert said(written)[0] == "Whole batches, 2026-01-01 to 2026-01-04"


# -- the commands


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = write_settings(tmp_path, f"attributes: [gender]\n{LIMITS}")
    fill(load_settings(file), 12, {11: 0.5})
    return file


def test_history_shows_trends(config: Path) -> None:
    result = evenrank("history", "--trend", "--config", config)
    assert "gender  EXP.MinMaxRatio  ███████████▁  0.500  ✕ breach" in result.stdout
    from_ = evenrank("history", "--trend", "--from", NIGHTS[9], "--config", config)
    assert f"Whole batches, {NIGHTS[9]} to {NIGHTS[11]}" in from_.stdout
    none = evenrank("history", "--trend", "--status", "ok", "--config", config)
    assert (none.exit_code, none.stdout) == (4, "")


def test_history_of_one_score_has_a_chart_above_the_table(config: Path) -> None:
    words = ("history", "--metric", "EXP.MinMaxRatio", "--config", config)
    lines = evenrank(*words).stdout.splitlines()
    assert lines[0] == f"Whole batches, {NIGHTS[0]} to {NIGHTS[11]}"
    assert [line.rstrip() for line in lines][-1].startswith(f"{NIGHTS[11]}  0.500  ✕ breach")
    # Of a choice of batches, those in between are no gaps.
    some = evenrank(*words, "--status", "ok").stdout
    assert "█" not in some
    assert "✓ ok" in some


@pytest.mark.parametrize(
    "more", [("--batch", NIGHTS[1]), ("--json",), ("--format", "csv"), ("--out", "x.csv")]
)
def test_trends_are_for_reading(config: Path, more: tuple[str, ...]) -> None:
    result = evenrank("history", "--trend", *more, "--config", config)
    assert result.exit_code == 2
    assert "--from and --to" in result.stderr


def test_trends_before_the_first_run(tmp_path: Path) -> None:
    file = write_settings(tmp_path)
    result = evenrank("history", "--trend", "--config", file)
    assert result.exit_code == 4
    assert not (tmp_path / "store").exists()
