"""The recipes for other dashboards: the app, the notebook, and how the copy is opened."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import duckdb
import pytest
import readers
import yaml
from pages import HOSTILE, MISSING, UNFAIR
from readers import EXAMPLES, STORES, Copies, ask, published, replaced

every_store = pytest.mark.parametrize("name", STORES)


@pytest.fixture(scope="session")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    return published(tmp_path_factory.getbasetemp())


@pytest.mark.parametrize(("ci", "ending"), [("true", "Failed"), ("", "Skipped")])
def test_without_the_tools_ci_fails_and_others_skip(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ci: str, ending: str
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(readers, "PYTHON", tmp_path / "python")
    with pytest.raises(BaseException, match="make readers") as caught:
        ask("")
    assert type(caught.value).__name__ == ending


# -- Streamlit

_APP = """
import json, os, shutil, sys
import duckdb
from streamlit.testing.v1 import AppTest
app, path, chosen, *copies = sys.argv[1:]
sys.argv = [app]

def told():
    shown = [*page.markdown, *page.error, *page.warning, *page.info, *page.caption]
    return {
        "exceptions": [each.message for each in page.exception],
        "texts": [each.value for each in shown],
        "chosen": {each.key: each.value for each in page.selectbox},
        "batches": page.selectbox(key="batch").options if page.selectbox else [],
    }

page = AppTest.from_file(app, default_timeout=120).run()
found, held = [told()], []
for copy in copies:
    shutil.copy(copy, path + ".new")
    os.replace(path + ".new", path)
    page.run()
    found.append(told())
    if chosen in found[-1]["batches"]:
        page.selectbox(key="batch").set_value(chosen).run()
        found[-1]["then"] = told()
        page.selectbox(key="batch").set_value("").run()
    # Another session of the same process, which does not let go of its copy.
    held.append(duckdb.connect(path, read_only=True))
print(json.dumps(found))
"""
SIGNS = r"!-/:-@\[-`{-~"
Shown = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def shown(copies: Copies, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """What one running app shows: before there is a copy, and of each that takes its place.

    Meanwhile others in its process hold the copies of before.
    """
    folder = tmp_path_factory.mktemp("app")
    path = folder / "it's a copy.duckdb"
    given = (EXAMPLES / "streamlit" / "app.py", path, UNFAIR, *map(copies, STORES))
    found = ask(_APP, *given, EVENRANK_DASHBOARD=path, HOME=folder)
    for each in found:
        each["read"] = [read_as(text) for text in each["texts"]]
    return dict(zip(("nothing", *STORES), found, strict=True))


def read_as(text: str) -> str:
    """Markdown as it is read: without the backslashes before signs."""
    return re.sub(rf"\\([{SIGNS}])", r"\1", text)


@pytest.mark.parametrize("name", ["nothing", *STORES])
def test_the_app_shows_every_store(shown: Shown, name: str) -> None:
    assert shown[name]["exceptions"] == []
    assert shown[name]["texts"]


def test_the_app_says_what_is_bad(shown: Shown) -> None:
    assert f"**□ no data**: {MISSING}" in shown["month"]["read"]
    assert "No batch has scores yet." in shown["none"]["read"]
    assert "**The last night, 2026-01-03, has no scores.**" in shown["none"]["read"]
    assert shown["nothing"]["read"][0].startswith("No copy at ")


def test_the_app_begins_with_the_sentence_of_the_batch(shown: Shown, copies: Copies) -> None:
    with duckdb.connect(str(copies("month")), read_only=True) as copy:
        sign, word, sentence = copy.execute(
            "SELECT sign, word, sentence FROM v_conclusions WHERE batch = ?", [UNFAIR]
        ).fetchall()[0]
    chip, said, *_ = (text.replace("**", "") for text in map(read_as, then(shown)["texts"]))
    assert chip.startswith(f":red[{sign} {word}]")
    assert said == f"## {sentence}"
    # Alerts come next, before any chart.
    texts = list(map(read_as, then(shown)["texts"]))
    assert any(text.startswith("No alert is open") or " since " in text for text in texts)
    assert then(shown)["chosen"] == {
        "batch": UNFAIR,
        "place": "whole batch",
        "score": "gender: EXP.MinMaxRatio",
    }


def then(shown: Shown) -> dict[str, Any]:
    """What the app shows of the unfair day."""
    found: dict[str, Any] = shown["month"]["then"]
    return found


def test_the_app_follows_its_copy(shown: Shown) -> None:
    assert shown["one"]["batches"] == ["newest: 2026-01-01", "2026-01-01"]
    assert shown["month"]["batches"][:2] == ["newest: 2026-01-30", "2026-01-30"]
    assert shown["none"]["batches"] == []
    for name in ("one", "month", "hostile"):
        assert shown[name]["chosen"]["batch"] == ""
    sentences = {
        name: [text for text in each["read"] if text.startswith("## ")]
        for name, each in shown.items()
    }
    assert {name: len(lines) for name, lines in sentences.items()} == {
        "nothing": 0, "month": 1, "one": 1, "none": 0, "hostile": 1,
    }  # fmt: skip


def test_names_are_no_markdown_in_the_app(shown: Shown) -> None:
    assert any(HOSTILE[1] in text for text in shown["hostile"]["read"])
    for text in shown["hostile"]["texts"]:
        assert not re.search(r"(?<!\\)[<>`$|~]", text), text


def test_the_app_keeps_to_itself() -> None:
    settings = tomllib.loads((EXAMPLES / "streamlit/.streamlit/config.toml").read_text("utf-8"))
    assert settings["browser"]["gatherUsageStats"] is False
    assert settings["server"]["address"] == "127.0.0.1"


# -- the notebook

_NOTEBOOK = """
import json, sys
import nbclient, nbformat
book = nbformat.read(sys.argv[1], 4)
nbformat.validate(book)
nbclient.NotebookClient(book, timeout=120).execute()
print(json.dumps({cell.id: [each.get("data", {}) for each in cell.outputs]
                  for cell in book.cells if cell.cell_type == "code"}))
