"""Proposed limits: where they come from, and that the past would seldom have breached them."""

import json
import math
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from command import evenrank
from histories import NIGHTS, Given, quiet, score, small_audit, write
from stores import write_settings

from metrics import parse_score
from pipeline.history.series import Row
from pipeline.history.suggestions import (
    LEAST,
    Suggestion,
    loosest,
    ranked_attributes,
    suggested,
    suggestions,
)
from pipeline.settings.load import load_settings, settings_from

RATIO, NDKL = "EXP.MinMaxRatio", "NDKL"
CHANCE = {"expected": 0.98, "noise_limit": 0.93}


def rows_of(values: list[float | None], **more: Any) -> list[Row]:
    said = {"status": "not_judged", **CHANCE, **more}
    return [score(value, batch=NIGHTS[at], **said) for at, value in enumerate(values)]


def one(values: list[float | None], label: str = RATIO, **more: Any) -> Suggestion:
    (found,) = suggested(rows_of(values, **more), {label: parse_score(label)})
    return found


# -- the rule


def test_the_strictest_limit_that_leaves_room_for_ordinary_batches() -> None:
    values = [0.95 + 0.01 * (at % 3 - 1) for at in range(28)]
    # median 0.95, median distance 0.01: 0.95 - 3 * 1.4826 * 0.01 = 0.9055
    found = one(values)
    assert (found.limit_side, found.limit_value) == ("min", 0.90)
    assert found.reason == (
        "In 28 batches usually 0.950, ordinary ones down to 0.906, the lowest 0.940 (2026-01-01). "
        "Chance alone passes 0.930 in 5 of 100 batches. "
        "0.9 leaves room for both; none of these batches lies beyond it. "
        "Four fifths (0.8), a convention and not a law, would be looser."
    )


def test_chance_decides_where_it_reaches_further() -> None:
    values = [0.99 + 0.001 * (at % 3 - 1) for at in range(28)]
    assert one(values).limit_value == 0.93
    assert one(values, noise_limit=None).limit_value == 0.98
    assert "Chance" not in one(values, noise_limit=None).reason


def test_one_bad_batch_moves_nothing_and_is_named() -> None:
    values: list[float | None] = [0.95 + 0.01 * (at % 3 - 1) for at in range(28)]
    assert one([*values[:13], 0.3, *values[14:]]).limit_value == 0.90
    assert "1 batch lies beyond it (2026-01-14)" in one([*values[:13], 0.3, *values[14:]]).reason


def test_a_limit_that_the_past_would_often_have_breached_is_never_proposed() -> None:
    random = Random(3)
    for _ in range(200):
        count = random.randint(LEAST, 40)
        bad = random.random() / 2
        values = [
            random.uniform(0.2, 0.6) if random.random() < bad else random.gauss(0.9, 0.02)
            for _ in range(count)
        ]
        newest = values[-28:]
        limit = one(values).limit_value
        if limit is not None:
            assert sum(value < limit for value in newest) <= len(newest) // 20


def test_the_limit_of_what_is_unfair_when_high_is_a_maximum() -> None:
    values = [0.1 + 0.01 * (at % 3 - 1) for at in range(28)]
    found = one(values, NDKL, metric="NDKL", aggregation=None, expected=0.08, noise_limit=0.12)
    # 0.1 + 3 * 1.4826 * 0.01 = 0.1445
    assert (found.limit_side, found.limit_value) == ("max", 0.15)
    assert "the highest 0.110" in found.reason
    assert "convention" not in found.reason


def test_a_chronic_gap_is_not_called_fine() -> None:
    found = one([0.5 + 0.01 * (at % 3 - 1) for at in range(28)])
    assert found.limit_value == 0.45
    assert "would be stricter: 28 of the 28 batches lie below it" in found.reason


def test_where_values_are_everywhere_no_limit_is_made_up() -> None:
    found = one([0.1, 0.9] * 10)
    assert (found.limit_value, found.yaml) == (None, None)
    assert found.reason.endswith("That leaves no limit that would say anything.")


@pytest.mark.parametrize("count", range(1, LEAST))
def test_too_few_batches_say_so(count: int) -> None:
    found = one([0.97] * count)
    assert found.limit_value == 0.8
    assert found.reason.startswith(f"Not enough batches yet to take a limit from: {count} of 7.")
    assert "four fifths (0.8), a convention and not a law" in found.reason
    # No convention where chance leaves no room for it, or for what is no ratio.
    assert one([0.97] * count, noise_limit=0.75).limit_value is None
    assert one([0.97] * count, noise_limit=None).limit_value is None
    low = one([0.01] * count, NDKL, metric="NDKL", aggregation=None)
    assert low.limit_value is None


def test_batches_without_a_value_do_not_count() -> None:
    assert "6 of 7" in one([0.97] * 6 + [None] * 5).reason


def test_only_the_newest_batches_count() -> None:
    assert one([0.5] * 30 + [0.97] * 28).limit_value == one([0.97] * 28).limit_value


def test_attributes_are_ranked_by_their_usual_distance_from_chance() -> None:
    rows = [
        *rows_of([0.97] * 8, attribute="gender"),
        *rows_of([0.88] * 8, attribute="region"),
        *rows_of([0.97] * 7 + [0.1], attribute="age"),
        *rows_of([0.9] * 8, attribute="country", expected=None),
    ]
    found = suggested(rows, {RATIO: parse_score(RATIO)})
    assert [each.attribute for each in found] == ["region", "age", "gender", "country"]
    assert ranked_attributes(found)["region"] == pytest.approx((0.98 - 0.88) / (0.98 - 0.93))
    assert ranked_attributes(found)["country"] is None


