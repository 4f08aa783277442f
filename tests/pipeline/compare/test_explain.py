"""The split into mix and treatment: by hand, by law, and beside logs really put together."""

from collections import Counter
from math import fsum, lcm, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cases import number, some
from hypothesis import given
from hypothesis import strategies as st
from stores import Rows, audit, deliver, lists, ranking, write_csv

from metrics import METRICS, Measure, ScoreName, parse_score
from pipeline import score
from pipeline.compare.batches import cells as cells_module
from pipeline.compare.batches.cells import query_cells, slice_cells, stored
from pipeline.compare.batches.contributions import Split, additive, shared_out
from pipeline.compare.batches.dividing import check_way
from pipeline.compare.batches.explain import explain
from pipeline.compare.batches.partition import split
from pipeline.compare.batches.scorer import point
from pipeline.errors import SettingsError
from pipeline.history.manifest import manifest
from pipeline.runs.batches import run_batch
from pipeline.settings.audit import Settings

A, B = "2026-01-05", "2026-01-06"
TEN = "EXP.MinMaxRatio"


def store(folder: Path, a: Rows, b: Rows, **said: Any) -> Settings:
    """Two batches, run."""
    settings = audit(folder, **{"slices": ["device"], "metrics": ["EXP"], **said})
    for batch, rows in ((A, a), (B, b)):
        deliver(folder, rows, batch=batch)
        outcome = run_batch(settings, batch)
        assert outcome.status == "done", outcome.message
    return settings


def tops(device: str, women: int, count: int) -> Rows:
    """Lists of one woman and one man; in the first ``women`` of ``count`` she stands on top."""
    named = ((f"{device}{at}", "FM" if at < women else "MF") for at in range(count))
    return lists(*(ranking(name, genders, device=device) for name, genders in named))


def by_device(settings: Settings, label: str = TEN, **how: Any) -> Split:
    return explain(settings, B, label, **{"by": ["device"], **how}).splits["device"]


# -- by hand


