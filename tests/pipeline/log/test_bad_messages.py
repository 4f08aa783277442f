"""Messages say what, where and what to do, and leave out what people wrote unless asked for it."""

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow
import pytest
from bad_inputs import GOOD, SECRETS, as_csv, rows_of
from cases import some
from click.testing import CliRunner
from command import evenrank
from stores import audit

from assets.sensors import message_of
from pipeline.cli.main import main
from pipeline.errors import AuditError, DataRefused, SettingsError
from pipeline.log.deliveries import batch_files, items_path
from pipeline.log.files import LONGEST_LINE, FileProblem, check_text, regular
from pipeline.log.headers import said_of, unquoted
from pipeline.log.rejected_rows import RuleCount
from pipeline.log.sources import open_sources
from pipeline.runs import in_memory
from pipeline.runs.in_memory import check_files, guess_attributes, score

SPOILT = rows_of("bad", "FMFM", rank=[1, "first", "1.5", "+49 170 1234567 anna@example"])


def rules_of(folder: Path, *, show: bool, rows: list[dict[str, Any]]) -> tuple[RuleCount, ...]:
    path = folder / "log.csv"
    path.write_bytes(as_csv([*GOOD, *rows]))
    settings = audit(
        folder,
        slices=["device"],
        rejects={"max_rejected_share": 1.0},
        privacy={"show_values": show},
    )
    return check_files(settings, [path], None).rules


# -- values


def test_numbers_are_shown_and_words_are_not(tmp_path: Path) -> None:
    (rule,) = rules_of(tmp_path, show=False, rows=SPOILT)
    assert rule.sample == (
        "line 27 of log.csv: rank is not a whole number",
        'line 28 of log.csv: rank "1.5" is not a whole number',
        "line 29 of log.csv: rank is not a whole number",
    )


def test_words_are_shown_where_the_settings_say_so(tmp_path: Path) -> None:
    (rule,) = rules_of(tmp_path, show=True, rows=SPOILT)
    assert rule.sample[0] == 'line 27 of log.csv: rank "first" is not a whole number'
    assert "anna@example" in rule.sample[2]


@pytest.mark.parametrize(
    ("value", "shown"),
    some([
        ("1.5", True),
        ("-0.25", True),
        ("1e300", True),
        ("1,000", True),
        (" NaN ", True),
        ("-Infinity", True),
        ("true", True),
        ("0x2", False),
        ("1 a", False),
        ("anna", False),
        ("'; --", False),
        ("12345", False),
        ("+491701234567", False),
        ("0170.123.45.67", False),
        ("9" * 41, False),
        ("1\n2", False),
    ], few=8),
)  # fmt: skip
def test_what_looks_like_a_number(tmp_path: Path, value: str, shown: bool) -> None:
    found = rules_of(tmp_path, show=False, rows=rows_of("bad", "F", rank=[value]))
    assert found
    assert any(value.strip() in text for rule in found for text in rule.sample) == shown


@pytest.mark.parametrize(
    ("changed", "rule"),
    some(
        [
            ({"item_id": "zebra-finch 1"}, "duplicate_item"),
            ({"item_id": "4917012345678"}, "duplicate_item"),
            ({"query_id": ["wormwood 1", "wormwood 2"]}, "query_not_constant"),
            ({"device": ["anna@example", "mobile"]}, "slice_not_constant"),
            ({"model_version": ["wormwood", "b"]}, "model_version_not_constant"),
        ],
        few=2,
    ),
)
def test_ids_and_names_are_never_numbers(
    tmp_path: Path, changed: dict[str, Any], rule: str
) -> None:
    (found,) = rules_of(tmp_path, show=False, rows=rows_of("bad", "FM", **changed))
    assert found.rule == rule
    for secret in (*SECRETS, "4917012345678"):
        assert secret not in repr(found)
    (found,) = rules_of(tmp_path, show=True, rows=rows_of("bad", "FM", **changed))
    values = changed[next(iter(changed))]
    assert any(each in repr(found) for each in ([values] if isinstance(values, str) else values))


