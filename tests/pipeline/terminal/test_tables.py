"""Tables fit the width there is, and never break a label or a number."""

import io

import pytest
from rich.console import Console
from rich.text import Text

from pipeline.terminal.printing import HISTORY_COLUMNS, WIDTH, console, print_scores
from pipeline.terminal.tables import fitted, fold, print_table, stack

LABELS = ("EXP.MinMaxRatio", "ERBE(decay=0.75).MaxMinRatio", "Kendall(reference=relevance)")


def row(label: str, **more: object) -> dict[str, object]:
    metric, _, aggregation = label.partition(".M")
    return {
        "batch": "2026-01-19",
        "slice": "device",
        "slice_value": "desktop",
        "attribute": "gender*region",
        "metric": metric,
        "aggregation": f"M{aggregation}" if aggregation else None,
        "value": 0.00313,
        "lower": 0.0028,
        "upper": 0.00348,
        "status": "insufficient",
        "status_reason": "few_effective_queries: F*west",
        "reason": None,
        "worst_group": "F*west",
        **more,
    }


def printed(width: int, rows: list[dict[str, object]]) -> list[str]:
    written = io.StringIO()
    print_scores(Console(file=written, width=width), rows, columns=HISTORY_COLUMNS)
    return [line.rstrip() for line in written.getvalue().splitlines()]


@pytest.mark.parametrize("width", [40, 60, 72, 80, 100, 120, 160, 250])
def test_labels_numbers_and_verdicts_are_whole_at_any_width(width: int) -> None:
    rows = [row(label) for label in LABELS]
    lines = printed(width, [*rows, row(LABELS[0], status="ok", status_reason=None)])
    text = "\n".join(lines)
    for whole in (*LABELS, "0.00313", "0.00280 to 0.00348", "? insufficient"):
        assert whole in text, whole
    if width >= 72:
        assert max(map(len, lines)) <= width


def test_a_wide_terminal_has_a_line_for_each_score_and_a_narrow_one_stacks() -> None:
    rows = [row(label) for label in LABELS]
    assert len(printed(200, rows)) == 2 + len(LABELS)
    assert len(printed(80, rows)) > 2 + len(LABELS)


def test_a_label_that_is_longer_than_the_terminal_makes_a_longer_line() -> None:
    label = "AWRF(p=0.1,reference=target)" * 4
    assert any(label in line for line in printed(80, [row(label)]))


def test_no_step_is_taken_where_all_fits() -> None:
    cells = {"a": [Text("one two")], "b": [Text("three")]}
    steps = [fold("a", "(?<= )"), stack("b", below="a")]
    assert fitted(cells, 14, steps) is cells
    (cell,) = fitted(cells, 11, steps)["a"]
    assert cell.plain == "one \ntwo"
    assert [cell.plain for cell in fitted(cells, 5, steps)["a"]] == ["one \ntwo\nthree"]


def test_stacked_cells_keep_their_styles() -> None:
    cells = {"a": [Text("x", "red")], "b": [Text("y", "bold")]}
    (cell,) = fitted(cells, 0, [stack("b", below="a")])["a"]
    assert [(span.start, span.end, span.style) for span in cell.spans] == [
        (0, 1, "red"),
        (2, 3, "bold"),
    ]


def test_names_of_any_length_are_broken_before_a_line_gets_too_long() -> None:
    written = io.StringIO()
    out = Console(file=written, width=30)
    print_table(out, {"name": [Text("n" * 90)], "value": [Text("0.720")]}, loose=("name",))
    lines = [line.rstrip() for line in written.getvalue().splitlines()]
    assert max(map(len, lines)) <= 30
    assert "".join(lines[1:]).count("n") == 90
    assert out.width == 30


def test_names_are_chopped_where_they_go_below_a_label() -> None:
    rows = [row(label, slice_value="n" * 300) for label in LABELS]
    lines = printed(72, [*rows, row(LABELS[0])])
    assert max(map(len, lines)) <= 72
    assert "".join(lines).count("n" * 24) >= len(LABELS) * (300 // 24 - 1)


def test_what_is_no_terminal_has_80_columns_or_as_many_as_it_asks_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert console().width == WIDTH
    monkeypatch.setenv("COLUMNS", "132")
    assert console().width == 132
