"""What a person sees first of a batch of many scores, and that nothing is lost by it."""

from pathlib import Path

import pytest
from command import evenrank
from histories import NIGHTS, put, score, small_audit
from stores import write_settings

from pipeline.history.queries import labelled
from pipeline.history.series import Row
from pipeline.publish.copy import publish
from pipeline.settings.audit import Settings
from pipeline.settings.load import load_settings
from pipeline.terminal.first_look import distance, first_look, key_of

FAR = {"expected": 0.98, "noise_limit": 0.95, "p_noise": 0.001}
NEAR = {"expected": 0.98, "noise_limit": 0.95, "p_noise": 0.2}


def unjudged(value: float, **more: object) -> Row:
    return score(value, **{"status": "not_judged", **NEAR, **more})


def device(name: str) -> dict[str, str]:
    return {"slice": "device", "slice_value": name}


def history(folder: Path, rows: list[Row]) -> tuple[Settings, list[Row]]:
    settings = small_audit(folder)
    put(settings, NIGHTS[0], rows)
    return settings, labelled(settings)


def test_judged_scores_come_first_by_verdict_news_whole_batches_and_room(tmp_path: Path) -> None:
    rows = [
        score(0.95),
        score(0.85, attribute="region"),
        score(0.5, **device("app")),
        score(0.6, **device("web")),
        score(0.7, attribute="region", **device("web")),
    ]
    settings, rows = history(tmp_path, rows)
    news = {key_of(row) for row in rows if row["value"] == 0.7}
    (section,) = first_look(rows, settings, news)
    assert [row["value"] for row in section.rows] == [0.7, 0.5, 0.6, 0.85, 0.95]
    assert section.title == "Judged: 3 breach, 2 ok, 1 new"


def test_of_the_others_what_moved_and_what_is_far_from_chance(tmp_path: Path) -> None:
    rows = [
        score(0.9),
        unjudged(0.4, aggregation="MaxMinDiff", **FAR),
        unjudged(0.5, metric="ARP", **FAR),
        unjudged(0.6, metric="ARP", aggregation="MaxMinDiff", **FAR),
        unjudged(0.7, metric="NDKL", aggregation=None),
        unjudged(0.8, metric="IAA", aggregation=None),
        unjudged(0.3, metric="ARP", **FAR, **device("app")),
    ]
    settings, rows = history(tmp_path, rows)
    news = {key_of(row) for row in rows if row["metric"] == "IAA"}
    judged, moved, far = first_look(rows, settings, news)
    assert [row["value"] for row in judged.rows] == [0.9]
    assert [row["value"] for row in moved.rows] == [0.8]
    # Other scores of a metric that is judged, or shown, say the same again; slices come last.
    assert [row["value"] for row in far.rows] == [0.5, 0.3]


def test_where_nothing_stands_out_each_metric_is_shown_once(tmp_path: Path) -> None:
    rows = [
        unjudged(0.97, metric=metric, aggregation=way)
        for metric in ("EXP", "ARP")
        for way in ("MinMaxRatio", "MaxMinDiff")
    ]
    settings, rows = history(tmp_path, rows)
    (section,) = first_look(rows, settings)
    assert [(row["metric"], row["aggregation"]) for row in section.rows] == [
        ("EXP", "MinMaxRatio"),
        ("ARP", "MinMaxRatio"),
    ]


def test_distance_is_in_parts_of_what_chance_does() -> None:
    high = {"value": 0.3, "expected": 0.1, "noise_limit": 0.2}
    assert distance(high) == 2
    assert distance({**high, "value": 0.0}) == -1
    assert distance({**high, "expected": None}) == 0
    assert distance({**high, "value": None}) == 0


# -- the command


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = write_settings(
        tmp_path,
        "attributes: [gender]\nthresholds: {EXP.MinMaxRatio: {min: 0.8}}\n"
        "slices: [device]\nmetrics: [EXP, ARP]\n",
    )
    settings = load_settings(file)
    slices = [device(f"d{at:03}") for at in range(450)]
    rows = [score(0.9), score(0.5, **slices[7])]
    rows += [unjudged(0.9, metric="ARP", **each) for each in slices]
    put(settings, NIGHTS[0], rows)
    return file


def test_a_batch_of_many_scores_says_how_many_are_left_out(config: Path) -> None:
    text = evenrank("history", "--batch", NIGHTS[0], "--config", config).stdout
    assert text.startswith(f"Batch {NIGHTS[0]}\n\nJudged: 1 breach, 1 ok: ")
    assert "d007" in text
    assert text.endswith("450 more scores: --all shows them, --format csv exports them.\n")
    assert len(text.splitlines()) < 30


def test_a_batch_begins_with_what_it_comes_to(config: Path) -> None:
    publish(load_settings(config))
    text = evenrank("history", "--batch", NIGHTS[0], "--config", config).stdout
    head, _, chip, sentence, *_ = text.splitlines()
    assert head == f"Batch {NIGHTS[0]}"
    assert chip.startswith("✕ Breach, 1 January 2026   ")
    assert "got 50% of the exposure per item" in sentence
    assert max(map(len, text.splitlines())) <= 80


def test_all_shows_every_score(config: Path) -> None:
    text = evenrank("history", "--batch", NIGHTS[0], "--all", "--config", config).stdout
    assert text.count("device d") == 451
    assert "more scores" not in text


def test_programs_get_every_score(config: Path) -> None:
    words = ("history", "--batch", NIGHTS[0], "--format", "csv", "--config", config)
    assert len(evenrank(*words).stdout.splitlines()) == 1 + 452
