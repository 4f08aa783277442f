"""What stands in a terminal beside scores: the judged score, who is not judged, how sure it is."""

import io
from pathlib import Path

import pytest
from histories import NIGHTS, put, score, small_audit
from rich.console import Console
from rich.text import Text

from pipeline.history.queries import breaches, labelled, verdicts
from pipeline.runs.outcome import Outcome
from pipeline.settings.audit import Settings
from pipeline.terminal.closing import beside_breaches, closing, unjudged_lines, untold_lines
from pipeline.terminal.printing import (
    BREACH_COLUMNS,
    SCORE_COLUMNS,
    WIDTH,
    print_scores,
    score_details,
)
from pipeline.terminal.run_summary import worst

THIN = {"worst_group": "X", "thin_groups": '["X"]'}
JUDGED = {
    **{"judged_value": 0.51, "judged_lower": 0.45, "judged_upper": 0.55},
    **{"judged_worst_group": "F", "judged_groups": '["F", "M"]'},
}


def screen(rows: list[dict[str, object]], columns: tuple[str, ...]) -> str:
    written = io.StringIO()
    print_scores(Console(file=written, width=WIDTH), rows, columns=columns)
    return written.getvalue()


def thin_breach(folder: Path) -> Settings:
    settings = small_audit(folder)
    slices = [
        score(0.9, slice="device", slice_value=name, rows=500) for name in ("mobile", "desktop")
    ]
    row = score(0.1, **THIN, **JUDGED, expected=0.93, p_noise=0.002)
    put(settings, NIGHTS[0], [row, *slices])
    return settings


def test_a_verdict_stands_beside_the_score_that_it_is_about(tmp_path: Path) -> None:
    rows = breaches(thin_breach(tmp_path), NIGHTS[:1])
    judged = screen(rows, BREACH_COLUMNS)
    assert all(said in judged for said in ("0.510", "0.930", " F"))
    assert "0.100" not in judged
    # Without verdicts, a score is that of all groups.
    assert "0.100" in screen(rows, SCORE_COLUMNS)


def test_breaches_name_who_is_not_judged_and_slices_that_disagree(tmp_path: Path) -> None:
    settings = thin_breach(tmp_path)
    lines = beside_breaches(settings, breaches(settings, NIGHTS[:1]))
    assert lines == [
        "X is not judged: too little evidence.",
        f"EXP.MinMaxRatio of gender of {NIGHTS[0]}: the whole batch breaches, and no slice of "
        "device by itself (2 ok): the groups are in different ones.",
    ]


def test_one_score_is_told_with_what_it_rests_on(tmp_path: Path) -> None:
    settings = thin_breach(tmp_path)
    (row,) = breaches(settings, NIGHTS[:1])
    assert score_details(row) == [
        "Chance alone gives 0.930, and is as unfair with p = 0.002.",
        "X is not judged: too little evidence.",
    ]
    assert score_details(labelled(settings, "status = 'ok'")[0]) == []


def test_composition_is_told_of_whole_batches(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    part = {"slice": "device", "slice_value": "mobile"}
    put(settings, NIGHTS[0], [score(0.5, status="composition", **extra) for extra in ({}, part)])
    judged = verdicts(settings, NIGHTS[:1])
    assert judged == {"composition": 1}
    (line,) = untold_lines(judged)
    assert "1 score of whole batches" in line
    assert "not for their order" in line


def window(at: int) -> dict[str, str]:
    text = f"EXP.MinMaxRatio of gender, the 7 days up to 2026-01-0{at}: 0.70.\nMore."
    return {"kind": "window", "text": text}


def test_where_no_batch_can_be_judged_the_windows_are_named() -> None:
    nothing = ["No score with a threshold could be judged."]
    assert unjudged_lines([], "utf-8") == nothing
    assert unjudged_lines([{"kind": "night", "text": "no scores"}], "utf-8") == nothing
    head, *lines = unjudged_lines([window(at) for at in range(1, 7)], "utf-8")
    assert head == "No score of a batch alone could be judged. Over several days together:"
    first = Text.from_markup(lines[0]).plain
    assert first == "  ✕ EXP.MinMaxRatio of gender, the 7 days up to 2026-01-01: 0.70."
    assert lines[-1] == "  and 2 more; `evenrank alerts` lists them"


def test_without_thresholds_the_end_names_what_proposes_some(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = small_audit(tmp_path, thresholds={})
    put(settings, NIGHTS[0], [score(0.9, status="not_judged")])
    closing(settings, [Outcome(NIGHTS[0], "done")], "my/audit.yaml")
    text = capsys.readouterr().out
    assert "`evenrank suggest` proposes some" in " ".join(text.split())
    assert ".venv/bin/evenrank suggest --config my/audit.yaml" in text
    closing(small_audit(tmp_path), [Outcome(NIGHTS[0], "done")], "my/audit.yaml")
    assert "suggest" not in capsys.readouterr().out


def test_the_worst_of_a_summary_is_judged(tmp_path: Path) -> None:
    settings = thin_breach(tmp_path)
    (first,) = worst(breaches(settings, NIGHTS[:1]), settings)
    assert (first["value"], first["worst_group"]) == (0.51, "F")