"""
BOOK = EXAMPLES / "notebook.ipynb"


def test_the_notebook_is_kept_without_what_it_printed() -> None:
    cells = [
        cell for cell in json.loads(BOOK.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"
    ]
    assert len(cells) == 5
    for cell in cells:
        assert (cell["outputs"], cell["execution_count"], cell["metadata"]) == ([], None, {})


@every_store
def test_the_notebook_runs_on_every_store(copies: Copies, tmp_path: Path, name: str) -> None:
    found = ask(_NOTEBOOK, BOOK, EVENRANK_DASHBOARD=copies(name), HOME=tmp_path)
    texts = {key: "\n".join(each.get("text/plain", "") for each in found[key]) for key in found}
    (drawn,) = (each["image/svg+xml"] for each in found["since"] if "image/svg+xml" in each)
    assert drawn.startswith("<svg")
    assert not any(
        "<script" in each.get("text/html", "") for told in found.values() for each in told
    )
    if name == "month":
        assert MISSING in texts["bad"]
        assert re.search(rf"{UNFAIR} +4 ", texts["bad"])
        assert "breach" in texts["where"]
        assert re.search(rf"{UNFAIR} .* breach", texts["since"])
        assert re.search(r"\bF +0\.2", texts["why"])


# -- opening the copy, from Python and from Superset


def newest(connection: duckdb.DuckDBPyConnection) -> str:
    ((batch,),) = connection.execute("SELECT newest_batch FROM v_about").fetchall()
    return str(batch)


def test_a_second_connection_of_a_process_meets_the_copy_of_the_first(
    copies: Copies, tmp_path: Path
) -> None:
    """Unless it attaches the copy to a database of its own."""
    path = replaced(tmp_path / "copy.duckdb", copies("one"))
    with duckdb.connect(str(path), read_only=True) as held:
        assert newest(held) == "2026-01-01"
        replaced(path, copies("month"))
        with duckdb.connect(str(path), read_only=True) as second:
            assert newest(second) == "2026-01-01"
        with duckdb.connect() as own:
            own.execute(f"ATTACH '{path}' AS audit (READ_ONLY)")
            own.execute("USE audit")
            assert newest(own) == "2026-01-30"
    with duckdb.connect(str(path), read_only=True) as after:
        assert newest(after) == "2026-01-30"


_POOLS = """
import json, os, shutil, sys
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool, QueuePool
url, path, *copies = sys.argv[1:]
told = {}
for pool in (NullPool, QueuePool):
    engine = create_engine(url, poolclass=pool)
    told[pool.__name__] = []
    for copy in copies:
        shutil.copy(copy, path + ".new")
        os.replace(path + ".new", path)
        with engine.connect() as connection:
            told[pool.__name__].append(
                connection.execute(text("SELECT newest_batch FROM v_about")).scalar())
            try:
                connection.execute(text("CREATE TABLE scratch (i INTEGER)"))
                told["written"] = True
            except Exception as refused:
                told["refused"] = str(refused)
    engine.dispose()
print(json.dumps(told))
"""


def test_the_address_for_superset_is_read_only_and_follows_without_a_pool(
    copies: Copies, tmp_path: Path
) -> None:
    said = yaml.safe_load((EXAMPLES / "superset" / "database.yaml").read_text("utf-8"))
    assert [said[name] for name in ("allow_dml", "allow_ctas", "allow_cvas")] == [False] * 3
    path = tmp_path / "copy.duckdb"
    url = re.sub("/srv/.*duckdb", str(path), said["sqlalchemy_uri"])
    told = ask(_POOLS, url, path, copies("one"), copies("month"))
    assert told["NullPool"] == ["2026-01-01", "2026-01-30"]
    assert told["QueuePool"] == ["2026-01-01", "2026-01-01"]
    assert "read-only" in told["refused"]
    assert "written" not in told
