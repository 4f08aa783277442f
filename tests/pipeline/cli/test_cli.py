"""The command line: what each command does, its exit codes, and what scripts can read of it."""

import csv
import io
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from command import without_page
from locks import held
from stores import DAY, audit, deliver, random_lists, ranking, write_csv, write_settings

from pipeline.cli.common import explained
from pipeline.cli.main import SECTIONS, main
from pipeline.store.paths import store_of

DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")
SETTINGS = """\
attributes: [gender]
slices: [device]
metrics: [EXP, 'AWRF(p=0.2)', NDKL]
thresholds: {EXP.MinMaxRatio: {min: 1.0, slices: [all]}}
"""


def evenrank(*words: str | Path, config: Path | None = None) -> Result:
    said = [str(word) for word in words]
    if config:
        said += ["--config", str(config)]
    result = CliRunner().invoke(main, said)
    fault = result.exception
    # Anything but an exit is a fault of the program that a user would meet as a traceback.
    assert fault is None or isinstance(fault, SystemExit), repr(fault)
    return result


def last_line(result: Result) -> Any:
    return json.loads(result.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Settings of an audit of three days, already run."""
    folder = tmp_path_factory.mktemp("month")
    config = write_settings(folder, SETTINGS)
    for seed, day in enumerate(DAYS):
        deliver(folder, random_lists(seed), batch=day)
    with without_page():
        result = evenrank("backfill", "--from", DAYS[0], "--to", DAYS[-1], "-q", config=config)
    assert result.exit_code == 0
    return config


@pytest.fixture
def own(month: Path, tmp_path: Path) -> Path:
    """A copy of the audit for a test to change."""
    shutil.copytree(month.parent, tmp_path / "own")
    return tmp_path / "own" / "audit.yaml"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "log.csv", random_lists(9))


# -- help


def test_help_names_every_command_and_exit_code() -> None:
    text = evenrank("--help").stdout
    for name in (*main.commands, "75"):
        assert name in text
    commands = {"run", "backfill", "score", "check", "history", "metrics", "generate", "publish"}
    assert commands <= set(main.commands)


@pytest.mark.parametrize("name", sorted(main.commands))
def test_every_command_has_help(name: str) -> None:
    result = evenrank(name, "--help")
    assert result.exit_code == 0
    assert "Usage:" in result.stdout


def every_command() -> list[tuple[str, ...]]:
    """Every command with the words before it, those below ``alerts`` too."""
    below = ((name, each) for name, each in main.commands.items() if isinstance(each, click.Group))
    return [
        *((name,) for name in main.commands),
        *((name, each) for name, group in below for each in group.commands),
    ]


@pytest.mark.parametrize("words", every_command(), ids=" ".join)
def test_help_ends_with_examples_that_can_be_typed(words: tuple[str, ...]) -> None:
    _, _, said = evenrank(*words, "--help").stdout.partition("\n  Example")
    lines = said.partition(":\n")[2].replace("\\\n", "").splitlines()
    assert 1 <= len(lines) <= 3
    for line in lines:
        program, *typed = shlex.split(line)
        assert (program, *typed[: len(words)]) == ("evenrank", *words) or words == ("alerts",)
        command: click.Command = main
        while isinstance(command, click.Group) and typed and typed[0] in command.commands:
            command, typed = command.commands[typed[0]], typed[1:]
        # Words that are no option, or no value of one, are refused.
        command.make_context("evenrank", typed)


def test_commands_stand_in_groups_and_are_told_whole() -> None:
    text = " ".join(evenrank("--help").stdout.split())
    titles = [f"{title}: " for title in SECTIONS]
    assert [text.index(title) for title in titles] == sorted(map(text.index, titles))
    assert {*main.commands.values()} == {each for some in SECTIONS.values() for each in some}
    assert "..." not in text.partition("Run: ")[2]


def test_nobody_is_told_that_a_reader_has_enough() -> None:
    assert explained(BrokenPipeError(32, "Broken pipe")) is None


@pytest.mark.slow
def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom pipeline.cli.main import main\n"
        "for words in (['--help'], *([name, '--help'] for name in main.commands)):\n"
        "    try: main(words)\n    except SystemExit: pass\n"
        "print(sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"dagster", "duckdb", "pandas", "pandera", "pyarrow", "numpy", "pydantic", "rich"}
    assert heavy & set(eval(found.stderr)) == set()


@pytest.mark.slow
def test_help_answers_at_once() -> None:
    def seconds() -> float:
        start = time.perf_counter()
        command = [sys.executable, "-m", "pipeline.cli", "--help"]
        subprocess.run(command, capture_output=True, check=True)
        return time.perf_counter() - start

    assert min(seconds() for _ in range(3)) < 1.0


@pytest.mark.slow
def test_assessing_a_month_imports_no_statistics_of_scipy() -> None:
    """All of scipy takes as long as all else that a night needs."""
    code = (
        "import sys\nimport numpy as np\nimport pipeline.runs.batches\n"
        "from pipeline.trends import change_points\n"
        "assert change_points(np.repeat([1.0, 2.0], 20) + np.arange(40) % 2 / 100)\n"
        "print(sorted(name for name in sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"ruptures", "scipy.stats", "scipy.signal", "scipy.spatial", "scipy.optimize"}
    assert heavy & set(eval(found.stdout)) == set()


@pytest.mark.slow
def test_no_command_imports_dagster(own: Path, tmp_path: Path) -> None:
    log = write_csv(tmp_path / "log.csv", random_lists(9))
    commands = [
        ["run", "--batch", DAYS[0], "-c", str(own)],
        ["backfill", "--from", DAYS[0], "--to", DAYS[1], "-c", str(own)],
        ["history", "--slice", "all", "-c", str(own)],
        ["publish", "-c", str(own)],
        ["score", str(log), "--metric", "EXP"],
        ["check", str(log)],
        ["metrics"],
        ["generate", "--out", str(tmp_path), "--start", DAY, "--days", "1", "--lists", "2"],
    ]
    code = (
        f"import sys\nfrom pipeline.cli.main import main\nfor words in {commands!r}:\n"
        "    try: main(words)\n"
        "    except SystemExit as end: assert end.code == 0, (words, end.code)\n"
        "print([name for name in sys.modules if name.startswith('dagster')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "[]"


# -- run


@pytest.mark.slow
def test_run_and_run_again(tmp_path: Path) -> None:
    config = write_settings(tmp_path, SETTINGS)
    deliver(tmp_path, random_lists(1))
    first = evenrank("run", "--batch", DAY, "--json", config=config)
    assert first.exit_code == 0
    document = last_line(first)
    assert (document["batch"], document["status"], document["revision"]) == (DAY, "done", 1)
    assert document["lists"] == 12
    assert document["breaches"] == 1
    assert "12 lists" in first.stdout
    assert "EXP.MinMaxRatio" in first.stdout
    again = evenrank("run", "--batch", DAY, "--json", config=config)
    assert again.exit_code == 0
    assert "unchanged" in again.stdout
    document = last_line(again)
    assert (document["status"], document["revision"]) == ("unchanged", 1)
    assert document["message"] == "same input, settings and code"


@pytest.mark.slow
def test_broken_rows_are_shown_where_they_stand(tmp_path: Path) -> None:
    config = write_settings(
        tmp_path, "attributes: [gender]\nmetrics: [EXP]\nrejects: {max_rejected_share: 0.9}\n"
    )
    bad = [
        *ranking("high", "FM", relevance=[1.2, 1]),
        *ranking("nan", "FM", relevance=["NaN", 1]),
        *ranking("gap", "FM", rank=[1, 3]),
        *ranking("twice", "FM", item_id="x"),
    ]
    deliver(tmp_path, [*bad, *ranking("good", "FM")])
    result = evenrank("run", "--batch", DAY, "--json", config=config)
    assert result.exit_code == 0
    for words in (
        'line 2 of part.csv: relevance "1.2" is outside [0, 1]',
        'line 4 of part.csv: relevance "NaN" is outside [0, 1]',
        'line 7 of part.csv: rank "3" follows a gap in ranks',
        "line 8 of part.csv: item_id is in the list twice",
    ):
        assert words in " ".join(result.stdout.split())
    document = last_line(result)
    assert document["rules"] == {"relevance_range": 2, "rank_gap": 1, "duplicate_item": 2}
    assert (document["rows_read"], document["rows_rejected"]) == (10, 8)


@pytest.mark.slow
def test_force_runs_again(own: Path) -> None:
    result = evenrank("run", "--batch", DAYS[0], "--force", "--json", config=own)
    assert (last_line(result)["status"], last_line(result)["revision"]) == ("done", 2)


@pytest.mark.slow
def test_from_counts_needs_no_logs(own: Path) -> None:
    shutil.rmtree(own.parent / "logs")
    own.write_text(own.read_text().replace("p=0.2", "p=0.3"))
    result = evenrank("run", "--batch", DAYS[0], "--from-counts", "--json", config=own)
    assert (result.exit_code, last_line(result)["revision"]) == (0, 2)
    text = evenrank("history", "--batch", DAYS[0], "--format", "csv", config=own).stdout
    assert "AWRF(p=0.3)" in text
    assert "AWRF(p=0.2)" not in text


def test_from_counts_without_counts(tmp_path: Path) -> None:
    config = write_settings(tmp_path)
    result = evenrank("run", "--batch", DAY, "--from-counts", config=config)
    assert result.exit_code == 4
    assert "nothing is stored yet" in result.stderr


def test_settings_that_cannot_be_used_end_with_2(tmp_path: Path) -> None:
    config = write_settings(tmp_path, "attributes: [rank]\nzzz: 1\n")
    result = evenrank("run", "--batch", DAY, "--json", config=config)
    assert result.exit_code == 2
    assert "2 problems" in result.stderr
    assert last_line(result)["exit_code"] == 2
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("batch", ["../x", "", "x" * 10_000, "a/b"])
def test_names_that_are_no_batch_end_with_2(own: Path, batch: str) -> None:
    result = evenrank("run", "--batch", batch, config=own)
    assert result.exit_code == 2
    assert "cannot name a batch" in result.stderr
    assert len(result.stderr) < 400


def test_usage_ends_with_2(own: Path) -> None:
    for words in (["run"], ["walk"], ["backfill", "--from", "yesterday", "--to", DAY], ["score"]):
        assert evenrank(*words).exit_code == 2
    result = evenrank("backfill", "--from", DAYS[1], "--to", DAYS[0], config=own)
    assert result.exit_code == 2
    assert "lies before" in result.stderr


@pytest.mark.slow
def test_refused_data_ends_with_3(own: Path) -> None:
    rows = [*ranking("a", "FM", device="m"), *ranking("b", "FM", device="m", relevance=7)]
    deliver(own.parent, rows, batch=DAYS[0])
    result = evenrank("run", "--batch", DAYS[0], "--json", config=own)
    assert result.exit_code == 3
    for words in ("2 of 4 rows refused", "line 4 of part.csv", "keeps its last good result"):
        assert words in result.stderr
    document = last_line(result)
    assert (document["status"], document["revision"]) == ("refused", 1)
    assert document["rules"] == {"relevance_range": 2}


@pytest.mark.slow
def test_no_data_ends_with_4(own: Path) -> None:
    result = evenrank("run", "--batch", "2026-02-01", "--json", config=own)
    assert result.exit_code == 4
    assert "2026-02-01: no files (looked for logs/2026-02-01/*)" in result.stderr
    assert last_line(result)["status"] == "no_data"


@pytest.mark.slow
def test_a_breach_ends_with_5_only_where_asked(own: Path) -> None:
    assert evenrank("run", "--batch", DAYS[0], config=own).exit_code == 0
    result = evenrank("run", "--batch", DAYS[0], "--fail-on", "breach", config=own)
    assert result.exit_code == 5
    command = ("backfill", "--from", DAYS[0], "--to", DAYS[1], "--fail-on", "breach", "-q")
    assert evenrank(*command, config=own).exit_code == 5
    own.write_text(own.read_text().replace("min: 1.0", "min: 0.0"))
    assert evenrank(*command, config=own).exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("run", "--batch", DAYS[0]),
        ("run", "--batch", DAYS[0], "--force"),
        ("backfill", "--from", DAYS[0], "--to", DAYS[1]),
        ("history", "--batch", DAYS[0]),
        ("publish",),
    ],
    ids=" ".join,
)
def test_a_store_in_use_ends_with_75(own: Path, words: tuple[str, ...]) -> None:
    history = store_of(audit(own.parent)).history
    before = history.read_bytes()
    with held(history) as holder:
        result = evenrank(*words, config=own)
        assert result.exit_code == 75
        said = result.stderr + result.stdout
        assert "history.duckdb" in said
        assert f"process {holder.pid}" in " ".join(said.split())
        assert "busy_seconds" in said
    assert history.read_bytes() == before
    staged = store_of(audit(own.parent)).root / "staged"
    assert list(staged.iterdir()) == []


@pytest.mark.slow
def test_a_store_in_use_is_one_json_document(own: Path) -> None:
    with held(store_of(audit(own.parent)).history):
        result = evenrank("run", "--batch", DAYS[0], "--json", config=own)
    assert last_line(result)["exit_code"] == 75


@pytest.mark.slow
def test_a_run_waits_for_the_store(own: Path) -> None:
    own.write_text(own.read_text().replace("busy_seconds: 0", "busy_seconds: 60"))
    with held(store_of(audit(own.parent)).history) as holder:
        command = [sys.executable, "-m", "pipeline.cli", "run", "--batch", DAYS[0], "--force"]
        child = subprocess.Popen(
            [*command, "-c", str(own)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        time.sleep(2.0)
        assert child.poll() is None
        assert holder.stdin
        holder.stdin.close()
        out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    assert DAYS[0] in out


def test_a_damaged_history_ends_with_1_and_is_left_as_it_is(own: Path) -> None:
    history = store_of(audit(own.parent)).history
    history.write_bytes(b"no database" * 1000)
    result = evenrank("run", "--batch", DAYS[0], "--json", config=own)
    assert result.exit_code == 1
    assert "history.duckdb: cannot be opened" in result.stderr
    assert last_line(result)["exit_code"] == 1
    assert history.read_bytes() == b"no database" * 1000


# -- backfill


@pytest.mark.slow
def test_backfill_skips_what_is_finished(own: Path) -> None:
    (own.parent / "logs" / DAYS[1] / "part.csv").unlink()
    deliver(own.parent, random_lists(77), batch=DAYS[2])
    result = evenrank("backfill", "--from", DAYS[0], "--to", "2026-01-04", "--json", config=own)
    assert result.exit_code == 0
    found = {each["batch"]: each["status"] for each in last_line(result)["batches"]}
    assert found == {
        DAYS[0]: "unchanged",
        DAYS[1]: "no_data",
        DAYS[2]: "done",
        "2026-01-04": "no_data",
    }
    assert "1 unchanged" in result.stdout


@pytest.mark.slow
def test_breaches_of_batches_add_up(own: Path) -> None:
    result = evenrank("backfill", "--from", DAYS[0], "--to", DAYS[-1], "--json", config=own)
    document = last_line(result)
    assert document["breaches"] == sum(each["breaches"] for each in document["batches"]) > 0


@pytest.mark.slow
def test_a_run_and_a_backfill_show_how_whole_batches_went(own: Path) -> None:
    head = f"Whole batches, {DAYS[0]} to "
    run = evenrank("run", "--batch", DAYS[1], config=own)
    assert head + DAYS[1] in run.stdout
    filled = evenrank("backfill", "--from", DAYS[0], "--to", "2026-01-04", config=own)
    assert head + "2026-01-04" in filled.stdout
    assert "no value" in filled.stdout, "the day without a log is a gap"
    for text in (run.stdout, filled.stdout):
        assert max(map(len, text.splitlines())) <= 80
        (line,) = (line for line in text.splitlines() if line.startswith("gender  EXP.MinMaxRatio"))
        assert line.rstrip().endswith("✕ breach")


@pytest.mark.slow
def test_backfill_of_days_without_any_data_ends_with_4(own: Path) -> None:
    result = evenrank("backfill", "--from", "2026-03-01", "--to", "2026-03-03", config=own)
    assert result.exit_code == 4


@pytest.mark.slow
def test_backfill_with_a_refused_day_ends_with_3(own: Path) -> None:
    deliver(own.parent, ranking("a", "FM", device="m", relevance=7), batch=DAYS[1])
    result = evenrank("backfill", "--from", DAYS[0], "--to", DAYS[2], config=own)
    assert result.exit_code == 3
    for words in (f"{DAYS[0]} unchanged", f"{DAYS[1]} refused", f"{DAYS[2]} unchanged"):
        assert words in " ".join(result.stdout.split())


# -- quiet


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("run", "--batch", DAYS[0]),
        ("run", "--batch", DAYS[0], "--force"),
        ("backfill", "--from", DAYS[0], "--to", DAYS[1]),
        ("publish",),
    ],
    ids=" ".join,
)
def test_quiet_says_nothing_on_success(own: Path, words: tuple[str, ...]) -> None:
    result = evenrank(*words, "--quiet", config=own)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_quiet_says_nothing_about_files(log: Path, tmp_path: Path) -> None:
    generate = ("generate", "--out", tmp_path / "g", "--start", DAY, "--days", "1", "--lists", "3")
    for words in (("score", log, "--metric", "EXP"), ("check", log), generate):
        result = evenrank(*words, "--quiet")
        assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.slow
def test_quiet_says_what_went_wrong(own: Path) -> None:
    result = evenrank("run", "--batch", "2026-02-01", "--quiet", config=own)
    assert (result.exit_code, result.stdout) == (4, "")
    assert "no files" in result.stderr


# -- history


EVERYTHING = ("--from", "0")
"""Without any filter, the history shows the newest batch only."""


def exported(month: Path, *words: str) -> list[dict[str, Any]]:
    result = evenrank("history", "--format", "jsonl", *words, config=month)
    assert result.exit_code == 0
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize(
    ("words", "column", "expected"),
    [
        (("--batch", DAYS[0]), "batch", {DAYS[0]}),
        (("--batch", DAYS[0], "--batch", DAYS[2]), "batch", {DAYS[0], DAYS[2]}),
        (("--from", DAYS[1]), "batch", {DAYS[1], DAYS[2]}),
        (("--to", DAYS[1]), "batch", {DAYS[0], DAYS[1]}),
        (("--from", DAYS[1], "--to", DAYS[1]), "batch", {DAYS[1]}),
        (("--slice", "all"), "slice_value", {"all"}),
        (("--slice", "device"), "slice_value", {"mobile", "desktop"}),
        (("--attribute", "gender"), "metric", {"EXP", "AWRF(p=0.2)", "NDKL"}),
        (("--metric", "EXP"), "metric", {"EXP"}),
        (("--metric", "AWRF(p=0.20)"), "metric", {"AWRF(p=0.2)"}),
        (("--metric", "EXP.MaxMinDiff"), "label", {"EXP.MaxMinDiff"}),
        (("--status", "breach"), "label", {"EXP.MinMaxRatio"}),
        (("--status", "breach"), "slice", {"all"}),
    ],
)
def test_history_is_filtered(
    month: Path, words: tuple[str, ...], column: str, expected: set[str]
) -> None:
    rows = exported(month, *words)
    assert {row[column] for row in rows} == expected
    everything = exported(month, *EVERYTHING)
    option, value = words[0].removeprefix("--"), words[1]
    if len(words) == 2 and option in ("batch", "slice", "attribute", "status"):
        assert rows == [row for row in everything if row[option] == value]


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("--batch", "2025-01-01"), 4, "no such scores"),
        (("--slice", "nothing"), 4, "no such scores"),
        (("--metric", "EXPU"), 4, "no such scores"),
        (("--status", "bad"), 2, "not_judged"),
        (("--metric", "EXPP"), 2, "did you mean EXP?"),
        (("--format", "xml"), 2, "csv"),
        (("--slice", "' OR '1'='1"), 4, "no such scores"),
    ],
)
def test_history_that_is_not_there(
    month: Path, words: tuple[str, ...], code: int, text: str
) -> None:
    result = evenrank("history", *words, config=month)
    assert (result.exit_code, result.stdout) == (code, "")
    assert text in result.stderr


def test_history_before_the_first_run(tmp_path: Path) -> None:
    config = write_settings(tmp_path)
    assert evenrank("history", config=config).exit_code == 4
    assert evenrank("publish", config=config).exit_code == 4
    assert not (tmp_path / "store").exists()


def test_history_table_shows_label_value_and_status(month: Path) -> None:
    words = ("--batch", DAYS[0], "--slice", "all", "--metric", "EXP.MinMaxRatio")
    (row,) = exported(month, *words)
    text = " ".join(evenrank("history", *words, config=month).stdout.split())
    for part in (DAYS[0], "EXP.MinMaxRatio", f"{row['value']:.3g}", "breach", row["worst_group"]):
        assert part in text


def test_history_exports_agree(month: Path, tmp_path: Path) -> None:
    rows = exported(month, *EVERYTHING)
    text = evenrank("history", "--format", "csv", *EVERYTHING, config=month).stdout
    table = list(csv.DictReader(io.StringIO(text)))
    assert len(table) == len(rows) > 50
    for cells, row in zip(table, rows, strict=True):
        assert list(cells) == list(row)
        assert cells["value"] == ("" if row["value"] is None else repr(row["value"]))
        assert cells["computed_at"].endswith("Z")
    for form, expected in (("csv", text), ("jsonl", None)):
        path = tmp_path / f"out.{form}"
        result = evenrank("history", "--format", form, "--out", path, *EVERYTHING, config=month)
        assert (result.exit_code, result.stdout) == (0, "")
        written = path.read_text(encoding="utf-8")
        assert written == expected or [json.loads(line) for line in written.splitlines()] == rows


def test_history_without_a_filter_is_the_newest_batch(month: Path) -> None:
    assert exported(month) == exported(month, "--batch", DAYS[-1], "--slice", "all")


def test_history_json_ends_with_a_document(month: Path) -> None:
    result = evenrank("history", "--json", *EVERYTHING, config=month)
    assert last_line(result) == {"scores": exported(month, *EVERYTHING)}


def test_history_to_a_folder_that_does_not_exist(month: Path, tmp_path: Path) -> None:
    result = evenrank("history", "--out", tmp_path / "no" / "x.csv", config=month)
    assert result.exit_code == 2
    assert "x.csv" in result.stderr


@pytest.mark.slow
def test_cells_that_a_spreadsheet_would_run_are_quoted(tmp_path: Path) -> None:
    names = ["=HYPERLINK(1)", "+1", "-1", "@SUM(A1)", "plain", "a=b"]
    config = write_settings(tmp_path, "attributes: [gender]\nslices: [device]\nmetrics: [EXP]\n")
    deliver(tmp_path, [row for n in names for row in ranking(n, [n, "M"], device=n)])
    assert evenrank("run", "--batch", DAY, "-q", config=config).exit_code == 0
    text = evenrank("history", "--format", "csv", *EVERYTHING, config=config).stdout
    table = list(csv.DictReader(io.StringIO(text)))
    quoted = {f"'{name}" for name in names[:4]} | set(names[4:])
    assert {row["slice_value"] for row in table} == quoted | {"all"}
    assert "'+1" in {row["best_group"] for row in table}
    for row in table:
        assert not any(cell.startswith(("=", "+", "-", "@")) for cell in row.values())
        assert not row["value"] or float(row["value"]) >= 0
    lines = exported(config, *EVERYTHING)
    assert {row["slice_value"] for row in lines} == {*names, "all"}


@pytest.mark.slow
def test_values_cannot_steer_the_terminal(tmp_path: Path) -> None:
    red, mark = "x\x1b[31mred\x1b[0m", "[bold]loud[/bold]"
    config = write_settings(tmp_path, "attributes: [gender]\nslices: [device]\nmetrics: [EXP]\n")
    deliver(tmp_path, ranking("a", [red, mark], device=red))
    for words in (("run", "--batch", DAY), ("history",)):
        result = evenrank(*words, config=config)
        assert result.exit_code == 0
        assert "\x1b" not in result.stdout + result.stderr
    assert mark in " ".join(result.stdout.split())
    log = tmp_path / "logs" / DAY / "part.csv"
    for words in (("score", log, "--metric", "EXP"), ("check", log)):
        assert "\x1b" not in evenrank(*words, "--attribute", "gender").output
    bad = write_csv(tmp_path / "bad.csv", ranking("a", "FM", relevance="\x1b[31m7"))
    assert "\x1b" not in evenrank("check", bad, "--attribute", "gender").output


# -- score and check


def test_score_prints_a_table_or_a_document(log: Path) -> None:
    words = ("score", log, "--attribute", "gender", "--metric", "EXP")
    document = last_line(evenrank(*words, "--json"))
    assert set(document) == {"lists", "rows", "rejected", "scores"}
    assert (document["lists"], document["rejected"], len(document["scores"])) == (12, 0, 7)
    score = next(each for each in document["scores"] if each["aggregation"] == "MinMaxRatio")
    assert list(score) == ["metric", "parameters", "attribute", "aggregation", "value", "reason",
                           "worst_group", "best_group", "groups"]  # fmt: skip
    low, high = score["groups"][score["worst_group"]], score["groups"][score["best_group"]]
    assert score["value"] == low / high
    text = " ".join(evenrank(*words).stdout.split())
    assert "12 lists" in text
    assert f"EXP.MinMaxRatio {score['value']:.3g}" in text


@pytest.mark.slow
def test_score_finds_the_attributes(log: Path, tmp_path: Path) -> None:
    found = last_line(evenrank("score", log, "--metric", "EXP", "--json"))
    assert {each["attribute"] for each in found["scores"]} == {"gender", "device"}
    sliced = last_line(evenrank("score", log, "--metric", "EXP", "--slice", "device", "--json"))
    assert {each["attribute"] for each in sliced["scores"]} == {"gender"}
    assert {each["slice_value"] for each in sliced["scores"]} == {"all", "mobile", "desktop"}
    bare = [
        {name: row[name] for name in ("list_id", "item_id", "rank")} for row in ranking("a", "FM")
    ]
    names = write_csv(tmp_path / "bare.csv", bare)
    items = write_csv(
        tmp_path / "items.csv",
        [{"item_id": row["item_id"], "sex": row["gender"]} for row in ranking("a", "FM")],
    )
    found = last_line(evenrank("score", names, "--items", items, "--metric", "EXP", "--json"))
    assert {each["attribute"] for each in found["scores"]} == {"sex"}
    result = evenrank("score", names)
    assert result.exit_code == 2
    assert "--attribute" in result.stderr


def test_score_takes_parameters_and_intersections(log: Path) -> None:
    result = evenrank(
        "score", log, "--attribute", "gender*device", "--metric", "AWRF", "--metric", "ERBE",
        "--metric", "EXP", "--p", "0.3", "--decay", "0.5", "--k", "3", "--json",
    )  # fmt: skip
    found = last_line(result)["scores"]
    assert {each["attribute"] for each in found} == {"gender*device"}
    said = {each["metric"]: each["parameters"] for each in found}
    assert said["AWRF"]["p"] == 0.3
    assert said["ERBE"]["decay"] == 0.5
    assert {each["k"] for each in said.values()} == {3}


def test_score_leaves_nothing_behind(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(log.parent)
    monkeypatch.setattr(tempfile, "tempdir", str(log.parent))
    assert evenrank("score", log, "--metric", "EXP").exit_code == 0
    assert [path.name for path in log.parent.iterdir()] == ["log.csv"]


def test_score_shows_what_it_left_out(log: Path) -> None:
    rows = [*random_lists(9), *ranking("bad", "F", rank=[0], device="m")]
    write_csv(log, rows)
    result = evenrank("score", log, "--attribute", "gender", "--metric", "EXP")
    assert result.exit_code == 0
    assert "1 rejected" in result.stdout
    assert 'rank "0" is below the first rank' in " ".join(result.stdout.split())


def test_score_with_settings(log: Path, month: Path) -> None:
    found = last_line(evenrank("score", log, "--metric", "EXP", "--json", config=month))
    assert {each["slice_value"] for each in found["scores"]} == {"all", "mobile", "desktop"}
    assert {each["attribute"] for each in found["scores"]} == {"gender"}


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("score", "{log}", "--metric", "EXPP"), 2, "did you mean EXP?"),
        (("score", "{log}", "--p", "7"), 2, "p lies between 0 and 1"),
        (("score", "{log}", "--attribute", "gendre"), 3, "did you mean 'gender'?"),
        (("score", "{log}", "--attribute", "rank"), 2, "has a meaning of its own"),
        (("score", "gone.csv"), 2, "gone.csv: no such file"),
        (("score", "{log}", "--items", "gone.csv"), 2, "gone.csv: no such file"),
        (("check", "{folder}"), 2, "is a directory"),
        (("check", "gone.csv"), 2, "gone.csv: no such file"),
    ],
)
def test_files_that_cannot_be_scored(
    log: Path, words: tuple[str, ...], code: int, text: str
) -> None:
    result = evenrank(*(word.format(log=log, folder=log.parent) for word in words))
    assert (result.exit_code, result.stdout) == (code, "")
    assert text in result.stderr


def test_check_says_what_would_be_rejected(log: Path) -> None:
    result = evenrank("check", log, "--attribute", "gender", "--json")
    assert result.exit_code == 0
    assert last_line(result)["rejected"] == 0
    rows = random_lists(9)
    rows[0]["relevance"] = 1.2
    rows[-1]["gender"] = None
    write_csv(log, rows)
    result = evenrank("check", log, "--attribute", "gender", "--json")
    assert result.exit_code == 3
    document = last_line(result)
    assert document["rules"] == {"relevance_range": 1}
    assert document["rows"] == len(rows)
    assert document["accepted"] + document["rejected"] == len(rows)
    assert document["unknown"] == {"gender": 1}
    text = " ".join(evenrank("check", log, "--attribute", "gender").stdout.split())
    for words in ("would be rejected", "relevance_range: 1 row in 1 list", 'line 2 of log.csv',
                  "gender: 1 row without a group"):  # fmt: skip
        assert words in text


def test_check_says_what_graded_relevance_means(log: Path) -> None:
    rows = random_lists(9)
    rows[0]["relevance"] = 0.5
    write_csv(log, rows)
    result = evenrank("check", log, "--attribute", "gender")
    assert result.exit_code == 0
    assert "ERBR" in result.stdout


def test_check_of_a_file_that_is_all_wrong(log: Path) -> None:
    write_csv(log, ranking("a", "FM", relevance=7))
    result = evenrank("check", log, "--attribute", "gender", "--json")
    assert result.exit_code == 3
    assert last_line(result)["rules"] == {"relevance_range": 2}


def test_check_of_a_file_that_is_none(log: Path) -> None:
    log.write_bytes(b"")
    result = evenrank("check", log, "--attribute", "gender", "--json")
    assert (result.exit_code, last_line(result)["exit_code"]) == (3, 3)
    assert "empty_file" in result.stderr


# -- the rest


def test_metrics_are_listed() -> None:
    found = last_line(evenrank("metrics", "--json"))
    names = {"EXP", "EXPU", "EXPRU", "AWRF", "ERBE", "ERBP", "ERBR", "ARP", "NDKL", "IAA"}
    assert {each["name"] for each in found["metrics"]} >= names
    text = evenrank("metrics").stdout
    for name in names:
        assert name in text


def test_generate_writes_what_can_be_scored(tmp_path: Path) -> None:
    words = ("generate", "--out", tmp_path, "--start", DAY, "--days", "2", "--lists", "5", "--seed")
    assert evenrank(*words, "3", "--items", "100").exit_code == 0
    files = sorted((tmp_path / "logs" / DAY).iterdir())
    result = evenrank(
        "score",
        *files,
        "--items",
        tmp_path / "items.parquet",
        "--slice",
        "device",
        "--metric",
        "EXP",
    )
    assert result.exit_code == 0
    assert "5 lists" in result.stdout
    assert (tmp_path / "logs" / "2026-01-06").is_dir()


@pytest.mark.parametrize(
    "words", [("--days", "0"), ("--lists", "0"), ("--start", "soon"), ("--out", "{file}")]
)
def test_generate_refuses_what_it_cannot_write(tmp_path: Path, words: tuple[str, str]) -> None:
    (tmp_path / "file").write_text("mine")
    said = {"--out": str(tmp_path), "--start": DAY, "--days": "1", "--lists": "1"}
    said[words[0]] = words[1].format(file=tmp_path / "file")
    result = evenrank("generate", *(word for pair in said.items() for word in pair))
    assert result.exit_code == 2
    assert (tmp_path / "file").read_text() == "mine"


def test_publish_prints_where(own: Path) -> None:
    dashboard = store_of(audit(own.parent)).dashboard
    dashboard.unlink()
    result = evenrank("publish", config=own)
    assert (result.exit_code, result.stdout.strip()) == (0, str(dashboard))
    assert dashboard.is_file()


def test_settings_may_be_named_in_the_environment(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENRANK_CONFIG", str(own))
    assert evenrank("history", "--slice", "all").exit_code == 0


def test_settings_are_looked_for_here(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVENRANK_CONFIG", raising=False)
    monkeypatch.chdir(own.parent)
    assert evenrank("history", "--slice", "all").exit_code == 0


def test_a_column_that_is_nearly_read_is_named(log: Path) -> None:
    rows = [{**row, "relevence": 1} for row in ranking("a", "FM")]
    for row in rows:
        row.pop("relevance", None)
    write_csv(log, rows)
    for command in ("check", "score"):
        result = evenrank(command, log, "--attribute", "gender")
        assert result.exit_code == 0
        assert "'relevence' is not read; did you mean 'relevance'?" in " ".join(
            result.stdout.split()
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "said", "unsaid"),
    [
        # Judged in slices only, and fine there: that is a verdict too.
        ("EXP.MinMaxRatio: {min: 0.01, slices: [device]}", "No score breaches", "without"),
        (
            "EXPRU.MinMaxRatio: {min: 0.5}",
            "No score with a threshold could be judged",
            "No score is",
        ),
        (
            "EXP.MinMaxRatio: {min: 0.01}\n  EXPRU.MinMaxRatio: {min: 0.5}",
            "1 score of whole batches with a threshold, but without a value",
            "No score with",
        ),
    ],
)
def test_the_end_of_a_backfill_does_not_call_fair_what_has_no_value(
    tmp_path: Path, limits: str, said: str, unsaid: str
) -> None:
    text = f"attributes: [gender]\nslices: [device]\nthresholds:\n  {limits}\n"
    config = write_settings(tmp_path, text)
    rows = [row for at in range(3) for row in ranking(f"l{at}", "FMMF", device="app", click=None)]
    deliver(tmp_path, rows)
    answer = evenrank("backfill", "--from", DAY, "--to", DAY, config=config)
    printed = " ".join(answer.stdout.split())
    assert said in printed
    assert unsaid not in printed


@pytest.mark.slow
def test_a_run_says_what_it_cannot_tell(tmp_path: Path) -> None:
    text = "attributes: [gender]\nthresholds:\n  EXPRU.MinMaxRatio: {min: 0.5}\n"
    config = write_settings(tmp_path, text)
    deliver(tmp_path, ranking("a"))
    result = evenrank("run", "--batch", DAY, config=config)
    said = " ".join(result.stdout.split())
    assert "1 score of whole batches with a threshold, but without a value" in said
