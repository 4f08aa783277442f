"""What audit.yaml may say, and what a reader of a mistake in it is told."""

from datetime import date
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from logs import TEN
from places import ROOT

from pipeline.errors import SettingsError
from pipeline.settings.audit import Settings
from pipeline.settings.batch_keys import check_batch_key
from pipeline.settings.load import load_settings, settings_from

RATIO = "EXP.MinMaxRatio"


def settings(**said: Any) -> Settings:
    return settings_from({"attributes": ["gender"], **said}, folder=Path())


def refusal(**said: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        settings(**said)
    return str(caught.value)


def loaded(folder: Path, text: str) -> Settings:
    path = folder / "audit.yaml"
    path.write_text(text, encoding="utf-8")
    return load_settings(path)


def load_refusal(folder: Path, text: str) -> str:
    with pytest.raises(SettingsError) as caught:
        loaded(folder, text)
    return str(caught.value)


# -- what is said when nothing is said


def test_defaults() -> None:
    found = settings()
    assert found.metrics == tuple(metric.usual.label for metric in TEN)
    assert found.thresholds == {}
    assert (found.ranks.start, found.ranks.gaps) == (1, "reject")
    assert (found.rejects.policy, found.rejects.max_rejected_share) == ("drop_list", 0.05)
    assert not found.unknown_group.in_aggregations
    assert (found.missing_relevance, found.missing_click) == ("undefined", "undefined")


def test_the_commented_example_says_the_defaults() -> None:
    found = load_settings(ROOT / "audit.yaml")
    example = ("folder", "items", "attributes", "slices", "metrics", "labels", "thresholds")
    example = (*example, "schedule")
    default = settings()
    for name in Settings.model_fields:
        if name not in example:
            assert getattr(found, name) == getattr(default, name), name
    assert found.schedule.start == date(2026, 1, 1)
    assert set(default.metrics) < set(found.metrics)
    assert set(found.thresholds) <= {f"{m.usual.label}.MinMaxRatio" for m in TEN}


def test_the_example_names_every_setting() -> None:
    text = (ROOT / "audit.yaml").read_text(encoding="utf-8")
    for name in Settings.model_fields:
        if name != "folder":
            assert f"\n{name}:" in text or f"\n# {name}:" in text, name


def test_names_and_intersections() -> None:
    found = settings(attributes=["gender", "region", ["gender", "region"]])
    assert found.attribute_names == ("gender", "region", "gender*region")
    assert found.attribute_columns == ("gender", "region")


def test_labels_are_printed_one_way() -> None:
    found = settings(
        metrics=["AWRF(p=0.10)", "EXP@10"],
        thresholds={"AWRF(p = 0.1).MaxMinDiff": {"max": 5}},
    )
    assert found.metrics == ("AWRF(p=0.1)", "EXP@10")
    assert set(found.thresholds) == {"AWRF(p=0.1).MaxMinDiff"}


# -- one wrong setting


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"attributes": []}, ["attributes", "at least one"]),
        ({"evidence": {"resamples": 39}}, ["evidence", "resamples: 39", "at least 40"]),
        ({"evidence": {"noise_draws": 39}}, ["evidence", "noise_draws: 39", "at least 40"]),
        ({"notify": {"command": []}}, ["notify.command", "at least one"]),
        ({"notify": {"command": "tell --now"}}, ["notify.command", "['tell', '--now']"]),
        ({"notify": {"webhook": "ftp://x"}}, ["notify.webhook", "http:// or https://"]),
        ({"attributes": ["rank"]}, ["attributes", "rank has a meaning of its own"]),
        ({"attributes": ["all"]}, ["attributes", "all has a meaning of its own"]),
        ({"attributes": ["a", "a"]}, ["attributes", "a stands twice"]),
        ({"attributes": [["a", "a"]]}, ["attributes", "a*a names an attribute twice"]),
        ({"attributes": [[]]}, ["attributes", "an intersection of no attributes"]),
        ({"attributes": ["a*b"]}, ["attributes", "'a*b' cannot name a column"]),
        ({"attributes": [" a"]}, ["attributes", "' a' cannot name a column"]),
        ({"attributes": [""]}, ["attributes", "'' cannot name a column"]),
        ({"attributes": ["a\nb"]}, ["attributes", "cannot name a column"]),
        ({"attributes": ["x" * 201]}, ["attributes", "cannot name a column"]),
        ({"attributes": [3]}, ["attributes.0", "string"]),
        ({"attributes": {"gender": 1}}, ["attributes", "write a list"]),
        ({"attributes": ["a", "A"]}, ["a and A differ only in case"]),
        ({"slices": ["gender"]}, ["gender is both a slice and an attribute"]),
        ({"slices": ["item_id"]}, ["slices", "item_id has a meaning of its own"]),
        ({"slices": ["d", "d"]}, ["slices", "d stands twice"]),
        ({"slices": ["Gender"]}, ["Gender and gender differ only in case"]),
        ({"columns": {"rnak": "r"}}, ["columns", "rnak", "did you mean rank?"]),
        ({"columns": {"rank": 5}}, ["columns.rank", "string"]),
        ({"columns": {"rank": ""}}, ["columns.rank"]),
        (
            {"columns": {"rank": "x", "click": "y", "list_id": "x", "item_id": "x"}},
            ["columns: 'x' stands for rank and list_id and item_id", "one of them only"],
        ),
        (
            {
                "slices": ["device"],
                "columns": {"gender": "a", "device": "a", "rank": "b", "click": "b"},
            },
            ["'a' stands for gender and device", "'b' stands for rank and click"],
        ),
        ({"logs": "logs/*.csv"}, ["logs", "'logs/*.csv'", "{batch}"]),
        ({"logs": ["a/{batch}", "b"]}, ["logs", "'b'", "{batch}"]),
        ({"logs": []}, ["logs", "at least one path"]),
        ({"metrics": ["EXPP"]}, ["metrics", "EXPP", "did you mean EXP?"]),
        ({"metrics": ["EXP", "EXP"]}, ["metrics", "EXP stands twice"]),
        ({"metrics": ["AWRF", "AWRF(p=0.1)"]}, ["metrics", "AWRF(p=0.1) stands twice"]),
        ({"metrics": ["AWRF(p=2)"]}, ["metrics", "AWRF(p=2)", "between 0 and 1"]),
        ({"metrics": ["EXP(p=0.5)"]}, ["metrics", "EXP(p=0.5)"]),
        ({"metrics": ["EXP@0"]}, ["metrics", "EXP@0", "whole number from 1"]),
        ({"metrics": ["NDKL@5"]}, ["metrics", "NDKL@5"]),
        ({"metrics": [RATIO]}, ["metrics", RATIO, "all are computed"]),
        ({"metrics": {"EXP": 1}}, ["metrics", "write a list"]),
        ({"metrics": []}, ["metrics", "at least one"]),
        ({"ranks": {"start": 2}}, ["ranks.start", "0 or 1"]),
        ({"ranks": {"gaps": "ignore"}}, ["ranks.gaps", "reject", "compact", "keep"]),
        ({"ranks": 1}, ["ranks", "name: value"]),
        ({"rejects": {"policy": "drop"}}, ["rejects.policy", "drop_list", "refuse_batch"]),
        ({"rejects": {"max_rejected_share": 1.1}}, ["rejects.max_rejected_share"]),
        ({"rejects": {"max_rejected_share": nan}}, ["rejects.max_rejected_share", "finite"]),
        ({"rejects": {"max_stored_rows": -1}}, ["rejects.max_stored_rows"]),
        ({"unknown_group": {"max_share": -0.1}}, ["unknown_group.max_share"]),
        ({"limits": {"rows": 0}}, ["limits.rows"]),
        ({"schedule": {"timezone": "Berlin"}}, ["schedule.timezone", "Europe/Berlin"]),
        ({"schedule": {"timezone": "../../etc/passwd"}}, ["schedule.timezone"]),
        ({"schedule": {"start": "2026-02-30"}}, ["schedule.start"]),
        (
            {"schedule": {"start": "2026-02-02", "end": "2026-02-01"}},
            ["schedule", "end lies before start"],
        ),
        ({"schedule": {"hour": 24}}, ["schedule.hour", "23"]),
        ({"threads": 0}, ["threads"]),
        ({"memory_limit": "lots"}, ["memory_limit", "8GB"]),
        ({"spill": ""}, ["spill"]),
        ({"busy_seconds": -1}, ["busy_seconds"]),
        ({"busy_seconds": inf}, ["busy_seconds", "finite"]),
        ({"top_of_list": "best"}, ["top_of_list", "good", "bad"]),
        ({"missing_click": "skip"}, ["missing_click", "undefined", "zero"]),
        ({"targets": {"gender": {"F": 0.5, "M": 0.4}}}, ["targets", "gender", "0.9, not 1"]),
        ({"targets": {"gender": {"F": 1.0}}}, ["targets", "gender", "two or more"]),
        ({"targets": {"gender": {"F": 2.0, "M": -1.0}}}, ["targets", "gender", "negative"]),
        ({"targets": {"sex": {"F": 0.5, "M": 0.5}}}, ["targets", "sex is not among"]),
        ({"folder": "/"}, ["folder", "unknown setting"]),
    ],
)
def test_a_wrong_setting_is_named(said: dict[str, Any], words: list[str]) -> None:
    text = refusal(**said)
    for word in words:
        assert word in text


