"""What can be compared, how the command ends, and what it prints."""

import csv
import json
from pathlib import Path

import pytest
from command import evenrank, without_page
from compare_logs import LABELS, logs, overall, shown
from stores import DAY, deliver, ranking, write_csv, write_settings

from pipeline.compare.logs.compare import compare
from pipeline.errors import DataRefused, SettingsError

# -- what can be compared


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Settings of an audit of two days, run; the second day shows every list the other way."""
    folder = tmp_path_factory.mktemp("store")
    config = write_settings(folder)
    for day, turned in (("2026-01-05", False), ("2026-01-06", True)):
        rows = []
        for at in range(4):
            each = ranking(f"l{at}", "FMFM")
            for row in each:
                row["rank"] = 5 - row["rank"] if turned else row["rank"]
            rows += each
        deliver(folder, rows, batch=day)
        with without_page():
            assert evenrank("run", "--batch", day, "-q", "--config", config).exit_code == 0
    return config


def test_batches_of_a_store(store: Path) -> None:
    found = compare("2026-01-05", "2026-01-06", config=store)
    assert overall(found)["Kendall"] == -1
    assert (found.a.lists, found.a.rows, found.matching.queries) == (4, 16, 4)
    assert overall(compare(DAY, DAY, config=store))["Kendall"] == 1


def test_a_batch_beside_a_file_and_a_folder(store: Path) -> None:
    logs = store.parent / "logs" / "2026-01-06"
    assert overall(compare("2026-01-05", logs / "part.csv", config=store))["FCP"] == 0
    assert overall(compare(logs, "2026-01-05", config=store))["FCP"] == 0


def test_the_settings_of_this_folder_name_the_store(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(store.parent)
    assert overall(compare("2026-01-05", "logs/2026-01-06"))["NDPM"] == 1


def test_settings_say_how_files_are_read_but_groups_are_not_needed(tmp_path: Path) -> None:
    config = write_settings(
        tmp_path, "attributes: [gender]\nslices: [device]\ncolumns: {item_id: sku}\n"
    )
    rows = [
        {"sku" if name == "item_id" else name: value for name, value in row.items()}
        for row in shown("l", "abc")
    ]
    log = write_csv(tmp_path / "log.csv", rows)
    assert overall(compare(log, log, config=config))["Kendall"] == 1
    with pytest.raises(DataRefused, match="no column 'item_id'"):
        compare(log, log)


# -- how it ends


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nowhere.csv", "b.csv"), 2, "nowhere.csv: no such file or folder; for a batch"),
        (("a.csv", "b.csv", "--metric", "EXP"), 2, "EXP does not compare two rankings"),
        (("a.csv", "b.csv", "--metric", "Kendal"), 2, "did you mean Kendall"),
        (("a.csv", "b.csv", "--metric", "AO(reference=relevance)"), 2, "leave reference out"),
        (("a.csv", "b.csv", "--p", "1"), 2, "p lies between 0 and 1"),
        (("a.csv", "b.csv", "--k", "0"), 2, "whole number from 1"),
        (("a.csv", "b.csv", "--csv", "no/such/folder.csv"), 2, "--csv"),
        (("a.csv",), 2, "Missing argument 'B'"),
        (("a.csv", "broken.csv"), 3, "broken.csv: "),
        (("a.csv", "other.csv"), 3, "no column 'item_id'"),
        (("a.csv", "none.csv"), 4, "none.csv: the files hold no rows"),
        (("empty", "b.csv"), 4, "empty: no files in this folder"),
    ],
)
def test_exit_codes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    logs(tmp_path, [shown("l", "abc")], [shown("l", "abc")])
    write_csv(tmp_path / "broken.csv", [row | {"rank": "first"} for row in shown("l", "abc")])
    write_csv(tmp_path / "other.csv", [{"list_id": "l", "rank": 1}])
    (tmp_path / "none.csv").write_text("list_id,item_id,rank\n", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    result = evenrank("compare", *words)
    assert result.exit_code == code
    assert said in result.stderr
    assert result.stdout == ""


def test_batches_that_are_not_there(store: Path) -> None:
    result = evenrank("compare", "2026-01-05", "2026-03-01", "--config", store, "--json")
    assert result.exit_code == 4
    assert "no batch of the store" in json.loads(result.stdout)["error"]
    with pytest.raises(SettingsError, match="no such file or folder"):
        compare("no/path.csv", "2026-01-05", config=store)


# -- what is printed


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    a = [shown(f"l{at:02}", "abcdefgh") for at in range(20)]
    b = [
        shown(f"l{at:02}", "abcdefgh"[: at % 8 + 1][::-1] + "abcdefgh"[at % 8 + 1 :])
        for at in range(18)
    ]
    return logs(tmp_path, a, b)


def test_a_table_for_people(sides: tuple[Path, Path]) -> None:
    result = evenrank("compare", *sides, "--top", "3")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "18 queries in both, 2 only in A, 0 only in B" in lines
    assert "Mean over 18 matched lists" in lines
    assert "p=0.9: the first 10 ranks decide 86% of RBO and RBD" in lines
    at = lines.index("Most different by RBO(p=0.9).EXT")
    # The whole list turned round differs most: the queries of which B shows all eight reversed.
    assert [line.split()[0] for line in lines[at + 2 : at + 5]][:2] == ["l07", "l15"]
    assert lines[-1] == "  and 15 more: --top, --csv or --json"
    assert "Most different" not in evenrank("compare", *sides, "--top", "0").stdout


def test_a_document_for_scripts(sides: tuple[Path, Path]) -> None:
    document = json.loads(evenrank("compare", *sides, "--json").stdout.splitlines()[-1])
    assert document == json.loads(json.dumps(compare(*sides).document()))
    assert document["matched"]["lists"] == 18
    assert document["ordered_by"] == "RBO(p=0.9).EXT"
    values = [each["values"]["RBO(p=0.9).EXT"] for each in document["queries"]]
    assert values == sorted(values)
    assert len(values) == 18
    assert document["prefix_weights"] == [
        {"p": 0.9, "ranks": 10, "weight": pytest.approx(0.8556, abs=1e-4)}
    ]


def test_a_row_per_query_as_csv(sides: tuple[Path, Path], tmp_path: Path) -> None:
    path = tmp_path / "queries.csv"
    assert evenrank("compare", *sides, "--quiet", "--csv", path).stdout == ""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["query_id", "lists", "items_a", "items_b", "shared", *LABELS]
    document = compare(*sides).document()
    assert [row["query_id"] for row in rows] == [each["query_id"] for each in document["queries"]]
    assert float(rows[0]["Kendall"]) == document["queries"][0]["values"]["Kendall"]


def test_rejected_rows_are_told_and_left_out(tmp_path: Path) -> None:
    a = [shown(f"l{at}", "abcd") for at in range(40)]
    a[3][1]["item_id"] = "a"
    result = evenrank("compare", *logs(tmp_path, a, [shown(f"l{at}", "abcd") for at in range(40)]))
    assert result.exit_code == 0
    assert "39 lists, 156 rows, 4 rejected" in result.stdout
    assert "duplicate_item" in result.stdout
    assert "39 queries in both, 0 only in A, 1 only in B" in result.stdout


def test_names_cannot_steer_the_terminal(tmp_path: Path) -> None:
    name = "q\x1b[31m[bold]"
    result = evenrank(
        "compare", *logs(tmp_path, [shown("l", "abc", name)], [shown("l", "acb", name)])
    )
    assert "\x1b" not in result.stdout
    assert "q?[31m[bold]" in result.stdout


def test_nothing_is_left_behind(
    sides: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = tmp_path / "room"
    room.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(room))
    before = sorted(tmp_path.rglob("*"))
    assert evenrank("compare", *sides).exit_code == 0
    assert sorted(tmp_path.rglob("*")) == before


def test_a_table_does_not_replace_what_is_compared(tmp_path: Path) -> None:
    a, b = logs(tmp_path, [ranking("l", "FM")], [ranking("l", "FM")])
    before = Path(a).read_bytes()
    answer = evenrank("compare", str(a), str(b), "--csv", str(a))
    assert answer.exit_code == 2
    assert "among the logs compared" in answer.stderr
    assert Path(a).read_bytes() == before
