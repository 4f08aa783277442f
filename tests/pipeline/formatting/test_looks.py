"""Signs of verdicts and states of batches: complete, each of one meaning, the same everywhere."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.text import Text

from pipeline.formatting.looks import (
    ABSENT,
    BAD,
    GRAVEST,
    GREY,
    HELD,
    LOOKS,
    RUN,
    UNSURE,
    VERDICTS,
    look_text,
    signs_for,
    styled,
)
from pipeline.formatting.sparks import ASCII, BLOCKS
from schemas.history import BATCH_STATUSES
from schemas.scores import STATUSES

EXAMPLES = Path(__file__).parents[3] / "examples"
WITHOUT = {look.name for look in ABSENT}
STATES = {look.name for look in RUN} | WITHOUT


def test_every_verdict_and_every_state_of_a_batch_has_a_look() -> None:
    assert {look.name for look in VERDICTS} == set(STATUSES)
    assert {*BATCH_STATUSES, "missing", "unchanged"} == STATES
    assert len(LOOKS) == len(STATUSES) + len(STATES)
    assert set(GRAVEST) <= set(STATUSES)
    assert all(look.text for look in LOOKS.values())


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_no_sign_means_two_things(encoding: str) -> None:
    signs = list(signs_for(encoding).values())
    gap = (BLOCKS if encoding == "utf-8" else ASCII).gap
    assert len({sign.lower() for sign in (*signs, gap, "|")}) == len(LOOKS) + 2
    assert all(len(sign) == cell_len(sign) == 1 for sign in signs), "charts need a column each"


def test_no_sign_means_one_thing_here_and_another_there() -> None:
    symbols = {look.symbol: look.name for look in LOOKS.values()}
    assert all(symbols.get(look.ascii, look.name) == look.name for look in LOOKS.values())
    assert all(look.ascii.isascii() for look in LOOKS.values())


def test_only_what_asks_for_attention_has_a_colour() -> None:
    assert LOOKS["breach"].colour == BAD
    assert [look.name for look in LOOKS.values() if look.colour == BAD] == ["breach"]
    assert {look.name for look in LOOKS.values() if look.colour == HELD} == {"gated", "refused"}
    assert all(LOOKS[name].colour == GREY for name in ("ok", "not_judged", "done", "unchanged"))
    assert {look.colour for look in LOOKS.values()} == {BAD, UNSURE, HELD, GREY}
    assert all("green" not in look.style for look in LOOKS.values())


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "gbk", "no-such-encoding"])
def test_where_one_symbol_cannot_be_printed_all_are_ascii(encoding: str) -> None:
    assert signs_for(encoding) == {name: look.ascii for name, look in LOOKS.items()}


def test_texts_of_looks() -> None:
    signs = signs_for("utf-8")
    assert [look_text(name, signs) for name in ("breach", "no_data")] == ["✕ breach", "□ no data"]
    assert styled("ok", "text") == "text"
    for name in LOOKS:
        text = look_text(name, signs)
        assert Text.from_markup(styled(name, text)).plain == text


# -- the recipes stand alone: their own tables say the same


def test_the_app_for_streamlit_has_the_same_looks() -> None:
    told: dict[str, Any] = {}
    for node in ast.parse((EXAMPLES / "streamlit" / "app.py").read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("LOOKS", "STATES"):
            told[ast.unparse(node.targets[0])] = ast.literal_eval(node.value)
    assert told["LOOKS"] == {look.word: (look.symbol, look.colour) for look in VERDICTS}
    assert told["STATES"] == {look.word: look.symbol for look in ABSENT}


def test_the_dashboard_for_grafana_has_the_same_looks() -> None:
    found: dict[str, set[str]] = {}

    def look_for(value: Any) -> None:
        if isinstance(value, dict):
            for name, each in value.items():
                if name in LOOKS and isinstance(each, dict):
                    found.setdefault(name, set()).add(each["text"])
                    assert each["color"] == LOOKS[name].colour
                look_for(each)
        elif isinstance(value, list):
            for each in value:
                look_for(each)

    look_for(json.loads((EXAMPLES / "grafana" / "dashboard.json").read_text("utf-8")))
    assert set(found) == {*STATUSES, *BATCH_STATUSES, "missing"}
    assert found == {name: {look_text(name, signs_for("utf-8"))} for name in found}


def test_what_is_written_about_the_page_names_its_signs() -> None:
    text = " ".join((EXAMPLES.parent / "docs" / "report.md").read_text("utf-8").split())
    for look in (*VERDICTS, *ABSENT):
        assert re.search(rf"{re.escape(look.symbol)} {look.word}\b", text), look.name
