"""Names as code: what stands in logs and paths is text, wherever it gets to."""

import ast
import csv
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pyarrow
import pyarrow.parquet
import pytest
import yaml
from command import evenrank
from places import ROOT
from stores import DAY, LENIENT, ranking, write_csv

from assets.checks import table
from assets.definitions import definitions
from assets.resources import NothingPassed
from pipeline.cli.common import safe
from pipeline.monitoring.alerts import alerts
from pipeline.monitoring.delivery import as_json
from pipeline.settings.audit import Settings
from pipeline.settings.load import load_settings, settings_from
from pipeline.store.sessions import session
from pipeline.terminal.exports import write_csv as export_csv
from pipeline.terminal.exports import write_json_lines
from pipeline.terminal.printing import console, printable

HOSTILE = (
    "'; DROP TABLE fairness_history; --",
    'x"; DROP TABLE batches; --',
    "b' OR '1'='1",
    "<script>alert(1)</script>",
    '" onmouseover="alert(1)',
    "{{7*7}} ${HOME} $(id) `id`",
    "=HYPERLINK(1)",
    "+1",
    "-1",
    "@SUM(A1)",
    "\uff1d1+1",
    "[x](javascript:alert(1))",
    "| a | b |",
    "[bold]loud[/bold]",
    "[/]",
    "ends with \\",
    "../../etc/passwd",
    "\x1b[31mred\x1b]0;title\x07",
    "\x9b31mred",
    "a\rb",
    "left \u202e right",
    "line\u2028line",
    "%s {0} \\n",
    "nul\0nul",
)
"""Names that mean something elsewhere; each is one group and one slice of the log below."""
LIMIT = {"EXP.MinMaxRatio": {"min": 0.99, "slices": ["de[/]vice"]}}


# -- text for people


@pytest.mark.parametrize("name", HOSTILE)
def test_a_terminal_shows_a_name_and_obeys_none(name: str) -> None:
    shown = "".join(each if each.isprintable() else "?" for each in name)
    assert safe(name) == shown
    out = io.StringIO()
    screen = console()
    screen.file = out
    screen.width = 200
    screen.print(f"[bold]{printable(name)}[/] {printable(name)}|")
    # A backslash at the end is doubled, so that it takes no hold of what follows.
    assert out.getvalue().replace("\\\\", "\\") == f"{shown} {shown}|\n"


def test_a_spreadsheet_computes_no_name() -> None:
    file = io.StringIO()
    export_csv([{"name": name, "value": -1.5} for name in (*HOSTILE, "\t=1", "\n=1")], file)
    rows = list(csv.DictReader(io.StringIO(file.getvalue(), newline="")))
    for name, row in zip((*HOSTILE, "\t=1", "\n=1"), rows, strict=True):
        runs = name.startswith(("=", "+", "-", "@", "\t", "\n", "\uff1d"))
        assert row["name"] == ("'" + name if runs else name)
        assert row["value"] == "-1.5"


def test_json_lines_are_lines() -> None:
    file = io.StringIO()
    write_json_lines([{"name": name} for name in HOSTILE], file)
    lines = file.getvalue().split("\n")
    assert [json.loads(line)["name"] for line in lines[:-1]] == list(HOSTILE)


def test_receivers_of_alerts_get_names_whole() -> None:
    for name in HOSTILE:
        assert json.loads(as_json({"alert": "a", "text": name}))["text"] == name


def test_tables_in_dagster_hold_text() -> None:
    found = table([{"name": name} for name in HOSTILE])
    assert isinstance(found, dg.TableMetadataValue)
    assert [record.data["name"] for record in found.records] == list(HOSTILE)


# -- a whole audit of such names


def deliver(folder: Path) -> None:
    rows = [
        row
        for at, name in enumerate(HOSTILE)
        for row in ranking(f"q{at}", [*HOSTILE, "F", "M"], **{"de[/]vice": name})
    ]
    day = folder / "logs" / DAY
    day.mkdir(parents=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), day / "part.parquet")


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> tuple[Settings, list[dg.DagsterEvent]]:
    """One day of such groups and slices, run by Dagster; every slice breaches a threshold."""
    folder = tmp_path_factory.mktemp("names")
    said = {
        "attributes": ["gender"],
        "slices": ["de[/]vice"],
        "metrics": ["EXP"],
        "thresholds": LIMIT,
        "schedule": {"start": DAY, "end": DAY},
        "threads": 1,
        "evidence": LENIENT,
    }
    (folder / "audit.yaml").write_text(yaml.safe_dump(said))
    deliver(folder)
    (folder / "home").mkdir()
    with dg.DagsterInstance.local_temp(str(folder / "home")) as instance:
        result = (
            definitions(folder / "audit.yaml")
            .resolve_job_def("audit")
            .execute_in_process(
                instance=instance,
                partition_key=DAY,
                raise_on_error=False,
                run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            )
        )
        assert result.success
        return load_settings(folder / "audit.yaml"), list(result.all_events)


