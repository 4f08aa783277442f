"""The notebook's numbers through the Dagster assets, down to the copy that dashboards read."""

import json
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pyarrow
import pyarrow.parquet
import pytest
import yaml
from places import GOLDEN

from assets.definitions import definitions

NOTEBOOK = GOLDEN / "notebook.json"
CASES: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cases"]
DAYS = ("2026-01-01", "2026-01-02")


def rankings() -> list[list[dict[str, Any]]]:
    """The cases by ranking: they share two, one for ARP and one for the others."""
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for case in CASES:
        found.setdefault(tuple(case["ranking"]), []).append(case)
    return list(found.values())


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dashboard copy of an audit whose days are the rankings of the notebook."""
    folder = tmp_path_factory.mktemp("notebook")
    for day, cases in zip(DAYS, rankings(), strict=True):
        people = cases[0]["ranking"]
        log = {
            "list_id": ["notebook"] * len(people),
            "item_id": people,
            "rank": list(range(1, len(people) + 1)),
            "group": [cases[0]["groups"][name] for name in people],
        }
        (folder / "logs" / day).mkdir(parents=True)
        pyarrow.parquet.write_table(pyarrow.table(log), folder / "logs" / day / "log.parquet")
    file = folder / "audit.yaml"
    said = {"attributes": ["group"], "schedule": {"start": DAYS[0], "end": DAYS[-1]}, "threads": 1}
    file.write_text(yaml.safe_dump(said), encoding="utf-8")
    tags = {
        "dagster/asset_partition_range_start": DAYS[0],
        "dagster/asset_partition_range_end": DAYS[-1],
    }
    with dg.DagsterInstance.ephemeral() as instance:
        job = definitions(file).resolve_job_def("audit")
        assert job.execute_in_process(instance=instance, tags=tags).success
    return folder / "store" / "dashboard.duckdb"


def test_the_notebook_through_the_assets(published: Path) -> None:
    compared = 0
    with duckdb.connect(str(published), read_only=True) as store:
        for day, cases in zip(DAYS, rankings(), strict=True):
            for case in cases:
                given = ",".join(f"{name}={value}" for name, value in case["parameters"].items())
                metric = case["metric"] + (f"({given})" if given else "")
                scores = dict(
                    store.execute(
                        "SELECT coalesce(aggregation, ''), value FROM v_history "
                        "WHERE batch = ? AND metric = ? AND slice = 'all'",
                        [day, metric],
                    ).fetchall()
                )
                expected = case.get("aggregations") or {"": case["value"]}
                assert scores == pytest.approx(expected, rel=1e-9, abs=0), metric
                groups = store.execute(
                    "SELECT group_value, value FROM v_groups WHERE batch = ? AND metric = ?",
                    [day, metric],
                ).fetchall()
                assert dict(groups) == pytest.approx(case.get("values") or {}, rel=1e-9, abs=0)
                compared += len(scores) + len(groups)
    assert compared == 4 * (7 + 2) + 1