def test_one_name_needs_no_brackets(tmp_path: Path) -> None:
    found = loaded(tmp_path, "attributes: gender\nslices: device\nmetrics: EXP\n")
    assert (found.attribute_names, found.slices, found.metrics) == (
        ("gender",),
        ("device",),
        ("EXP",),
    )


@pytest.mark.parametrize(
    ("label", "limit", "words"),
    [
        (RATIO, {"max": 0.8}, ["unfair when low", "give min, not max"]),
        ("EXP.MaxMinRatio", {"min": 2}, ["unfair when high", "give max, not min"]),
        ("EXP.MaxMinDiff", {"min": 0.1}, ["unfair when high", "give max, not min"]),
        ("EXP.Variance", {"min": 0.1}, ["unfair when high"]),
        ("NDKL", {"min": 0.1}, ["unfair when high", "give max, not min"]),
        (RATIO, {"min": nan}, ["min", "finite"]),
        (RATIO, {"min": -inf}, ["min", "finite"]),
        (RATIO, {"min": "high"}, ["min", "number"]),
        (RATIO, {"min": 1.5}, ["lies in [0, 1]", "1.5"]),
        ("EXP.MaxMinRatio", {"max": 0.5}, ["0.5"]),
        ("EXP.MaxMinDiff", {"max": -0.1}, ["-0.1"]),
        ("EXP.LTwo", {"max": 1}, ["no unfair side"]),
        ("EXP", {"min": 0.5}, ["say which, as in EXP.MinMaxRatio", RATIO]),
        ("EXP.MinMaxRation", {"min": 0.5}, ["did you mean MinMaxRatio?"]),
        ("EXPO.MinMaxRatio", {"min": 0.5}, ["there is no metric EXPO", "did you mean EXP?"]),
        ("exp.MinMaxRatio", {"min": 0.5}, ["exp", "did you mean EXP?"]),
        ("NDKL.MinMaxRatio", {"min": 0.5}, ["NDKL is one number"]),
        ("AWRF(p=0.3).MinMaxRatio", {"min": 0.5}, ["AWRF(p=0.3) is not computed"]),
        ("EXP MinMaxRatio", {"min": 0.5}, ["is not a label"]),
        (RATIO, {}, ["either min or max"]),
        (RATIO, {"min": 0.1, "max": 0.9}, ["either min or max"]),
        (RATIO, 0.8, []),
        (RATIO, {"min": 0.8, "minimum": 1}, ["minimum", "unknown setting"]),
        (RATIO, {"min": 0.8, "attributes": ["sex"]}, ["sex is not among the attributes"]),
        (RATIO, {"min": 0.8, "slices": ["market"]}, ["market is neither a slice nor 'all'"]),
    ],
)
def test_a_wrong_threshold_is_named(label: str, limit: Any, words: list[str]) -> None:
    text = refusal(thresholds={label: limit})
    assert "thresholds" in text
    for word in words:
        assert word in text