@pytest.fixture(scope="module")
def simpson(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Women come first more often on both devices, and less often in all."""
    return store(
        tmp_path_factory.mktemp("simpson"),
        tops("app", 8, 20) + tops("web", 1, 10),
        tops("app", 5, 10) + tops("web", 3, 20),
        metrics=["EXP@1"],
    )


def test_by_hand(simpson: Settings) -> None:
    found = by_device(simpson, "EXP@1.MinMaxRatio")
    # Of 30 lists women lead 9 and 8; with the other's mix 20 * 5/10 + 10 * 3/20, 10 * 8/20 + 20/10.
    aa, bb, ab, ba = 9 / 21, 8 / 22, 6 / 24, 11.5 / 18.5
    assert found.score.before == pytest.approx(aa, rel=1e-12)
    assert found.score.after == pytest.approx(bb, rel=1e-12)
    assert found.score.mix == pytest.approx(((ab - aa) + (bb - ba)) / 2, rel=1e-12)
    assert found.score.treatment == pytest.approx(((ba - aa) + (bb - ab)) / 2, rel=1e-12)
    # Kitagawa: changes of shares times mean rates, and changes of rates times mean shares.
    women = found.groups["F"]
    assert women.mix == pytest.approx(-1 / 3 * (0.4 + 0.5) / 2 + 1 / 3 * (0.1 + 0.15) / 2)
    assert women.treatment == pytest.approx((2 / 3 + 1 / 3) / 2 * 0.1 + (1 / 3 + 2 / 3) / 2 * 0.05)


def test_every_slice_gets_better_and_the_whole_worse(simpson: Settings) -> None:
    found = by_device(simpson, "EXP@1.MinMaxRatio")
    assert all((each.after or 0) > (each.before or 0) for each in found.parts)
    assert found.score.change is not None
    assert found.score.change < 0 < (found.score.treatment or 0)
    assert all(each.mix < 0 < each.treatment for each in found.parts)


def test_parts_of_two_cells_are_shapley_values(simpson: Settings) -> None:
    found = by_device(simpson, "EXP@1.MinMaxRatio")
    parts = {each.cell: each.groups["F"] for each in found.parts}
    # With the lists of A: 20 and 10 become 10 and 20, one after the other.
    old = ((5 / 20 - 9 / 30) + (6 / 30 - 10 / 40)) / 2
    new = ((6.5 / 20 - 11.5 / 30) + (8 / 30 - 13 / 40)) / 2
    assert parts["app"] is not None
    assert parts["app"][0] == pytest.approx((old + new) / 2, rel=1e-12)


# -- laws, for everything that can be split


def drawn(seed: int, count: int) -> Rows:
    """Lists of known queries over items whose groups stand in an item table."""
    draw = np.random.RandomState(seed)
    rows: Rows = []
    for at in range(count):
        query = int(draw.randint(5))
        items = draw.permutation(24)[: draw.randint(8, 16)].tolist()
        each = ranking(
            f"l{at}",
            "-" * len(items),
            relevance=draw.randint(0, 2, len(items)).tolist(),
            click=draw.randint(0, 2, len(items)).tolist(),
            reference_rank=(draw.permutation(len(items)) + 1).tolist(),
            query_id=f"q{query}",
            device=f"d{query}" if query < 3 else "other",
        )
        for row, item in zip(each, items, strict=True):
            row["item_id"] = f"i{item}"
            del row["gender"]
        rows += each
    return rows


GENDERS = {f"i{at}": "FMMXMF"[at % 6] for at in range(24)}


def drawn_with_groups(seed: int, count: int, **columns: str) -> Rows:
    """The same with the group in the log; ``columns`` take over other columns."""
    return [
        row
        | {"gender": GENDERS[row["item_id"]]}
        | {name: row[other] for name, other in columns.items()}
        for row in drawn(seed, count)
    ]


TARGETS = {"gender": {"F": 0.4, "M": 0.4, "X": 0.2}}


def measures() -> list[Measure]:
    """Every metric as usual, with a cut-off, and with each choice of each parameter."""
    found = []
    for metric in METRICS:
        k = 3 if metric.needs_cutoff else None
        found += [metric.usual, metric.at(k)]
        found += [metric.at(3)] if metric.cutoff else []
        for each in metric.parameters:
            found += [metric.at(k, **{each.name: choice}) for choice in each.choices or ()]
    return list({each.label: each for each in found}.values())


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("rich")
    write_csv(folder / "items.csv", [{"item_id": item, "gender": g} for item, g in GENDERS.items()])
    return store(
        folder,
        drawn(1, 30),
        drawn(2, 37),
        items="items.csv",
        targets=TARGETS,
        metrics=[each.label for each in measures()],
    )


@pytest.mark.slow
def test_parts_add_up_for_every_score_that_can_be_split(rich: Settings) -> None:
    known = manifest(rich)
    sides = tuple(stored(rich, batch, known) for batch in (A, B))
    queries = None
    seen: Counter[str] = Counter()
    for measure in some(measures(), few=20):
        whole = [side.whole(rich, measure, "gender") for side in sides]
        devices = slice_cells(rich, measure, "gender", "device", *sides)
        queries = queries or query_cells(rich, "gender", (A, whole[0]), (B, whole[1]))
        ways = [way for way in ("device", "query") if splits(measure, way)]
        assert ways or measure.metric.by_query or measure.metric.name in ("IAA", "Gini")
        for at, name in enumerate(measure.scores()):
            if any(point(name, counts).reason for counts in whole):
                continue
            if "device" in ways:
                check_sums(split(name, devices, *whole))
            if "query" in ways and at == 0 and not measure.expects:
                check_sums(split(name, queries, *whole))
            seen.update(ways)
    assert seen["device"] > number(200, few=30)
    assert seen["query"] > number(20, few=3)


def splits(measure: Measure, way: str) -> bool:
    try:
        check_way(measure, way)
    except SettingsError:
        return False
    return True


def check_sums(found: Split) -> None:
    for group, each in [(None, found.score), *found.groups.items()]:
        if each.mix is None or each.treatment is None:
            continue
        assert each.change == pytest.approx((each.after or 0) - (each.before or 0), rel=1e-12)
        assert each.mix + each.treatment == each.change
        parts = [
            part.groups[group] if group else (part.mix, part.treatment) for part in found.parts
        ]
        size = max(abs(each.before or 0), abs(each.after or 0))
        for total, kind in ((each.mix, 0), (each.treatment, 1)):
            sums = fsum(part[kind] for part in parts if part is not None)
            assert sums == pytest.approx(total, rel=1e-12, abs=1e-12 * size)


@pytest.mark.parametrize("label", ["EXP.MinMaxRatio", "ARP.MaxMinDiff", "NDKL", "nDCG@3"])
def test_swapping_the_batches_turns_signs(rich: Settings, label: str) -> None:
    forth = by_device(rich, label)
    back = explain(rich, A, label, against=B, by=["device"]).splits["device"]
    for one, other in ((forth.score, back.score), *zip_changes(forth, back)):
        assert one.change == -(other.change or nan)
        assert one.mix == pytest.approx(-(other.mix or nan), rel=1e-12)
        assert one.treatment == pytest.approx(-(other.treatment or nan), rel=1e-12)
    turned = {each.cell: each for each in back.parts}
    for part in forth.parts:
        assert part.mix == pytest.approx(-turned[part.cell].mix, rel=1e-9, abs=1e-15)
        assert part.treatment == pytest.approx(-turned[part.cell].treatment, rel=1e-9, abs=1e-15)


def zip_changes(one: Split, other: Split) -> Any:
    return zip(one.groups.values(), other.groups.values(), strict=True)


def renamed(rows: Rows, times: dict[str, int]) -> Rows:
    """The lists of each query several times over, under other ids."""
    return [
        row | {"list_id": f"{row['list_id']}-{copy}"}
        for row in rows
        for copy in range(times[row["query_id"]])
    ]


@pytest.mark.slow
@pytest.mark.parametrize("way", some(["device", "query"], few=1))
def test_other_frequencies_of_the_same_lists_are_mix(tmp_path: Path, way: str) -> None:
    rows = drawn_with_groups(3, 20)
    # Queries of one device come equally often, so that devices differ in mix alone.
    times = {"q0": 3, "q1": 1, "q2": 2, "q3": 5, "q4": 5}
    settings = store(tmp_path, rows, renamed(rows, times))
    found = explain(settings, B, TEN, by=[way]).splits[way]
    assert abs(found.score.change or 0) > 1e-3
    assert found.score.treatment == pytest.approx(0, abs=1e-15)
    assert all(each.treatment == pytest.approx(0, abs=1e-15) for each in found.parts)


@pytest.mark.slow
@pytest.mark.parametrize("way", some(["device", "query"], few=1))
def test_other_orders_of_the_same_queries_are_treatment(tmp_path: Path, way: str) -> None:
    rows = drawn_with_groups(3, 20)
    length = Counter(row["list_id"] for row in rows)
    turned = [row | {"rank": length[row["list_id"]] + 1 - row["rank"]} for row in rows]
    # Twice as many requests of each query are the same mix.
    settings = store(
        tmp_path, rows, renamed(turned, dict.fromkeys(("q0", "q1", "q2", "q3", "q4"), 2))
    )
    found = explain(settings, B, TEN, by=[way]).splits[way]
    assert abs(found.score.change or 0) > 1e-3
    assert found.score.mix == 0
    assert all(each.mix == 0 for each in found.parts)


@pytest.mark.slow
def test_what_only_one_batch_has_is_mix(tmp_path: Path) -> None:
    settings = store(
        tmp_path,
        tops("app", 3, 10) + tops("old", 1, 5),
        tops("app", 3, 10) + tops("new", 4, 5),
        metrics=["EXP@1"],
    )
    found = by_device(settings, "EXP@1.MaxMinDiff")
    assert found.score.treatment == 0
    assert found.score.mix == found.score.change
    assert (found.shared_before, found.shared_after) == (2 / 3, 2 / 3)
    parts = {each.cell: each for each in found.parts}
    assert (parts["old"].lists_before, parts["old"].lists_after) == (5, 0)
    assert (parts["new"].before, parts["app"].mix) == (None, 0)
    assert parts["new"].mix < 0
    assert found.turnover == pytest.approx(found.score.mix)
    apart = store(tmp_path / "apart", tops("old", 1, 5), tops("new", 4, 5), metrics=["EXP@1"])
    assert by_device(apart, "EXP@1.MaxMinDiff").score.treatment == 0


@pytest.mark.slow
def test_a_group_that_comes_with_a_cell(tmp_path: Path) -> None:
    old = lists(ranking("a", "FMFM", device="app"), ranking("b", "MFMF", device="web"))
    new = lists(*(old, ranking("c", "XFM", device="new")))
    settings = store(tmp_path, old, new)
    found = by_device(settings)
    assert found.groups["X"].reason == "group_absent"
    assert found.groups["X"].mix is None
    assert found.score.treatment == pytest.approx(0, abs=1e-15)
    first = found.parts[0]
    assert first.cell == "new"
    assert first.mix < 0.75 * (found.score.mix or 0) < 0
    check_sums(found)


# -- beside logs that are really put together


def put_together(treated: Rows, mixed: Rows, column: str) -> Rows:
    """The lists of ``treated`` in each cell, as often as the cells of ``mixed`` ask for."""
    own, wanted = (
        Counter({row["list_id"]: row[column] for row in rows}.values()) for rows in (treated, mixed)
    )
    # So many times as large that each list comes a whole number of times.
    scale = lcm(*(own[cell] for cell in wanted if cell in own))
    found = []
    for rows, which in ((treated, [c for c in wanted if c in own]), (mixed, [*(wanted - own)])):
        for row in rows:
            cell = row[column]
            if cell not in which or (rows is mixed and cell in own):
                continue
            times = wanted[cell] * scale // own[cell] if rows is treated else scale
            found += [row | {"list_id": f"{row['list_id']}-{cell}-{n}"} for n in range(times)]
    return found


TOGETHER = (
    "EXP.MinMaxRatio",
    "AWRF(p=0.1).Variance",
    "ERBE.LTwo",
    "Skew@3.MinSkew",
    "TPR@3.MaxMinDiff",
    "ARP.MinMaxRatio",
    "NDKL",
    "nDCG@3",
)
SMALL = (drawn_with_groups(6, 12), drawn_with_groups(7, 15))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    labels = [parse_score(label).measure.label for label in TOGETHER]
    return store(tmp_path_factory.mktemp("small"), *SMALL, metrics=labels)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["device", "query"])
@pytest.mark.parametrize("label", some(TOGETHER, few=2))
def test_beside_logs_put_together(small: Settings, way: str, label: str) -> None:
    name = parse_score(label)
    if way == "query" and name.measure.metric.name in ("ARP", "NDKL", "nDCG"):
        with pytest.raises(SettingsError, match="sums over lists, which are kept per slice"):
            explain(small, B, label, by=[way])
        return
    found = explain(small, B, label, by=[way]).splits[way]
    column = "device" if way == "device" else "query_id"
    aa, bb = (one_score(name, rows) for rows in SMALL)
    ab, ba = (one_score(name, put_together(*pair, column)) for pair in (SMALL, SMALL[::-1]))
    assert found.score.mix == pytest.approx(((ab - aa) + (bb - ba)) / 2, rel=1e-9)
    assert found.score.treatment == pytest.approx(((ba - aa) + (bb - ab)) / 2, rel=1e-9)


def one_score(name: ScoreName, rows: Rows) -> float:
    found = score(pd.DataFrame(rows), ["gender"], metrics=[name.measure.label])
    if name.aggregation is not None:
        found = found[found["aggregation"] == name.aggregation.name]
    return float(found["value"].iloc[0])


@pytest.mark.slow
def test_queries_that_are_slices_are_split_alike(tmp_path: Path) -> None:
    a, b = (drawn_with_groups(*how, device="query_id") for how in ((4, 25), (5, 30)))
    settings = store(tmp_path, a, b, metrics=["fairness"])
    for label in ("EXP.MinMaxRatio", "EXPU.MaxMinDiff", "EXPRU.MinMaxRatio", "ERBR.MeanAbsDev"):
        found = explain(settings, B, label)
        assert found.splits["query"] == found.splits["device"]


@pytest.mark.slow
def test_rare_queries_are_pooled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = store(tmp_path, drawn_with_groups(4, 25), drawn_with_groups(5, 30))
    monkeypatch.setattr(cells_module, "MOST_QUERIES", 2)
    found = explain(settings, B, TEN, by=["query"]).splits["query"]
    names = [each.cell for each in found.parts]
    assert sum(name.startswith("pooled ") for name in names) == len(names) - 2
    assert sum(each.lists_before for each in found.parts) == 25
    check_sums(found)


# -- pieces


numbers = st.floats(-1e3, 1e3, allow_subnormal=False)


@given(numbers, st.floats(-2, 2))
def test_mix_and_treatment_add_up_to_the_last_bit(change: float, share: float) -> None:
    told, mix, treatment = additive(change, change * share)
    assert mix + treatment == told
    assert told == pytest.approx(change, rel=1e-15)
    assert mix == pytest.approx(change * share, rel=1e-12, abs=1e-12 * abs(change))


def test_what_parts_lack_is_shared_out_by_size() -> None:
    alone = np.array([[3.0, 0.0], [-1.0, 0.0], [0.0, 0.0]])
    found = shared_out(alone, np.array([6.0, 1.0]), np.array([True, True, False]))
    assert found.tolist() == [[6.0, 0.5], [0.0, 0.5], [0.0, 0.0]]