@pytest.mark.slow
def test_commands_show_values_when_asked(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(as_csv([*GOOD, *SPOILT]))
    for command in ("check", "score"):
        quiet = evenrank(command, log, "--attribute", "gender")
        asked = evenrank(command, log, "--attribute", "gender", "--show-values")
        assert quiet.exit_code == asked.exit_code == 3
        assert "first" not in quiet.output
        assert '"first"' in asked.output


# -- what may be a row


def test_a_row_that_is_taken_for_a_header_is_not_quoted(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(as_csv(GOOD).split(b"\n", 1)[1])
    for words in ((), ("--attribute", "gender"), ("--slice", "device")):
        result = evenrank("check", log, *words)
        assert result.exit_code == 3
        for secret in SECRETS:
            assert secret not in result.output


def test_a_header_of_which_something_is_known_is_told(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(b"list_id,document,place,sex," + b"x" * 300 + b"\na,x,1,F,\n")
    result = evenrank("check", log, "--attribute", "gender")
    assert "no column 'gender'; the file has 'document'" in result.stderr
    assert "x" * 100 not in result.stderr


def test_many_columns_are_not_all_told(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("list_id," + ",".join(f"c{at}" for at in range(100)) + "\n")
    result = evenrank("check", log, "--attribute", "gender")
    assert "81 more" in result.stderr


def test_keys_of_json_are_not_quoted_either(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"anna@example.org": {"zebra-finch": 1}}) + "\n")
    with pytest.raises(DataRefused) as caught:
        check_files(audit(tmp_path), [log], None)
    assert "no column 'list_id'" in str(caught.value)
    assert "anna" not in str(caught.value)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Conversion Error: Could not convert string 'anna's' to INT32",
         "Conversion Error: Could not convert string ... to INT32"),
        ('value "anna\\xFF" is not valid UTF8!', "must be UTF-8"),
        ("Invalid Input Error: CSV Error on Line: 7\nOriginal Line: anna,unicode\nToo many",
         "CSV Error on Line: 7"),
        ("Invalid Input Error: odd\nOriginal Line: anna\nLine: 9", "odd (Line: 9)"),
        ("No magic bytes in file '/a/b.csv'", "No magic bytes in the file"),
        ("File '/a/b.csv' is encrypted, no 'encryption_config'",
         "is encrypted; deliver it as it was before"),
    ],
)  # fmt: skip
def test_what_readers_say_is_told_without_what_they_quote(said: str, told: str) -> None:
    import duckdb

    assert said_of(duckdb.InvalidInputException(said), Path("/a/b.csv")) == told


def test_only_the_first_line_is_told_of_what_others_say() -> None:
    assert unquoted('"a" and "b"\nanna') == "..."


class _Step:
    """As much of a failed step's event as is looked at."""

    def __init__(self, message: str) -> None:
        self.cause = None
        self.message = message
        self.user_failure_data = None

    @property
    def step_failure_data(self) -> Any:
        return self

    @property
    def error(self) -> Any:
        return self


def test_a_failed_run_is_noted_without_rows() -> None:
    foreign = _Step("duckdb.ConversionException: Could not convert 'anna' to INT\nLINE 1: anna\n")
    assert message_of([foreign], None) == (  # type: ignore[list-item]
        "duckdb.ConversionException: Could not convert ... to INT"
    )
    own = _Step("pipeline.errors.AuditError: write 'this'\n  or 'that'\n")
    assert message_of([own], None).endswith("or 'that'")  # type: ignore[list-item]


# -- files


def test_a_checksum_may_be_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(as_csv(GOOD))
    with pytest.raises(DataRefused, match=r"no log\.csv\.sha256 beside it \(checksums: required\)"):
        check_files(audit(tmp_path, checksums="required"), [path], None)
    assert check_files(audit(tmp_path), [path], None).rows_accepted == len(GOOD)


@pytest.mark.parametrize("packed", [False, True])
def test_sizes_of_texts(tmp_path: Path, packed: bool) -> None:
    def problem(data: bytes, most: int = 10_000_000) -> str:
        path = tmp_path / ("log.csv.gz" if packed else "log.csv")
        path.write_bytes(gzip.compress(data) if packed else data)
        try:
            check_text(path, most, quotes=False)
        except FileProblem as found:
            return str(found)
        return ""

    line = b"x" * LONGEST_LINE
    assert problem(b"a\n" + line + b"\n" + line) == ""
    assert problem(b"a\n" + line + b"x\nb\n").startswith("line 2 is longer")
    assert problem(b"a\nb\n" + line + b"x").startswith("line 3 is longer")
    assert problem(b"") == ""
    assert problem(b"a\n" * 50, 100) == ""
    assert problem(b"a\n" * 50 + b"a", 100).startswith("holds more than 100 bytes")


