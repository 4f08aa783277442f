"""One answer to why a score moved: the right cause, with intervals, whatever column is asked of."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from click.testing import CliRunner
from stores import LENIENT, Rows, audit, deliver, lists, ranking

from pipeline.cli.explain import explain as command
from pipeline.compare.batches import cells
from pipeline.compare.batches.explain import explain
from pipeline.compare.batches.report import Explanation
from pipeline.errors import NoData, SettingsError
from pipeline.runs.batches import run_batch
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of

A, B = "2026-01-05", "2026-01-06"
LABEL = "EXP@1.MinMaxRatio"
QUERIES = 24


def night(
    batch: str,
    web: float,
    women: dict[str, float],
    *,
    seed: int,
    each: int = 40,
    named: Callable[[int, str], str] = lambda query, batch: f"q{query}",
) -> Rows:
    """``each`` lists of every query, a share ``web`` of them from there, the others from the app.

    ``women`` is the share of lists that a woman leads, by device; queries differ by up to 0.1.
    Markets are drawn, and say nothing of anything.
    """
    draw = np.random.default_rng(seed)
    rows: Rows = []
    for query in range(QUERIES):
        taste = 0.2 * query / QUERIES - 0.1
        for at in range(each):
            device = "web" if draw.random() < web else "app"
            leads = draw.random() < women[device] + taste
            rows += ranking(
                f"{batch}-{query}-{at}",
                "FM" if leads else "MF",
                query_id=named(query, batch),
                device=device,
                market=f"m{draw.integers(2)}",
                relevance=1,
            )
    return rows


BEFORE = {"app": 0.6, "web": 0.3}
AFTER = {"app": 0.45, "web": 0.15}
WORLDS: dict[str, tuple[float, dict[str, float]]] = {
    "no_change": (0.4, BEFORE),
    "mix": (0.8, BEFORE),
    "treatment": (0.4, AFTER),
    "both": (0.8, AFTER),
}
METRICS = ["EXP@1", "ARP", "IAA"]


def store(folder: Path, a: Rows, b: Rows, **said: Any) -> Settings:
    given = {
        "slices": ["device", "market"],
        "metrics": METRICS,
        "evidence": {**LENIENT, "resamples": 400},
    }
    settings = audit(folder, **{**given, **said})
    for batch, rows in ((A, a), (B, b)):
        deliver(folder, rows, batch=batch)
        outcome = run_batch(settings, batch)
        assert outcome.status == "done", outcome.message
    return settings


@pytest.fixture(scope="module", params=list(WORLDS))
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Settings]:
    cause: str = request.param
    web, women = WORLDS[cause]
    folder = tmp_path_factory.mktemp(cause)
    a, b = night(A, 0.4, BEFORE, seed=1), night(B, web, women, seed=2)
    return cause, store(folder, a, b)


def test_the_cause_is_the_one_that_there_is(world: tuple[str, Settings]) -> None:
    cause, settings = world
    found = explain(settings, B, LABEL)
    assert found.answer.by == ("query", "device", "market")
    assert found.answer.cause == cause
    assert min(found.answer.shared or (0,)) > 0.8


def test_the_answer_adds_up_and_can_be_turned(world: tuple[str, Settings]) -> None:
    _, settings = world
    forth, back = explain(settings, B, LABEL), explain(settings, A, LABEL, against=B)
    for found in (forth, back):
        assert all(each is not None for each in parts_of(found))
        change, mix, treatment = (each.value for each in parts_of(found))
        assert mix + treatment == pytest.approx(change, abs=1e-12)
        assert change == pytest.approx(found.after.value - found.before.value, abs=1e-12)
    assert forth.answer.cause == back.answer.cause
    for one, other in zip(parts_of(forth), parts_of(back), strict=True):
        assert one.value == pytest.approx(-other.value, abs=1e-12)
        assert one.lower == pytest.approx(-other.upper, abs=1e-9)


def parts_of(found: Explanation) -> tuple[Any, Any, Any]:
    return found.answer.change, found.answer.mix, found.answer.treatment


@pytest.mark.parametrize("world", ["mix"], indirect=True)
def test_by_another_column_it_looks_like_treatment(world: tuple[str, Settings]) -> None:
    _, settings = world
    found = explain(settings, B, LABEL)
    for way in ("market", "query"):
        high = found.splits[way].score.treatment_interval[1]
        assert high is not None
        assert high < 0
    # Who asks by one column is answered by that one, and told so.
    asked = explain(settings, B, LABEL, by=["market"])
    assert asked.answer.by == ("market",)
    assert "; by market)" in asked.sentence
    assert explain(settings, B, LABEL, by=["device"]).answer.cause == "mix"


@pytest.mark.parametrize("world", ["mix"], indirect=True)
@pytest.mark.parametrize(
    ("asked", "by"),
    [
        (["market", "device"], ("market", "device")),
        (["device", "query"], ("query", "device")),
        (["device"], ("device",)),
    ],
)
def test_columns_can_be_named(
    world: tuple[str, Settings], asked: list[str], by: tuple[str, ...]
) -> None:
    found = explain(world[1], B, LABEL, by=asked)
    assert found.answer.by == by
    assert set(found.splits) == set(asked)
    assert found.answer.cause == "mix"


@pytest.mark.parametrize("world", ["mix", "treatment", "no_change"], indirect=True)
def test_what_is_counted_per_slice_only_is_answered_by_one_column(
    world: tuple[str, Settings],
) -> None:
    cause, settings = world
    found = explain(settings, B, "ARP.MinMaxRatio")
    assert found.answer.cause == cause
    if cause == "mix":
        assert found.answer.by == ("device",)


def test_every_part_has_an_interval(world: tuple[str, Settings]) -> None:
    _, settings = world
    found = explain(settings, B, LABEL)
    for way in ("device", "market"):
        each = found.splits[way]
        for change in (each.score, *each.groups.values()):
            for value, ends in (
                (change.change, change.change_interval),
                (change.mix, change.mix_interval),
                (change.treatment, change.treatment_interval),
            ):
                assert ends[0] is not None
                assert ends[1] is not None
                assert ends[0] <= (value or 0) <= ends[1]
        for part in each.parts:
            assert None not in (*part.mix_interval, *part.treatment_interval)
    # One query says nothing of others.
    assert all(part.mix_interval == (None, None) for part in found.splits["query"].parts)


def test_the_same_lists_twice(tmp_path: Path) -> None:
    rows = night("x", 0.4, BEFORE, seed=1, each=5)
    settings = store(tmp_path, rows, rows)
    found = explain(settings, B, LABEL)
    assert found.answer.cause == "no_change"
    assert all(each.value == 0 for each in parts_of(found))
    assert "no change beyond chance" in found.sentence


def strangers() -> tuple[Rows, Rows]:
    """Two nights without a query in common, the second with other devices."""

    def named(query: int, batch: str) -> str:
        return f"{batch}-{query}"

    a = night(A, 0.4, BEFORE, seed=1, each=12, named=named)
    b = night(B, 0.9, BEFORE, seed=2, each=12, named=named)
    return a, b


def test_no_query_in_common(tmp_path: Path) -> None:
    settings = store(tmp_path, *strangers())
    found = explain(settings, B, LABEL)
    assert found.answer.by == ("device", "market")
    assert found.answer.cause == "mix"
    assert found.refused["query"] == "no query of one batch is in the other"
    with pytest.raises(SettingsError, match="no query of one batch is in the other"):
        explain(settings, B, LABEL, by=["query"])


def test_nothing_in_common(tmp_path: Path) -> None:
    # Without slices, nothing says whether others asked, or were answered otherwise.
    a, b = strangers()
    for rows in (a, b):
        for row in rows:
            del row["device"], row["market"]
    settings = store(tmp_path, a, b, slices=[])
    found = explain(settings, B, LABEL)
    assert found.answer.by == ()
    assert found.answer.cause == "unknown"
    assert found.answer.change.is_certain
    assert "beyond chance, but why is not known" in found.sentence
    assert not found.splits


def test_a_value_that_vanishes_is_mix(tmp_path: Path) -> None:
    women = {"app": 0.8, "web": 0.2}
    a = night(A, 0.5, women, seed=1)
    b = [row for row in night(B, 0.5, women, seed=2) if row["device"] == "app"]
    settings = store(tmp_path, a, b)
    for batch, against in ((B, A), (A, B)):
        found = explain(settings, batch, LABEL, against=against)
        assert found.answer.cause == "mix"
        assert found.answer.by == ("query", "device", "market")


def test_a_group_that_only_one_night_has(tmp_path: Path) -> None:
    a = night(A, 0.4, BEFORE, seed=1, each=10)
    extra = lists(
        *(
            ranking(f"x{n}", "XFM", query_id=f"q{n}", device="app", market="m0")
            for n in range(QUERIES)
        )
    )
    settings = store(tmp_path, a + extra, night(B, 0.4, BEFORE, seed=2, each=10))
    found = explain(settings, B, "EXP@1.MaxMinDiff")
    assert found.splits["device"].groups["X"].reason == "group_absent"
    assert found.splits["device"].groups["X"].change_interval == (None, None)
    assert found.answer.change.lower is not None
    assert "EXP@1.MaxMinDiff of gender" in found.sentence


@pytest.mark.parametrize("later", [3, 20])
def test_small_cells_stay_hidden(tmp_path: Path, later: int) -> None:
    def with_few(rows: Rows, batch: str, count: int) -> Rows:
        few = [
            ranking(f"{batch}-s{n}", "MF", query_id=f"q{n}", device="secret", market="m0")
            for n in range(count)
        ]
        return rows + lists(*few)

    a = with_few(night(A, 0.4, BEFORE, seed=1), A, 3)
    b = with_few(night(B, 0.8, BEFORE, seed=2), B, later)
    settings = store(tmp_path, a, b, privacy={"min_cell": 5})
    found = explain(settings, B, LABEL)
    # No cell is as small as a query, or as what slices have in common.
    assert found.answer.by == ("device",)
    assert found.answer.cause == "mix"
    document = json.dumps(found.document())
    assert "secret" not in document
    assert "secret" not in "\n".join(found.remarks())
    assert "left out" in {part.cell for part in found.splits["device"].parts}
    # What is left out is told of together with what hides it.
    least = min(
        n for part in found.splits["device"].parts for n in (part.lists_before, part.lists_after)
    )
    assert least > 20


def test_scores_that_are_not_explained(world: tuple[str, Settings]) -> None:
    with pytest.raises(SettingsError, match="it sums up items"):
        explain(world[1], B, "IAA")


def test_undefined_values(tmp_path: Path) -> None:
    a = night(A, 0.4, BEFORE, seed=1, each=3)
    men = lists(*(ranking(f"m{n}", "MM", device="app", market="m0") for n in range(9)))
    settings = store(tmp_path, a, men)
    with pytest.raises(NoData, match="one_group"):
        explain(settings, B, LABEL)


@pytest.mark.parametrize("table", ["bucket_counts", "bucket_lengths", "bucket_sums"])
def test_files_of_another_version(
    tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = (night(batch, 0.4, BEFORE, seed=1, each=3) for batch in (A, B))
    settings = store(tmp_path, a, b)
    with duckdb.connect(store_of(settings).batch(A)) as connection:
        connection.execute(f"DROP TABLE {table}")
    monkeypatch.setattr(cells, "check_batch_file", lambda *_: None)
    found = explain(settings, B, LABEL)
    if table == "bucket_lengths":
        assert found.answer.cause == "no_change"
    else:
        assert found.answer.change.lower is None or found.answer.by == ("query", "device", "market")
        assert found.splits["device"].score.mix_interval == (None, None)


# -- the command


def printed(settings: Settings, *words: str, charset: str = "utf-8") -> list[str]:
    path = settings.folder / "audit.yaml"
    said = {"slices": ["device", "market"], "metrics": METRICS, "attributes": ["gender"]}
    said |= {"threads": 1, "evidence": {**LENIENT, "resamples": 400}}
    path.write_text(json.dumps(said), encoding="utf-8")
    given = ["--batch", B, "--score", LABEL, "--config", str(path), *words]
    found = CliRunner(charset=charset).invoke(command, given)
    assert found.exit_code == 0, found.output
    return found.stdout.splitlines()


@pytest.mark.parametrize("charset", ["utf-8", "ascii"])
def test_the_first_sentence_answers(world: tuple[str, Settings], charset: str) -> None:
    cause, settings = world
    shown = printed(settings, charset=charset)
    assert max(map(len, shown)) <= 80
    first, answer = " ".join(" ".join(shown[: shown.index("")]).split()).split(". EXP@1", 1)
    assert first.startswith("F got ")
    sentence = f"EXP@1{answer}"
    assert sentence == explain(settings, B, LABEL).sentence
    assert sentence.count(". ") == 0
    words = {
        "no_change": "no change beyond chance",
        "mix": "mostly by mix",
        "treatment": "mostly by treatment",
        "both": "by both",
    }
    assert words[cause] in sentence
    assert "95% interval" in sentence
    assert sentence.endswith("; by query, device and market).")
    table = [line.split()[0] for line in shown[shown.index("") + 2 :][:3]]
    assert table == ["change", "mix", "treatment"]
    assert any(("±" if charset == "utf-8" else "+-") in line for line in shown)


def test_the_document_has_the_answer(world: tuple[str, Settings]) -> None:
    cause, settings = world
    document = json.loads(printed(settings, "--json")[-1])
    answer = document["answer"]
    assert answer["cause"] == cause
    assert answer["by"] == ["query", "device", "market"]
    assert set(answer["change"]) == {"value", "lower", "upper"}
    assert answer["sentence"].startswith(LABEL)
    total = answer["mix"]["value"] + answer["treatment"]["value"]
    assert total == pytest.approx(document["change"], abs=1e-12)
    assert {"score", "attribute", "before", "after", "change", "by", "not_split_by"} <= {*document}