@pytest.mark.parametrize(
    ("label", "limit"),
    [
        (RATIO, {"min": 0}),
        (RATIO, {"min": 1, "attributes": ["gender"], "slices": ["all"]}),
        ("EXP.MaxMinRatio", {"max": 1}),
        ("EXP.MaxMinRatio", {"max": 1e6}),
        ("NDKL", {"max": 0.2}),
        ("IAA", {"max": 3}),
    ],
)
def test_thresholds_that_are_right(label: str, limit: dict[str, Any]) -> None:
    assert set(settings(thresholds={label: limit}).thresholds) == {label}


def test_one_score_has_one_threshold() -> None:
    labels = {"AWRF.MinMaxRatio": {"min": 0.9}, "AWRF(p=0.1).MinMaxRatio": {"min": 0.5}}
    assert "twice" in refusal(thresholds=labels)


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ({"rank": {}}, "did you mean ranks?"),
        ({"threshold": {}}, "did you mean thresholds?"),
        ({"ranks": {"gap": "keep"}}, "did you mean gaps?"),
        ({"rejects": {"max_rejected": 0.1}}, "did you mean max_rejected_share?"),
        ({"schedule": {"ours": 3}}, "did you mean hour?"),
        ({"zzzzzz": 1}, "unknown setting"),
    ],
)
def test_an_unknown_setting_and_the_one_that_was_meant(said: dict[str, Any], hint: str) -> None:
    text = refusal(**said)
    assert next(iter(said)) in text
    assert "unknown setting" in text
    assert hint in text