def _metadata(events: Sequence[dg.DagsterEvent]) -> list[dg.MetadataValue[Any]]:
    found: list[dg.MetadataValue[Any]] = []
    for event in events:
        data = event.event_specific_data
        for holder in (data, getattr(data, "materialization", None)):
            found += getattr(holder, "metadata", {}).values()
    return found


@pytest.mark.slow
def test_no_metadata_is_rendered(audited: tuple[Settings, list[dg.DagsterEvent]]) -> None:
    found = _metadata(audited[1])
    assert any(isinstance(value, dg.TableMetadataValue) for value in found)
    assert not any(isinstance(value, dg.UrlMetadataValue) for value in found)
    # What is rendered is ours: names of settings, escaped, and never a name of the data.
    rendered = [value.md_str for value in found if isinstance(value, dg.MarkdownMetadataValue)]
    assert rendered
    assert not [name for name in HOSTILE for text in rendered if name in text and len(name) > 2]
    tables = [value for value in found if isinstance(value, dg.TableMetadataValue)]
    cells = {str(cell) for each in tables for row in each.records for cell in row.data.values()}
    assert HOSTILE[0] in cells


@pytest.mark.slow
def test_dagster_keeps_no_pickle(audited: tuple[Settings, list[dg.DagsterEvent]]) -> None:
    home = audited[0].folder / "home"
    kept = [path for path in (home / "storage").rglob("*") if path.is_file()]
    assert not [path for path in kept if path.read_bytes().startswith(b"\x80")]
    made = definitions(audited[0].folder / "audit.yaml")
    assert isinstance((made.resources or {})["io_manager"], NothingPassed)
    for asset in made.resolve_all_asset_specs():
        keys = made.resolve_assets_def(asset.key).node_def.output_dict.values()
        assert {output.io_manager_key for output in keys} == {"io_manager"}


@pytest.mark.slow
def test_an_io_manager_that_passes_nothing_on() -> None:
    manager = NothingPassed()
    manager.handle_output(dg.build_output_context(), None)
    with pytest.raises(dg.DagsterInvariantViolationError):
        manager.handle_output(dg.build_output_context(), 1)
    with pytest.raises(dg.DagsterInvariantViolationError):
        manager.load_input(dg.build_input_context())


@pytest.mark.slow
def test_queries_of_alerts_are_one_statement(
    audited: tuple[Settings, list[dg.DagsterEvent]],
) -> None:
    found = alerts(audited[0])
    assert len(found) >= len(HOSTILE)
    copy = audited[0].path("store") / "dashboard.duckdb"
    with duckdb.connect(str(copy), read_only=True) as connection:
        for row in found:
            (statement,) = connection.extract_statements(row["query"])
            assert statement.type.name == "SELECT"
            assert connection.execute(row["query"]).fetchall()


@pytest.mark.slow
def test_commands_show_names_and_obey_none(
    audited: tuple[Settings, list[dg.DagsterEvent]],
) -> None:
    config = audited[0].folder / "audit.yaml"
    for words in (
        ("history", "--slice", "de[/]vice"),
        ("alerts",),
        ("run", "--batch", DAY, "--no-notify"),
        ("history", "--attribute", HOSTILE[0], "--status", "breach"),
        ("score", audited[0].folder / "logs" / DAY / "part.parquet", "--attribute", "gender"),
        ("check", audited[0].folder / "logs" / DAY / "part.parquet", "--attribute", "de[/]vice"),
        ("explain", "--batch", DAY, "--against", DAY, "--score", "EXP.MinMaxRatio"),
    ):
        result = evenrank(*words, "--config", config)
        assert result.exit_code in (0, 2, 4), result.output
        assert all(each.isprintable() or each == "\n" for each in result.output)
    assert {row["gender"] for row in _groups(audited[0])} == {*map(_tidy, HOSTILE), "F", "M"}


def _groups(settings: Settings) -> list[dict[str, Any]]:
    with duckdb.connect(str(settings.path("store") / "history.duckdb"), read_only=True) as found:
        rows = found.execute("SELECT DISTINCT group_value FROM group_history").fetchall()
    return [{"gender": value} for (value,) in rows]