def test_limits_have_two_digits_on_any_scale() -> None:
    for size in (1e-4, 0.01, 1.0, 37.0):
        values = [size * (1 + 0.01 * (at % 3 - 1)) for at in range(28)]
        found = one(values, NDKL, metric="NDKL", aggregation=None, noise_limit=None, expected=None)
        assert found.limit_value is not None
        assert float(f"{found.limit_value:.2g}") == found.limit_value
        assert max(values) <= found.limit_value <= 1.2 * size


# -- as lines of the settings


@pytest.mark.parametrize("attribute", ["gender", "gender*region", "no", "1", "Größe, alt: neu"])
def test_lines_are_settings(attribute: str) -> None:
    found = one([0.97] * 8, attribute=attribute)
    said = yaml.safe_load(found.yaml or "")
    assert said == {
        "thresholds": {RATIO: {"min": 0.93, "attributes": [attribute], "slices": ["all"]}}
    }
    settings = settings_from({"attributes": [attribute.split("*")], **said}, folder=Path())
    assert settings.thresholds[RATIO].min == 0.93


def test_one_limit_for_several_attributes_leaves_room_for_all() -> None:
    rows = [*rows_of([0.97] * 8), *rows_of([0.88] * 8, attribute="region")]
    found = suggested(rows, {RATIO: parse_score(RATIO)})
    chosen = loosest(found)
    assert chosen is not None
    assert chosen.limit_value == min(each.limit_value or math.inf for each in found) == 0.88
    assert loosest([]) is None


# -- from a history


def test_scores_with_a_threshold_slices_and_gated_batches_are_left_out(tmp_path: Path) -> None:
    settings = small_audit(tmp_path, metrics=["EXP", "ARP"])
    each = [
        score(0.9),
        score(0.9, metric="ARP", status="not_judged"),
        score(0.1, metric="ARP", status="not_judged", slice="device", slice_value="app"),
        score(0.2, metric="ARP", status="not_judged", aggregation="MaxMinDiff"),
    ]
    write(settings, [Given(night, each) for night in NIGHTS[:9]])
    (found,) = suggestions(settings)
    assert (found.label, found.attribute) == ("ARP.MinMaxRatio", "gender")
    assert "In 9 batches usually 0.900" in found.reason


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = write_settings(tmp_path, "attributes: [gender, region]\nmetrics: [EXP, EXPU, ARP]\n")
    given = [
        Given(
            night,
            [
                score(quiet(at, level), metric=metric, attribute=name, status="not_judged")
                for metric in ("EXP", "EXPU", "ARP")
                for name, level in (("gender", 0.95), ("region", 0.9))
            ],
        )
        for at, night in enumerate(NIGHTS[:12])
    ]
    write(load_settings(file), given)
    return file


def test_what_is_printed_is_settings_with_comments(config: Path, tmp_path: Path) -> None:
    text = evenrank("suggest", "--config", config).stdout
    assert max(map(len, text.splitlines())) <= 80
    said = yaml.safe_load(text)
    assert {*said["thresholds"]} == {RATIO, "ARP.MinMaxRatio"}
    assert said["thresholds"][RATIO]["attributes"] == ["gender", "region"]
    assert "# 1 more score: --all proposes limits for them too." in text
    assert "no pass marks" in text
    copied = tmp_path / "copied.yaml"
    copied.write_text(config.read_text() + text)
    assert load_settings(copied).thresholds[RATIO].min == said["thresholds"][RATIO]["min"]


def test_all_and_some_can_be_asked_for(config: Path) -> None:
    every = evenrank("suggest", "--all", "--config", config).stdout
    assert {*yaml.safe_load(every)["thresholds"]} == {
        f"{name}.MinMaxRatio" for name in ("EXP", "EXPU", "ARP")
    }
    words = ("suggest", "--metric", "EXPU", "--attribute", "region", "--config", config)
    said = yaml.safe_load(evenrank(*words).stdout)
    assert {*said["thresholds"]} == {"EXPU.MinMaxRatio"}
    assert said["thresholds"]["EXPU.MinMaxRatio"]["attributes"] == ["region"]


def test_programs_get_a_row_for_each_limit(config: Path) -> None:
    rows = json.loads(evenrank("suggest", "--json", "--config", config).stdout)["suggestions"]
    assert len(rows) == 6
    for row in rows:
        assert {"label", "attribute", "slices", "limit_side", "limit_value", "reason"} <= {*row}
        limit = yaml.safe_load(row["yaml"])["thresholds"][row["label"]]
        assert limit[row["limit_side"]] == row["limit_value"]


def test_without_anything_to_propose(config: Path, tmp_path: Path) -> None:
    new = write_settings(tmp_path / "new", "attributes: [gender]\n")
    assert evenrank("suggest", "--config", new).exit_code == 4
    assert evenrank("suggest", "--attribute", "age", "--config", config).exit_code == 4
    wrong = evenrank("suggest", "--metric", "EXPO", "--config", config)
    assert wrong.exit_code == 2
    assert "EXPO" in wrong.stderr
