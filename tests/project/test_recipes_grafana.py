"""The dashboard for Grafana: its SQL runs, and is of its data source."""

import json
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from pages import MISSING, UNFAIR
from readers import EXAMPLES, STORES, Copies, ask, published, replaced

DASHBOARD: dict[str, Any] = json.loads((EXAMPLES / "grafana" / "dashboard.json").read_text("utf-8"))
_FILTER = re.compile(r"\$__timeFilter\(((?:[^()]|\([^()]*\))*)\)")
FROM, TO = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


@pytest.fixture(scope="session")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    return published(tmp_path_factory.getbasetemp())


def filled(sql: str, values: dict[str, str]) -> str:
    """The statement as Grafana sends it: variables as SQL strings, and a range of time."""
    for name, value in values.items():
        sql = sql.replace(f"${{{name}:sqlstring}}", "'" + value.replace("'", "''") + "'")
    sql = _FILTER.sub(rf"\1 >= '{FROM}' AND \1 <= '{TO}'", sql)
    assert "$" not in sql
    return sql


def targets() -> Iterator[tuple[str, str]]:
    """Title and SQL of everything that is drawn."""
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["rawSql"]
    for each in DASHBOARD["annotations"]["list"]:
        yield each["name"], each["target"]["rawSql"]


def asked(copy: Path) -> dict[str, tuple[str, list[dict[str, Any]]]]:
    """Statement and rows of everything that is drawn, with the first value of each variable."""
    with duckdb.connect(str(copy), read_only=True) as connection:

        def rows(sql: str) -> list[dict[str, Any]]:
            found = connection.execute(sql)
            columns = [(column[0], str(column[1])) for column in found.description or ()]
            assert all(kind == "TIMESTAMP" for name, kind in columns if name == "time")
            names = [name for name, _ in columns]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

        values: dict[str, str] = {}
        for each in DASHBOARD["templating"]["list"]:
            options = rows(filled(each["query"], values))
            values[each["name"]] = next(iter(options[0].values())) if options else ""
        statements = {title: filled(sql, values) for title, sql in targets()}
        return {title: (sql, rows(sql)) for title, sql in statements.items()}


@pytest.mark.parametrize("name", STORES)
def test_every_statement_for_grafana_runs(copies: Copies, name: str) -> None:
    found = {title: rows for title, (_, rows) in asked(copies(name)).items()}
    for rows in found.values():
        times = [row["time"] for row in rows if "time" in row]
        assert times == sorted(times)
    assert len(found["The last night"]) == 1
    if name != "month":
        return
    trend = found["The score, its interval and its threshold"]
    lowest = min((row for row in trend if row["value"] is not None), key=lambda row: row["value"])
    assert f"{lowest['time']:%Y-%m-%d}" == UNFAIR
    assert lowest["value"] < lowest["upper"] < lowest["threshold_min"] == 0.8
    assert [f"{row['time']:%Y-%m-%d}" for row in trend if row["value"] is None] == [MISSING]
    breaches = {f"{row['time']:%Y-%m-%d}": row["breach"] for row in found["Breaches per batch"]}
    assert {batch: count for batch, count in breaches.items() if count} == {UNFAIR: 4}
    assert [row["batch"] for row in found["Nights without scores"]] == [MISSING]
    assert found["Releases"][0]["text"] == "ranker v2"
    assert len(found["Largest changes of the newest batch"]) == 20
    assert {row["group_value"] for row in found["Groups behind the score"]} == {"F", "M", "unknown"}


def test_a_batch_that_is_no_day_is_no_point_in_time(copies: Copies, tmp_path: Path) -> None:
    path = replaced(tmp_path / "copy.duckdb", copies("month"))
    before = asked(path)
    with duckdb.connect(str(path)) as copy:
        for table in ("batches", "fairness_history"):
            copy.execute(f"UPDATE {table} SET batch = 'replay' WHERE batch = ?", [UNFAIR])
    after = asked(path)
    title = "Breaches per batch"
    assert len(after[title][1]) == len(before[title][1]) - 1


_STATEMENTS = """
import json, sys
import duckdb
with duckdb.connect(sys.argv[1], read_only=True) as copy:
    print(json.dumps([len(copy.execute(sql).fetchall()) for sql in json.loads(sys.argv[2])]))
"""


def test_statements_for_grafana_run_in_the_oldest_version(copies: Copies) -> None:
    found = asked(copies("month")).values()
    told = ask(_STATEMENTS, copies("month"), json.dumps([sql for sql, _ in found]))
    assert told == [len(rows) for _, rows in found]


def test_the_dashboard_belongs_to_its_data_source() -> None:
    said = yaml.safe_load((EXAMPLES / "grafana" / "datasource.yaml").read_text("utf-8"))
    (source,) = said["datasources"]
    assert source["jsonData"]["readOnly"] is True
    expected = {"type": source["type"], "uid": source["uid"]}
    lists = [DASHBOARD[part]["list"] for part in ("templating", "annotations")]
    panels = DASHBOARD["panels"]
    for each in [*panels, *(t for panel in panels for t in panel["targets"]), *chain(*lists)]:
        assert each["datasource"] == expected
    assert len({panel["id"] for panel in panels}) == len(panels)