def test_all_wrong_settings_come_at_once(tmp_path: Path) -> None:
    text = load_refusal(
        tmp_path,
        "attributes: [rank]\nslices: [d, d]\nranks: {start: 7, gap: keep}\nzzz: 1\n"
        "metrics: [EXPP]\nrejects: {max_rejected_share: .nan}\nlogs: here\n",
    )
    head, *lines = text.splitlines()
    assert head == f"{tmp_path / 'audit.yaml'}: 8 problems"
    names = ("attributes", "slices", "ranks.start", "ranks.gap", "zzz", "metrics", "logs",
             "rejects.max_rejected_share")  # fmt: skip
    assert sorted(line.split(":")[0].strip() for line in lines) == sorted(names)


@pytest.mark.parametrize(
    ("said", "names"),
    [
        (
            {"thresholds": {RATIO: {"max": 1}, "EXP.LTwo": {"max": 1}, "ERB": {"max": 1}}},
            [RATIO, "EXP.LTwo", "ERB"],
        ),
        ({"metrics": ["EXPP", "NDKLL"]}, ["EXPP", "NDKLL"]),
        ({"slices": ["rank", "click"]}, ["rank", "click"]),
        ({"columns": {"rnak": "r", "clik": "c"}}, ["rnak", "clik"]),
        (
            {"targets": {"x": {"a": 0.5, "b": 0.5}}, "columns": {"rnak": "r"}},
            ["targets", "columns"],
        ),
    ],
)
def test_all_problems_of_one_setting_come_at_once(said: dict[str, Any], names: list[str]) -> None:
    text = refusal(**said)
    for name in names:
        assert name in text


# -- the file


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("attributes: [a\nslices: b\n", ["line 2"]),
        ("attributes: [a]\nranks:\n\tstart: 1\n", ["line 3"]),
        ("a: 1\n  b: 2\n", ["line 2"]),
        ("attributes: !!python/object/apply:os.system ['true']\n", ["line 1", "python/object"]),
        ("!!python/name:os.system\n", ["line 1", "python/name"]),
        ("attributes: [a]\n---\nattributes: [b]\n", ["line 2"]),
        ("- attributes\n", ["not a list"]),
        ("gender\n", ["not a str"]),
        ("5\n", ["not a int"]),
        ("", ["attributes", "required"]),
        ("# nothing\n", ["attributes", "required"]),
        ("attributes: [a]\n1: 2\n", ["1", "unknown setting"]),
        ("attributes: [a]\nnull: 2\n", ["None", "unknown setting"]),
    ],
)
def test_yaml_that_is_no_settings(tmp_path: Path, text: str, words: list[str]) -> None:
    found = load_refusal(tmp_path, text)
    assert found.startswith(str(tmp_path / "audit.yaml"))
    for word in words:
        assert word in found


