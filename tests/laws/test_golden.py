"""Published numbers: the notebook's and the library's, through a frame and through the shell."""

import json
from math import isclose
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from logs import TEN, Rows, ranked, scored, write
from places import GOLDEN

from metrics import AGGREGATIONS, parse_measure
from pipeline.cli.main import main

FILES = ["log.parquet", "log.csv", "log.jsonl", "log.csv.gz", "log.jsonl.gz"]


def cases(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((GOLDEN / name).read_text("utf-8"))["cases"]
    return found


NOTEBOOK = cases("notebook.json")
LIBRARY = cases("fairranktune.json")


def agree(expected: object) -> object:
    """Agreement to 1e-9 relative, with no absolute slack."""
    return pytest.approx(expected, rel=1e-9, abs=0)


def rows_of(case: dict[str, Any]) -> Rows:
    rows = ranked(case.get("lists") or [case["ranking"]], case["groups"])
    for name in ("relevance", "click"):
        values = [value for each in case.get(name, []) for value in each]
        for row, value in zip(rows, values, strict=False):
            row[name] = value
    return rows


def label_of(result: dict[str, Any]) -> str:
    given = ",".join(f"{name}={value}" for name, value in result["parameters"].items())
    return parse_measure(result["metric"] + (f"({given})" if given else "")).label


def expected_of(result: dict[str, Any], lists: int) -> dict[str, Any]:
    """Scores by label, and group values, for lists that the library adds up and we average."""
    times = lists if result.get("over_lists") == "summed" else 1
    label = label_of(result)
    if "value" in result:
        return {"scores": {label: result["value"]}, "values": {}}
    powers = {"MinMaxRatio": 0, "MaxMinRatio": 0, "Variance": 2}
    return {
        "scores": {
            f"{label}.{name}": value / times ** powers.get(name, 1)
            for name, value in result["aggregations"].items()
        },
        "values": {name: value / times for name, value in result["values"].items()},
    }


def document(arguments: list[str]) -> dict[str, Any]:
    """The last line that ``evenrank score --json`` prints."""
    answer = CliRunner().invoke(main, ["score", *arguments, "--json"])
    assert answer.exit_code == 0, answer.output
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return found


def by_label(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    scores = {}
    for score in found["scores"]:
        given = ",".join(f"{name}={value}" for name, value in score["parameters"].items())
        label = score["metric"] + (f"({given})" if given else "")
        scores[label + (f".{score['aggregation']}" if score["aggregation"] else "")] = score
    assert len(scores) == len(found["scores"])
    return scores


@pytest.mark.parametrize("case", NOTEBOOK, ids=[case["metric"] for case in NOTEBOOK])
def test_the_notebook_through_a_frame(case: dict[str, Any]) -> None:
    expected = expected_of(case, 1)
    label = label_of(case)
    found = scored(rows_of(case), metrics=[label])
    assert {name: found.score(name)["value"] for name in expected["scores"]} == agree(
        expected["scores"]
    )
    if expected["values"]:
        assert found.values(label) == agree(expected["values"])
        assert len(expected["scores"]) == len(AGGREGATIONS)


@pytest.mark.parametrize("file", FILES)
def test_the_notebook_through_the_shell(tmp_path: Path, file: str) -> None:
    # The five cases share two rankings; each ranking is one file, scored once.
    for ranking in {tuple(case["ranking"]) for case in NOTEBOOK}:
        here = [case for case in NOTEBOOK if tuple(case["ranking"]) == ranking]
        path = write(rows_of(here[0]), tmp_path / here[0]["metric"] / file)
        found = document([str(path)])
        assert (found["lists"], found["rows"], found["rejected"]) == (1, 10, 0)
        scores = by_label(found)
        for case in here:
            expected = expected_of(case, 1)
            for label, value in expected["scores"].items():
                assert scores[label]["value"] == agree(value), label
                assert scores[label]["groups"] == agree(expected["values"])
                worst, best = ("W", "M") if expected["values"] else (None, None)
                assert (scores[label]["worst_group"], scores[label]["best_group"]) == (worst, best)


@pytest.mark.parametrize(
    ("case", "file"),
    [
        pytest.param(case, FILES[at % len(FILES)], id=f"{case['name']}: {FILES[at % len(FILES)]}")
        for at, case in enumerate(LIBRARY)
    ],
)
def test_the_library(tmp_path: Path, case: dict[str, Any], file: str) -> None:
    rows = rows_of(case)
    lists = len(case["lists"])
    labels = [label_of(result) for result in case["results"]]
    frame = scored(rows, metrics=labels)
    path = write(rows, tmp_path / file)
    asked = [f"--metric={label}" for label in labels]
    shell = by_label(document([str(path), "--attribute", "group", *asked]))
    for result in case["results"]:
        expected = expected_of(result, lists)
        for label, value in expected["scores"].items():
            attribute = None if result["metric"] == "IAA" else "group"
            assert frame.score(label, attribute)["value"] == agree(value), label
            assert shell[label]["value"] == agree(value), label
            assert shell[label]["groups"] == agree(expected["values"]), label
        if expected["values"]:
            assert frame.values(label_of(result)) == agree(expected["values"])


def test_the_golden_files_cover_every_metric_and_aggregation() -> None:
    results = [result for case in LIBRARY for result in case["results"]]
    assert {result["metric"] for result in results} == {metric.name for metric in TEN}
    for result in [*results, *NOTEBOOK]:
        if "aggregations" in result:
            assert set(result["aggregations"]) == {each.name for each in AGGREGATIONS}


SHAPE = {
    "metric": str,
    "parameters": dict,
    "attribute": (str, type(None)),
    "aggregation": (str, type(None)),
    "value": (float, type(None)),
    "reason": (str, type(None)),
    "worst_group": (str, type(None)),
    "best_group": (str, type(None)),
    "groups": dict,
}


def test_the_document_has_the_shape_that_was_promised(tmp_path: Path) -> None:
    rows = rows_of(LIBRARY[0])
    broken = {**rows[0], "list_id": "broken", "rank": 0}
    path = write([*rows, broken], tmp_path / "log.csv")
    (tmp_path / "audit.yaml").write_text(
        "attributes: [group]\nrejects: {max_rejected_share: 1.0}\n", "utf-8"
    )
    found = document([str(path), "--config", str(tmp_path / "audit.yaml")])
    assert set(found) == {"lists", "rows", "rejected", "scores"}
    assert (found["lists"], found["rows"], found["rejected"]) == (1, len(rows), 1)
    grouped = [metric for metric in TEN if metric.per_group]
    assert len(found["scores"]) == len(AGGREGATIONS) * len(grouped) + len(TEN) - len(grouped)
    for score in found["scores"]:
        assert list(score) == list(SHAPE)
        for name, kind in SHAPE.items():
            assert isinstance(score[name], kind), name
        assert (score["value"] is None) == (score["reason"] is not None)
    scores = by_label(found)
    assert scores["AWRF(p=0.1).LTwo"]["parameters"] == {"p": 0.1}
    assert scores["EXP.LTwo"]["parameters"] == {}
    assert scores["IAA"]["attribute"] is None
    assert scores["NDKL"]["groups"] == {}
    assert scores["ERBR(decay=0.75).LTwo"]["reason"] == "relevance_not_binary"
    assert scores["ERBR(decay=0.75).LTwo"]["groups"] == {"a": None, "b": None}


def test_options_of_the_shell_reach_the_metrics_that_take_them(tmp_path: Path) -> None:
    path = write(rows_of(LIBRARY[0]), tmp_path / "log.csv")
    found = document([str(path), "--p=0.2", "--decay=0.6", "--k=3"])
    said = {score["metric"]: score["parameters"] for score in found["scores"]}
    assert said["AWRF"] == {"p": 0.2, "k": 3}
    assert said["ERBP"] == {"decay": 0.6, "k": 3}
    assert said["EXP"] == {"k": 3}
    assert said["ARP"] == said["NDKL"] == said["IAA"] == {}
    values = {
        rank: sum(100 * 0.2 * 0.8 ** (at - 1) for at in rank if at <= 3) / len(rank)
        for rank in ((3, 4, 7), (1, 2, 5, 6, 8))
    }
    awrf = next(score for score in found["scores"] if score["metric"] == "AWRF")
    for mine, value in zip(awrf["groups"].values(), values.values(), strict=True):
        assert isclose(mine, value, rel_tol=1e-12)


def test_an_intersection_and_an_item_table_through_the_shell(tmp_path: Path) -> None:
    rows = [
        {"list_id": "l", "item_id": item, "rank": rank} for rank, item in enumerate("xyz", start=1)
    ]
    items = [
        {"item_id": "x", "sex": "f", "town": "A"},
        {"item_id": "y", "sex": "m", "town": "A"},
        {"item_id": "w", "sex": "m", "town": "A"},
    ]
    log, table = write(rows, tmp_path / "log.jsonl"), write(items, tmp_path / "items.csv")
    found = document(
        [str(log), "--items", str(table), "--attribute", "sex*town", "--metric=EXP",
         "--denominator=catalogue"]
    )  # fmt: skip
    score = by_label(found)["EXP(denominator=catalogue).MaxMinRatio"]
    second = 1 / 1.584962500721156
    assert score["attribute"] == "sex*town"
    assert score["parameters"] == {"denominator": "catalogue"}
    assert score["groups"] == {"f*A": 1.0, "m*A": agree(second / 2), "unknown": None}
    assert score["value"] == agree(2 / second)
    assert (score["worst_group"], score["best_group"]) == ("m*A", "f*A")
