"""What a file says and what it does not: folders, names, bytes, numbers, lists in several files."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
import pyarrow.parquet
import pytest
from stores import DAY, Rows, audit, deliver_bytes, in_batch, lists, ranking, without, write_csv

from pipeline.errors import DataRefused
from pipeline.log import readers, unreadable
from pipeline.log.files import LONGEST_LINE, check_text
from pipeline.log.ingest import Ingested
from pipeline.runs.batches import run_batch
from pipeline.runs.in_memory import check_files
from pipeline.settings.labels import parts_of

ROWS = lists(ranking("a", "FFMM"), ranking("b", "FFFM"), ranking("c", "FMFM"))


def written(path: Path, rows: Rows, form: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path = path.with_suffix(f".{form}")
    if form == "csv":
        return write_csv(path, rows)
    if form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def checked(path: Path, **said: Any) -> Ingested:
    return check_files(audit(path.parent, **said), [path], None)


def refusal(path: Path, **said: Any) -> str:
    with pytest.raises(DataRefused) as caught:
        checked(path, **said)
    return str(caught.value)


def groups(folder: Path, rows: Rows, form: str, within: str, **said: Any) -> dict[str, int]:
    """Rows of each group, of a day whose file lies in the folder ``within``."""
    settings = audit(folder, logs="logs/{batch}/**/*", **said)
    written(folder / "logs" / DAY / within / "part-0", rows, form)
    outcome = run_batch(settings, DAY)
    assert outcome.status == "done", outcome.message
    found = in_batch(settings, "SELECT gender, count(*) AS n FROM ranking_log GROUP BY ALL")
    return {row["gender"]: row["n"] for row in found}


# -- folders


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_no_folder_overwrites_a_column(tmp_path: Path, form: str) -> None:
    own = {"F": 7, "M": 5}
    assert groups(tmp_path / "gender=pilot", ROWS, form, "country=de") == own


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_column_that_only_the_path_has_is_read(tmp_path: Path, form: str) -> None:
    settings = audit(tmp_path, logs="logs/{batch}/*/*", slices=["country"])
    for country, rows in (("d%20e", ROWS[:4]), ("fr", ROWS[4:8]), (None, ROWS[8:])):
        folder = f"country={country or '__HIVE_DEFAULT_PARTITION__'}"
        written(tmp_path / "logs" / DAY / folder / "part-0", rows, form)
    assert run_batch(settings, DAY).status == "done"
    found = in_batch(settings, "SELECT DISTINCT list_id, country FROM ranking_log ORDER BY 1")
    assert [tuple(row.values()) for row in found] == [("a", "d e"), ("b", "fr"), ("c", "unknown")]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_file_that_contradicts_its_folder_is_refused(tmp_path: Path, form: str) -> None:
    rows = [{**row, "country": "fr" if row["list_id"] == "a" else "de"} for row in ROWS]
    settings = audit(tmp_path, logs="logs/{batch}/*/*", slices=["country"])
    written(tmp_path / "logs" / DAY / "country=de" / "part-0", rows, form)
    outcome = run_batch(settings, DAY)
    assert (outcome.status, outcome.exit_code) == ("refused", 3)
    assert "4 rows have another 'country', or none, than the folder" in outcome.message
    agreeing = [{**row, "country": "de"} for row in ROWS]
    written(tmp_path / "logs" / DAY / "country=de" / "part-0", agreeing, form)
    assert run_batch(settings, DAY).status == "done"


def test_a_number_is_what_its_folder_says(tmp_path: Path) -> None:
    rows = [{**row, "month": 1} for row in ROWS]
    settings = audit(tmp_path, logs="logs/{batch}/*/*", slices=["month"])
    written(tmp_path / "logs" / DAY / "month=01" / "part-0", rows, "parquet")
    assert run_batch(settings, DAY).status == "done"


def test_a_corrected_folder_is_another_delivery(tmp_path: Path) -> None:
    settings = audit(tmp_path, logs="logs/{batch}/*/*", slices=["country"])
    path = written(tmp_path / "logs" / DAY / "country=fr" / "part-0", ROWS, "csv")
    assert run_batch(settings, DAY).status == "done"
    assert run_batch(settings, DAY).status == "unchanged"
    path.parent.rename(path.parent.with_name("other"))
    (tmp_path / "logs" / DAY / "other").rename(tmp_path / "logs" / DAY / "country=it")
    assert run_batch(settings, DAY).status == "done"
    (row,) = in_batch(settings, "SELECT DISTINCT country FROM ranking_log")
    assert row["country"] == "it"


def test_the_same_bytes_in_two_folders_are_two_files(tmp_path: Path) -> None:
    settings = audit(tmp_path, logs="logs/{batch}/*/*")
    rows = without(ranking("a", "FM"), "list_id")
    for name in ("list_id=one", "list_id=two"):
        written(tmp_path / "logs" / DAY / name / "part-0", rows, "csv")
    outcome = run_batch(settings, DAY)
    assert (outcome.status, outcome.lists, outcome.rows_accepted) == ("done", 2, 4)


def test_an_empty_field_contradicts_its_folder(tmp_path: Path) -> None:
    settings = audit(tmp_path, logs="logs/{batch}/*/*", slices=["country"])
    rows = [{**row, "country": ""} for row in ROWS]
    written(tmp_path / "logs" / DAY / "country=de" / "part-0", rows, "csv")
    assert "12 rows have another 'country', or none" in run_batch(settings, DAY).message


def test_two_folders_that_say_one_name_are_refused(tmp_path: Path) -> None:
    settings = audit(tmp_path, logs="logs/{batch}/**/*", slices=["country"])
    written(tmp_path / "logs" / DAY / "country=de" / "country=fr" / "part-0", ROWS, "csv")
    assert "two folders of its path say 'country'" in run_batch(settings, DAY).message


def test_folders_outside_of_the_logs_say_nothing(tmp_path: Path) -> None:
    path = written(tmp_path / "country=de" / "part-0", ROWS, "csv")
    assert "no column 'country'" in refusal(path, slices=["country"])


# -- names


def joined(parts: Sequence[str]) -> str:
    """The group of an intersection: a backslash before each star and backslash of its parts."""
    return "*".join(part.replace("\\", "\\\\").replace("*", "\\*") for part in parts)


def test_intersections_have_a_name_of_their_own(tmp_path: Path) -> None:
    pairs = [("A*B", "C"), ("A", "B*C"), ("A\\", "B"), ("A", "\\B")]
    rows = [
        {**row, "gender": one, "region": other}
        for number, (one, other) in enumerate(pairs)
        for row in ranking(f"l{number}", "FM")
    ]
    settings = audit(tmp_path, attributes=[["gender", "region"]])
    written(tmp_path / "logs" / DAY / "part-0", rows, "csv")
    assert run_batch(settings, DAY).status == "done"
    query = (
        "SELECT group_value AS name, n FROM group_history WHERE metric = 'EXP' AND slice = 'all'"
    )
    found = {row["name"]: row["n"] for row in in_batch(settings, query)}
    assert found == {joined(pair): 2 for pair in pairs}
    assert [tuple(parts_of("gender*region", name).values()) for name in found] == [
        *sorted(pairs, key=joined)
    ]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (("F", "f"), "gender: 2 values differ only in case, width or signs"),
        (("F", "Ｆ"), "'F' and 'Ｆ'"),
        (("non binary", "non\u200b  binary"), "'non binary'"),
    ],
)
def test_groups_that_look_alike_are_remarked_on(
    tmp_path: Path, values: Sequence[str], words: str
) -> None:
    rows = [{**row, "gender": values[place % 2]} for place, row in enumerate(ROWS)]
    path = written(tmp_path / "log", rows, "csv")
    (note,) = checked(path, privacy={"show_values": True}).notes
    assert words in note
    (note,) = checked(path).notes
    assert note.endswith("differ only in case, width or signs that cannot be seen")


def test_groups_that_differ_are_not_remarked_on(tmp_path: Path) -> None:
    assert checked(written(tmp_path / "log", ROWS, "csv")).notes == ()


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("column", ["list_id", "item_id"])
@pytest.mark.parametrize("sign", ["\t", "\n", "\x00", "\x85", "\x1b"])
def test_control_characters_in_ids_are_refused(
    tmp_path: Path, form: str, column: str, sign: str
) -> None:
    bad = [{**row, column: f"x{sign}{row[column]}"} for row in ranking("bad", "FM")]
    found = checked(
        written(tmp_path / "log", [*ROWS, *bad], form), rejects={"max_rejected_share": 0.5}
    )
    assert [(rule.rule, rule.rows, rule.lists) for rule in found.rules] == [
        (f"{column}_control", 2, 1)
    ]
    assert (found.lists, found.rows_accepted) == (3, 12)


# -- lists in several files


def shards(folder: Path, *rows: Rows) -> list[Path]:
    return [written(folder / f"part-{at}", each, "csv") for at, each in enumerate(rows)]


def test_lists_of_several_files_are_remarked_on(tmp_path: Path) -> None:
    paths = shards(tmp_path, ROWS[:6], ROWS[6:])
    (note,) = check_files(audit(tmp_path), paths, None).notes
    assert "1 list has rows in several files" in note
    assert check_files(audit(tmp_path, lists_span_files=True), paths, None).notes == ()
    whole = shards(tmp_path, ROWS[:4], ROWS[4:])
    assert check_files(audit(tmp_path), whole, None).notes == ()


def scored(name: str, items: str) -> Rows:
    rows = without(ranking(name, "FM"), "rank")
    return [
        {**row, "item_id": f"{items}{place}", "score": -place} for place, row in enumerate(rows)
    ]


def test_a_numbering_that_begins_anew_in_each_file_is_refused(tmp_path: Path) -> None:
    paths = shards(
        tmp_path,
        [row for number in range(5) for row in scored(f"q{number}", "x")],
        [row for number in range(5) for row in scored(f"q{number}", "y")],
    )
    with pytest.raises(DataRefused, match="5 lists have rows in several files") as caught:
        check_files(audit(tmp_path), paths, None)
    assert "lists_span_files: true" in str(caught.value)
    said = check_files(audit(tmp_path, lists_span_files=True), paths, None)
    assert (said.lists, said.rows_accepted) == (5, 20)


def test_a_log_that_was_cut_within_a_list_is_read(tmp_path: Path) -> None:
    rows = [row for number in range(6) for row in scored(str(number), "x")]
    found = check_files(audit(tmp_path), shards(tmp_path, rows[:5], rows[5:]), None)
    assert (found.lists, found.rows_accepted, len(found.notes)) == (6, 12, 1)


@pytest.mark.parametrize("name", ["{}-de", "query number for the day {}", "q-2026-01-05-{}"])
def test_a_numbering_may_have_any_form(tmp_path: Path, name: str) -> None:
    names = [name.format(number) for number in range(5)]
    paths = shards(
        tmp_path,
        [row for each in names for row in scored(each, "x")],
        [row for each in names for row in scored(each, "y")],
    )
    with pytest.raises(DataRefused, match="5 lists have rows in several files"):
        check_files(audit(tmp_path), paths, None)


def test_lists_with_names_of_their_own_may_span_files(tmp_path: Path) -> None:
    names = ["3f1a-77", "ab01c-9", "z9z9z"]
    paths = shards(
        tmp_path,
        [row for name in names for row in scored(name, "x")],
        [row for name in names for row in scored(name, "y")],
    )
    found = check_files(audit(tmp_path), paths, None)
    assert (found.lists, len(found.notes)) == (3, 1)


# -- bytes and numbers


def test_texts_in_binary_columns_are_texts(tmp_path: Path) -> None:
    table = pyarrow.Table.from_pylist([{**row, "gender": "é"} for row in ROWS])
    for name in ("list_id", "item_id", "gender"):
        at = table.column_names.index(name)
        table = table.set_column(at, name, table[name].cast(pyarrow.binary()))
    settings = audit(tmp_path)
    path = tmp_path / "logs" / DAY / "part.parquet"
    path.parent.mkdir(parents=True)
    pyarrow.parquet.write_table(table, path)
    assert run_batch(settings, DAY).status == "done"
    found = in_batch(settings, "SELECT DISTINCT list_id, gender FROM ranking_log ORDER BY 1")
    assert [tuple(row.values()) for row in found] == [("a", "é"), ("b", "é"), ("c", "é")]


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    rows = [{**row, "item_id": bytes([255, place])} for place, row in enumerate(ROWS)]
    assert "must be UTF-8" in refusal(written(tmp_path / "log", rows, "parquet"))


@pytest.mark.parametrize("column", ["list_id", "item_id", "query_id"])
def test_numbers_of_json_that_a_reader_rounds_are_no_ids(tmp_path: Path, column: str) -> None:
    lines = []
    for row in ROWS:
        row = {**row, "query_id": row["list_id"]}  # noqa: PLW2901
        text = json.dumps({**row, column: "@"})
        lines.append(text.replace('"@"', f"12345678901234567.{row['rank']}"))
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert f"{column!r} holds numbers with more digits" in refusal(path)


@pytest.mark.parametrize("value", ['{"v": "F"}', '["F"]'])
def test_objects_of_json_are_no_groups(tmp_path: Path, value: str) -> None:
    lines = [json.dumps({**row, "gender": "@"}).replace('"@"', value) for row in ROWS]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert "gender is nested" in refusal(path)
    path.write_text("\n".join(lines).replace(value, json.dumps(value)), encoding="utf-8")
    assert checked(path).rows_accepted == 12


def test_numbers_of_json_that_are_exact_are_ids(tmp_path: Path) -> None:
    items = [
        *("123456789012345678901234567890", "123456789012345678901234567891", "1.5", "3.0"),
        *('"12345678901234567.25"', '"12345678901234567.75"', '"1.2345678901234568e+16"', "-0.25"),
    ]
    lines = [
        f'{{"list_id": 1, "item_id": {item}, "rank": {rank}, "gender": "F"}}'
        for rank, item in enumerate(items, 1)
    ]
    settings = audit(tmp_path)
    deliver_bytes(tmp_path, "\n".join(lines).encode(), "log.jsonl")
    assert run_batch(settings, DAY).status == "done"
    found = in_batch(settings, "SELECT item_id FROM ranking_log ORDER BY rank")
    assert [row["item_id"] for row in found] == [item.strip('"') for item in items]


# -- text files


def test_texts_of_many_lines_are_read_whole(tmp_path: Path) -> None:
    # Above 16 MB, threads of a reader meet, and take a line end within a text for that of a row.
    text = "\n".join(["a,b,c,d"] * 100)
    lines = [f'{n // 10},{n},{n % 10 + 1},"{text}"' for n in range(60_000)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["list_id,item_id,rank,gender", *lines]), encoding="utf-8")
    names = ["list_id", "item_id", "rank", "gender"]
    with duckdb.connect() as connection, pytest.raises(duckdb.Error):
        connection.execute(f"SELECT count(gender) FROM {readers.csv(path, names, in_order=False)}")
    found = checked(path)
    assert (found.rows_read, found.lists) == (60_000, 6000)


def test_rows_that_a_reader_loses_are_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "log", ROWS, "csv")
    own = readers.csv

    def losing(*given: Any, in_order: bool) -> str:
        rows = own(*given, in_order=in_order)
        return rows if in_order else f"(FROM {rows} LIMIT 11)"

    monkeypatch.setattr(readers, "csv", losing)
    assert checked(path).rows_read == 12
    monkeypatch.setattr(readers, "csv", lambda *given, in_order: losing(*given, in_order=False))
    assert "11 rows are found in it, and 12 by its lines" in refusal(path)


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", 0),
        (b"a", 1),
        (b"a\n", 1),
        (b"a\n\n\nb", 2),
        (b"\n\na\r\n\r\nb\r\n", 2),
        (b'a\n"x\ny"\n', 2),
        (b'a\n"x""\n\n""y"\nb\n', 3),
        (b"a\n" + b"b" * LONGEST_LINE + b"\nc", 3),
        (b"ab\n" * 200_000, 200_000),
        (b'"a\n"\n' * 200_000, 200_000),
    ],
)
def test_lines_are_counted(tmp_path: Path, data: bytes, lines: int) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(data)
    assert check_text(path, 10_000_000, quotes=True) == lines


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("log.csv", b"@\r\na,1,1,F\na,2,2,M\n", "line 2: ends with a line feed, and lines before"),
        ("log.csv", b"@\na,1,1,F\r\na,2,2,M\n", "line 2: ends with carriage return and line feed"),
        ("log.csv", b"@\na,1,1,F\na,2\r,2,M\n", "line 3: ends with a carriage return, and lines"),
        ("log.csv", b'@\na,1,1,F\na,"2,2,M\n', "line 3: a text that begins with a quote"),
        ("log.csv", b'@\na,"1"x,1,F\n', "line 2: a quote inside a quoted text has to stand twice"),
        ("log.csv", b"@\na,1,1,F,9\n", "line 2: has 5 fields and the header 4"),
        ("log.jsonl", b'{"list_id": "a"}\n' * 1200 + b'{"list_id": "b', "line 1201: not a JSON"),
        ("log.jsonl", b'{"list_id": "a"}\n' * 1200 + b'{"list_id"', "ends too early"),
        ("log.jsonl", b'{"list_id": "a"}\n' * 1200 + b'{"a": 1}{"a": 2}\n', "each line holds one"),
        ("log.jsonl", b'\xef\xbb\xbf{"list_id": "a"}\n', "line 1: begins with a byte order mark"),
        ("log.jsonl", b"$\n" * 1200 + b'{"rank": 1, "rank": 2}\n', "line 1201: a key stands"),
    ],
)
def test_what_is_wrong_with_a_text_file(tmp_path: Path, name: str, data: bytes, words: str) -> None:
    path = tmp_path / name
    row = json.dumps(ROWS[0]).encode()
    path.write_bytes(data.replace(b"@", b"list_id,item_id,rank,gender").replace(b"$", row))
    assert words in refusal(path)


def test_moments_are_the_same_text_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    settings = audit(tmp_path, slices=["at"])
    table = pyarrow.Table.from_pylist(ROWS)
    moment = pyarrow.array([1_767_650_400] * len(ROWS), pyarrow.timestamp("s", "UTC"))
    path = tmp_path / "logs" / DAY / "part.parquet"
    path.parent.mkdir(parents=True)
    pyarrow.parquet.write_table(table.append_column("at", moment), path)
    assert run_batch(settings, DAY).status == "done"
    (row,) = in_batch(settings, 'SELECT DISTINCT "at" FROM ranking_log')
    assert row["at"] == "2026-01-05 22:00:00+00"


def test_a_missing_row_counts_where_a_reader_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unreadable, "_rows_of", lambda _: None)
    path = written(tmp_path / "log", ROWS, "csv")
    path.write_text(path.read_text(encoding="utf-8") + 'd,"1,1,F\n', encoding="utf-8")
    assert "cannot be read" in refusal(path)