def test_a_tag_runs_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    load_refusal(tmp_path, f"attributes: !!python/object/apply:os.mkdir ['{mark}']\n")
    assert not mark.exists()


def test_nothing_is_expanded(tmp_path: Path) -> None:
    found = loaded(tmp_path, "attributes: [a]\nstore: ${HOME}/x\nitems: $HOME\n")
    assert (found.store, found.items) == ("${HOME}/x", "$HOME")


def test_a_setting_stands_once(tmp_path: Path) -> None:
    text = load_refusal(tmp_path, "attributes: [a]\nthreads: 1\nattributes: [b]\n")
    assert "attributes" in text


@pytest.mark.parametrize("kind", ["missing", "folder", "latin-1"])
def test_a_file_that_cannot_be_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "my.yaml"
    if kind == "folder":
        path.mkdir()
    if kind == "latin-1":
        path.write_bytes(b"attributes: [g\xe9]\n")
    with pytest.raises(SettingsError, match=r"my\.yaml"):
        load_settings(path)


def test_without_a_file_a_reader_learns_where_to_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match=r"audit\.yaml: no such file; .*--config"):
        load_settings()


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    found = loaded(tmp_path, "attributes: [a]\nstore: ../s\n")
    assert found.path(found.store) == tmp_path / "../s"
    assert found.path("/elsewhere") == Path("/elsewhere")


# -- digests


@pytest.mark.parametrize(
    "said",
    [
        {"store": "elsewhere"},
        {"logs": "other/{batch}/*"},
        {"items": "items.parquet"},
        {"schedule": {"hour": 5}},
        {"limits": {"rows": 10}},
        {"threads": 2},
        {"memory_limit": "1GB"},
        {"spill": "elsewhere"},
        {"busy_seconds": 1},
        {"attributes": ["gender"]},
        {"metrics": [metric.name for metric in TEN]},
    ],
)
def test_what_no_number_depends_on_is_not_in_the_hash(said: dict[str, Any]) -> None:
    assert settings(**said).config_hash == settings().config_hash


@pytest.mark.parametrize(
    ("said", "rows_too"),
    [
        ({"attributes": ["sex"]}, True),
        ({"slices": ["device"]}, True),
        ({"columns": {"rank": "r"}}, True),
        ({"ranks": {"start": 0}}, True),
        ({"ranks": {"gaps": "keep"}}, True),
        ({"missing_relevance": "zero"}, True),
        ({"missing_click": "zero"}, True),
        ({"rejects": {"policy": "drop_row"}}, True),
        ({"metrics": ["EXP"]}, False),
        ({"metrics": ["AWRF(p=0.2)"]}, False),
        ({"top_of_list": "bad"}, False),
        ({"targets": {"gender": {"F": 0.5, "M": 0.5}}}, False),
        ({"thresholds": {RATIO: {"min": 0.8}}}, False),
        ({"unknown_group": {"in_aggregations": True}}, False),
    ],
)
def test_what_numbers_depend_on_is_in_the_hash(said: dict[str, Any], rows_too: bool) -> None:
    assert settings(**said).config_hash != settings().config_hash
    assert (settings(**said).rows_hash != settings().rows_hash) == rows_too


# -- names of batches


@pytest.mark.parametrize(
    "key", ["2026-01-05", "a", "0", "A.b_c-d", "x" * 64, "CON", "2026-01-05T00", "v1..2"]
)
def test_names_of_batches(key: str) -> None:
    assert check_batch_key(key) == key


@pytest.mark.parametrize(
    "key",
    [
        "",
        "../x",
        "..",
        ".",
        ".hidden",
        "a/b",
        "a\\b",
        "C:\\x",
        "/etc/passwd",
        "%2e%2e",
        "a b",
        "a\n",
        "2026-01-05\n",
        "x" * 65,
        "x" * 10_000,
        "trailing.",
        "-rf",
        "_x",
        "b' OR '1'='1",
        "é",
        "\u0660",
        "*",
        "[a]",
        "a\x00",
    ],
)
def test_names_that_are_no_batch(key: str) -> None:
    with pytest.raises(SettingsError, match="cannot name a batch") as caught:
        check_batch_key(key)
    assert len(str(caught.value)) < 300