def _tidy(name: str) -> str:
    """Surrounding space and controls are no part of a group; all the rest of a name is."""
    return name.strip("\x1b\x07\x9b")


# -- keys of batches


@pytest.mark.parametrize(
    "key",
    ["../../etc", "a/b", "C:\\x", "%2e%2e", "", "x" * 10_000, "CON.", "b' OR '1'='1", "\udcff",
     ".", "..", "-rf", "a\nb", "*", "~root", "x\u202ey"],
)  # fmt: skip
def test_keys_that_name_no_batch(tmp_path: Path, key: str) -> None:
    (tmp_path / "audit.yaml").write_text("attributes: [gender]\n")
    result = evenrank("run", "--batch", key, "--config", tmp_path / "audit.yaml")
    assert result.exit_code == 2
    assert len(result.output) < 400
    assert not (tmp_path / "store" / "batches").exists()


# -- the session that reads deliveries


@pytest.fixture
def locked(tmp_path: Path) -> Any:
    folder = tmp_path / "logs"
    folder.mkdir()
    (tmp_path / "store").mkdir()
    (tmp_path / "secret.csv").write_text("a\n1\n")
    (folder / "part.csv").write_text("a\n1\n")
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    with duckdb.connect(str(tmp_path / "other.duckdb")) as other:
        other.execute("CREATE TABLE t AS SELECT 1")
    connection = session(settings_from({"attributes": ["a"]}, folder=tmp_path), [folder])
    yield connection, tmp_path
    connection.close()


def test_the_session_reads_what_was_delivered(locked: Any) -> None:
    connection, folder = locked
    read = f"SELECT * FROM read_csv('{folder}/logs/part.csv')"
    assert connection.execute(read).fetchall() == [(1,)]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('{folder}/secret.csv')",
        "SELECT * FROM read_csv('{folder}/logs/../secret.csv')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_blob('/proc/self/environ')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_csv('http://127.0.0.1:1/x.csv')",
        "ATTACH '{folder}/other.duckdb' AS other",
        "COPY (SELECT 1) TO '{folder}/out.csv'",
        "EXPORT DATABASE '{folder}/out'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "LOAD '{folder}/logs/part.csv'",
        "SET enable_external_access = true",
        "SET allowed_directories = ['/']",
        "SET lock_configuration = false",
        "RESET enable_external_access",
        "SET autoinstall_known_extensions = true",
        "PRAGMA temp_directory = '/tmp'",
    ],
)
def test_the_session_reaches_nothing_else(locked: Any, statement: str) -> None:
    connection, folder = locked
    with pytest.raises(duckdb.Error):
        connection.execute(statement.format(folder=folder)).fetchall()
    assert not (folder / "out.csv").exists()
    assert not (folder / "out").exists()


# -- nothing runs


@pytest.mark.slow
def test_nothing_is_unpickled_or_evaluated() -> None:
    modules = {"pickle", "marshal", "shelve", "dill", "joblib", "cloudpickle"}
    calls = {"eval", "exec", "compile", "__import__", "system", "popen", "unsafe_load", "full_load"}
    seen = 0
    for package in ("metrics", "schemas", "pipeline", "assets"):
        for path in sorted((ROOT / package).rglob("*.py")):
            seen += 1
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                named: list[str] = []
                if isinstance(node, ast.Import):
                    named = [each.name.split(".")[0] for each in node.names]
                if isinstance(node, ast.ImportFrom):
                    named = [(node.module or "").split(".")[0]]
                assert not modules & set(named), path
                if isinstance(node, ast.Call):
                    function = node.func
                    name = getattr(function, "id", getattr(function, "attr", ""))
                    # A compiled pattern is no code.
                    owner = getattr(getattr(function, "value", None), "id", "")
                    assert name not in calls or owner == "re", (path, name)
                    shell = [each for each in node.keywords if each.arg == "shell"]
                    assert not shell, path
    assert seen > 100


def test_a_shell_is_not_asked(tmp_path: Path) -> None:
    """Names of files are arguments of nothing; a day may hold any."""
    mark = tmp_path / "ran"
    write_csv(tmp_path / f"$(touch {mark.name}).csv", ranking("a", "FM"))
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        result = evenrank("check", f"$(touch {mark.name}).csv", "--attribute", "gender")
    finally:
        os.chdir(here)
    assert result.exit_code == 0
    assert not mark.exists()
