"""The example script turns tables of people into logs that say what the tables say."""

import csv
import importlib.util
import os
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner
from places import ROOT

from pipeline.settings.load import load_settings

SCRIPT = ROOT / "examples" / "real_tables.py"
MARK = b"\xef\xbb\xbf"
Rows = list[dict[str, str]]

LAW = "\ufeff,race,sex,LSAT,UGPA,region_first,ZFYA,sander_index,first_pf,,\n" + "".join(
    f"{at},{'White' if at % 3 else 'Black'},{1 + at % 2},{30 + at % 4},3,"
    f"{'PO' if at == 7 else 'GL' if at % 2 else 'NE'},{at - 10},0.5,{int(at % 5 > 0)},,\n"
    for at in range(20)
)
CREDIT = (
    "Creditability,Purpose,Credit Amount,Sex & Marital Status,Age (years),Foreign Worker\r\n"
    "1,0,1049,2,24,1\r\n0,0,2799,3,25,1\r\n1,9,841,2,34,2\r\n1,0,5000,1,35,1\r\n"
)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("real_tables", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def law(tmp_path: Path) -> Path:
    table = tmp_path / "law.csv"
    table.write_text(LAW, encoding="utf-8")
    return table


def rows_of(file: Path) -> Rows:
    with file.open(encoding="utf-8-sig", newline="") as text:
        return list(csv.DictReader(text))


def logged(out: Path) -> dict[str, Rows]:
    """Rows of every list below ``out``, in file order."""
    lists: dict[str, Rows] = {}
    for file in sorted(out.glob("logs/*/*.csv")):
        for row in rows_of(file):
            assert row["list_id"].startswith(file.parent.name)
            lists.setdefault(row["list_id"], []).append(row)
    return lists


def source(text: str) -> dict[str, dict[str, str]]:
    lines = text.removeprefix("\ufeff").splitlines()
    header = next(csv.reader(lines[:1]))
    header[0] = header[0] or "id"
    found = (dict(zip(header, cells, strict=True)) for cells in csv.reader(lines[1:]))
    return {row.get("id", str(at)): row for at, row in enumerate(found, start=1)}


def by_value(rows: Rows, value: dict[str, float]) -> list[str]:
    """Ids in the order a ranking must have: highest value first, ties by id."""
    return sorted((row["item_id"] for row in rows), key=lambda item: (-value[item], item))


def test_law_school(script: ModuleType, law: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert script.convert([law], out, days=2, lists=6, length=5) == "law"
    people = source(LAW)
    lists = logged(out)
    assert len(lists) == 2 * 6
    assert sorted(folder.name for folder in (out / "logs").iterdir()) == [
        "2026-01-01",
        "2026-01-02",
    ]
    for rows in lists.values():
        assert [row["rank"] for row in rows] == [str(rank) for rank in range(1, len(rows) + 1)]
        items = [row["item_id"] for row in rows]
        assert len(set(items)) == len(items)
        assert items == by_value(rows, {item: float(people[item]["LSAT"]) for item in items})
        for row in rows:
            assert row["relevance"] == people[row["item_id"]]["first_pf"]
            assert row["region"] == people[row["item_id"]]["region_first"]
        assert len(rows) == (1 if rows[0]["region"] == "PO" else 5)
        assert len({row["region"] for row in rows}) == 1
    for day in ("2026-01-01", "2026-01-02"):
        regions = {rows[0]["region"] for name, rows in lists.items() if name.startswith(day)}
        assert regions == {"GL", "NE", "PO"}


def test_law_items_keep_what_real_files_have(script: ModuleType, law: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    script.convert([law], out, days=1, lists=6)
    text = (out / "items.csv").read_bytes()
    assert text.startswith(MARK + b"item_id,race,sex,,")
    with (out / "items.csv").open(encoding="utf-8-sig", newline="") as file:
        cells = list(csv.reader(file))[1:]
    assert cells == [[item, row["race"], row["sex"], "", ""] for item, row in source(LAW).items()]
    first, second = ((out / "logs/2026-01-01" / f"part-{at}.csv").read_bytes() for at in (0, 1))
    assert first.startswith(MARK + b"list_id,")
    assert second.startswith(b"region,")


def test_law_settings_load(script: ModuleType, law: Path, tmp_path: Path) -> None:
    script.convert([law], tmp_path / "out", start=date(2026, 2, 27), days=3, lists=2)
    settings = load_settings(tmp_path / "out" / "audit.yaml")
    assert settings.attribute_names == ("race", "sex", "race*sex")
    assert settings.slices == ("region",)
    assert (settings.schedule.start, settings.schedule.end) == (date(2026, 2, 27), date(2026, 3, 1))
    assert settings.path("logs/2026-03-01").is_dir()


@pytest.mark.parametrize("kind", ["law", "german-credit", "german-scores", "compas"])
def test_settings_of_every_kind_fit_its_items(script: ModuleType, kind: str) -> None:
    settings = load_settings(SCRIPT.parent / f"{kind}.yaml")
    how = script.KINDS[kind]
    assert set(settings.attribute_columns) == set(how.attributes)
    assert settings.slices == ((how.request[0],) if how.request else ())
    assert settings.items == "items.csv"


def test_same_seed_same_files(script: ModuleType, law: Path, tmp_path: Path) -> None:
    def written(name: str, **options: Any) -> dict[str, bytes]:
        out = tmp_path / name
        script.convert([law], out, lists=5, length=4, **options)
        files = (file for file in out.rglob("*.csv"))
        return {str(file.relative_to(out)): file.read_bytes() for file in files}

    one, again = written("one", days=3), written("again", days=3)
    assert one == again
    fewer = written("fewer", days=1)
    assert fewer == {name: one[name] for name in fewer}
    other = written("other", days=3, seed=2)
    assert other.keys() == one.keys()
    assert other != one


def test_another_column_to_judge_by_is_scaled(
    script: ModuleType, law: Path, tmp_path: Path
) -> None:
    script.convert([law], tmp_path / "out", days=1, lists=9, relevance="ZFYA", rank_by="ZFYA")
    found = {
        row["item_id"]: float(row["relevance"])
        for rows in logged(tmp_path / "out").values()
        for row in rows
    }
    assert found == {item: round(int(item) / 19, 6) for item in found}
    assert len(found) > 10


def test_german_credit(script: ModuleType, tmp_path: Path) -> None:
    table = tmp_path / "credit.csv"
    table.write_bytes(CREDIT.encode())
    out = tmp_path / "out"
    assert script.convert([table], out, days=1, lists=2) == "german-credit"
    people = source(CREDIT)
    lists = logged(out)
    for rows in lists.values():
        value = {row["item_id"]: float(people[row["item_id"]]["Credit Amount"]) for row in rows}
        assert [row["item_id"] for row in rows] == by_value(rows, value)
    assert [[row["item_id"] for row in rows] for rows in lists.values()] == [["4", "2", "1"], ["3"]]
    assert [row["relevance"] for row in lists["2026-01-01-0001"]] == ["1", "0", "1"]
    items = rows_of(out / "items.csv")
    assert [row["age_group"] for row in items] == [
        "under 25",
        "25 to 34",
        "25 to 34",
        "35 and over",
    ]
    assert [row["sex_marital"] for row in items] == ["2", "3", "2", "1"]
    assert [row["foreign_worker"] for row in items] == ["1", "1", "2", "1"]


def score_table(folder: Path, name: str, flags: str) -> Path:
    rows = "".join(f"0.5,0.{at},0.{at}5,{flag}\r\n" for at, flag in enumerate(flags))
    file = folder / f"{name}.csv"
    file.write_text(f"DurationMonth,CreditAmount,score,{name}\r\n{rows}", newline="")
    return file


def test_several_tables_of_the_same_people(script: ModuleType, tmp_path: Path) -> None:
    flags = {"sex": "0110", "age25": "0010", "age35": "0011"}
    tables = [score_table(tmp_path, name, values) for name, values in flags.items()]
    assert script.convert(tables, tmp_path / "out", days=1, lists=1) == "german-scores"
    items = rows_of(tmp_path / "out" / "items.csv")
    assert {name: "".join(row[name] for row in items) for name in flags} == flags
    (rows,) = logged(tmp_path / "out").values()
    assert [(row["item_id"], row["relevance"]) for row in rows] == [
        ("4", "0.3"),
        ("3", "0.2"),
        ("2", "0.1"),
        ("1", "0.0"),
    ]


def test_refusals_say_what_to_do(script: ModuleType, law: Path, tmp_path: Path) -> None:
    sex = score_table(tmp_path, "sex", "01")
    with pytest.raises(script.TableError, match="lacks age25, age35; name the sex, age25"):
        script.convert([sex], tmp_path / "out")
    longer = score_table(tmp_path, "age25", "011")
    with pytest.raises(script.TableError, match="3 rows; the tables before it 2"):
        script.convert([sex, longer], tmp_path / "out")
    with pytest.raises(script.TableError, match="lacks race, sex, LSAT"):
        script.convert([longer], tmp_path / "out", kind="law")
    with pytest.raises(script.TableError, match="no column 'lsat'"):
        script.convert([law], tmp_path / "out", rank_by="lsat")
    with pytest.raises(script.TableError, match="days must be 1 or more"):
        script.convert([law], tmp_path / "out", days=0)
    assert not (tmp_path / "out").exists()
    script.convert([law], tmp_path / "out", days=1, lists=1)
    with pytest.raises(script.TableError, match="already there"):
        script.convert([law], tmp_path / "out")


def test_command_line(script: ModuleType, law: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = CliRunner().invoke(script.main, [str(law), str(out), "--days", "1", "--lists", "4"])
    assert done.exit_code == 0, done.output
    assert f"make audit CONFIG={out / 'audit.yaml'}" in done.output
    assert len(logged(out)) == 4
    again = CliRunner().invoke(script.main, [str(law), str(out)])
    assert again.exit_code == 1
    assert "already there" in again.output


REAL = {
    "law": (["law_data.csv"], 21_791),
    "german-credit": (["german_credit.csv"], 1_000),
    "german-scores": (
        ["GermanCredit_sex.csv", "GermanCredit_age25.csv", "GermanCredit_age35.csv"],
        1_000,
    ),
    "compas": (["ProPublica_race.csv", "ProPublica_sex.csv"], 6_889),
}


@pytest.mark.parametrize("kind", REAL)
def test_real_tables(script: ModuleType, tmp_path: Path, kind: str) -> None:
    folder = os.environ.get("EVENRANK_REAL_TABLES")
    if not folder:
        pytest.skip("EVENRANK_REAL_TABLES names no folder with the tables of examples/README.md")
    names, people = REAL[kind]
    tables = [next(iter(sorted(Path(folder).rglob(name))), None) for name in names]
    if None in tables:
        pytest.skip(f"{', '.join(names)}: not below the folder EVENRANK_REAL_TABLES names")
    out = tmp_path / "out"
    assert script.convert(tables, out, days=1, lists=50) == kind
    items = {row["item_id"]: row for row in rows_of(out / "items.csv")}
    assert len(items) == people
    lists = logged(out)
    assert len(lists) == 50
    for rows in lists.values():
        assert [row["rank"] for row in rows] == [str(rank) for rank in range(1, len(rows) + 1)]
        assert all(row["item_id"] in items for row in rows)
        assert all(0 <= float(row["relevance"]) <= 1 for row in rows)
    assert load_settings(out / "audit.yaml").attribute_columns
    if kind == "law":
        assert sum(row["race"] == "White" for row in items.values()) == 18_285
        assert sum(row["race"] == "Amerindian" for row in items.values()) == 99
        assert [len(rows) for rows in lists.values() if rows[0]["region"] == "PO"] == [1]
        assert {row["relevance"] for rows in lists.values() for row in rows} == {"0", "1"}
    if kind == "german-credit":
        bands = [row["age_group"] for row in items.values()]
        assert [bands.count(each) for each in ("under 25", "35 and over")] == [150, 453]