def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(as_csv(GOOD))

    def opened(*args: Any) -> Any:
        found = open_sources(*args)
        with path.open("ab") as file:
            file.write(as_csv(rows_of("more")).split(b"\n", 1)[1])
        return found

    monkeypatch.setattr(in_memory, "open_sources", opened)
    with pytest.raises(DataRefused, match=r"log\.csv: changed while it was read"):
        check_files(audit(tmp_path), [path], None)


def test_folders_that_may_not_be_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "logs" / "2026-01-05" / "part.csv"
    path.parent.mkdir(parents=True)
    path.write_bytes(as_csv(GOOD))
    resolve = Path.resolve

    def refuse(self: Path, strict: bool = False) -> Path:
        if strict:
            raise PermissionError(13, "Permission denied", str(self))
        return resolve(self)

    monkeypatch.setattr(Path, "resolve", refuse)
    with pytest.raises(FileProblem, match="permission denied"):
        regular(path)
    with pytest.raises(DataRefused, match=r"part\.csv: permission denied"):
        batch_files(audit(tmp_path), "2026-01-05")


@pytest.mark.parametrize("target", ["items.csv", "gone.csv", "."])
def test_items_that_are_no_file(tmp_path: Path, target: str) -> None:
    (tmp_path / "items.csv").symlink_to(target)
    with pytest.raises(SettingsError, match=r"items: items\.csv: "):
        items_path(audit(tmp_path, items="items.csv"), "2026-01-05")


def test_a_link_that_somebody_names_is_followed(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "near").mkdir()
    (tmp_path / "far" / "log.csv").write_bytes(as_csv(GOOD))
    (tmp_path / "near" / "log.csv").symlink_to(tmp_path / "far" / "log.csv")
    result = evenrank("check", tmp_path / "near" / "log.csv", "--attribute", "gender")
    assert result.exit_code == 0


def test_a_broken_file_is_explained_where_groups_are_guessed(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(as_csv(GOOD) + b"anna@example.org,x\n")
    with pytest.raises(DataRefused, match=r"log\.csv: cannot be read") as caught:
        guess_attributes([log], None, [])
    assert "anna" not in str(caught.value)


# -- frames


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"item_id": [["anna"]] * len(GOOD)}, "item_id is nested"),
        ({"item_id": ["anna", 3] * (len(GOOD) // 2)}, "column item_id"),
        ({"RANK": 1}, "two columns have one name"),
    ],
)
def test_frames_that_cannot_be_read(columns: dict[str, Any], words: str) -> None:
    frame = pd.DataFrame(GOOD).assign(**columns)
    with pytest.raises(DataRefused, match=words) as caught:
        score(frame, ["gender"])
    assert "anna" not in str(caught.value)


def test_frames_without_columns() -> None:
    with pytest.raises(DataRefused, match="has no columns"):
        score(pyarrow.table({}), ["gender"])


# -- the command line


@pytest.mark.parametrize(
    ("words", "exit_code", "said"),
    [
        (("check", "x" * 5000 + ".csv", "--attribute", "g"), 2, "file name too long"),
        (("compare", "x" * 5000, "y"), 1, "file name too long"),
        (("history", "--batch", "\udcff"), 2, "--batch: must be UTF-8"),
        (("check", "log.csv", "--attribute", "\udcff"), 2, "--attribute: must be UTF-8"),
        (("check", "", "--attribute", "g"), 2, "is a directory"),
        (("check", "/dev/zero", "--attribute", "g"), 2, "not a regular file"),
    ],
)
def test_no_traceback(words: tuple[str, ...], exit_code: int, said: str) -> None:
    result = evenrank(*words)
    assert result.exit_code == exit_code
    assert said in result.stderr


def test_a_full_disk_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device", "/store/x")

    monkeypatch.setattr(in_memory, "check_files", full)
    log = tmp_path / "log.csv"
    log.write_bytes(as_csv(GOOD))
    result = CliRunner().invoke(main, ["check", str(log), "--attribute", "gender", "--json"])
    assert result.exit_code == AuditError.exit_code
    assert result.stderr == "evenrank: /store/x: no space left on device\n"
    assert json.loads(result.stdout)["exit_code"] == 1
