"""How far the noise floor is from real permutations, and what chance does to fair rankings.

Every table of docs/noise.md is measured with the code of the project, beside simulations that use
no law but that every order of a list is as likely as any other.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click
import numpy as np
import pandas as pd
from measured import fill, table

from metrics import (
    Counts,
    PairCounts,
    RankHistogram,
    Replicates,
    asked,
    evaluate,
    parse_measure,
    replicated,
)
from metrics.fairness.prefixes import SMOOTHING
from pipeline import score
from pipeline.scores.evidence.chance import Mix, drawn
from pipeline.scores.evidence.noise_floor import Noise
from pipeline.scores.evidence.randomness import normal_draws

DOCUMENT = Path(__file__).parent.parent / "docs" / "noise.md"
LABELS = ("EXP", "EXPU", "AWRF", "ERBE", "ERBP", "ERBR", "ARP")
SIDES = ("MinMaxRatio", "MaxMinDiff")
LENGTH = 10
WORLDS = ((5, 5), (2, 2, 2, 2, 2), (4, 2, 2, 1, 1), (1,) * 10)
LOGS = {
    "60 lists, 3 groups": (60, {"a": 0.5, "b": 0.42, "c": 0.08}),
    "60 lists, 5 groups": (60, {"a": 0.4, "b": 0.25, "c": 0.2, "d": 0.1, "e": 0.05}),
    "1000 lists, 5 groups": (1000, {"a": 0.4, "b": 0.25, "c": 0.2, "d": 0.1, "e": 0.05}),
}
"""Ragged logs: lists of 2 to 11 items, groups by lot."""

Lists = list[np.ndarray]


def random_lists(lists: int, share: Mapping[str, float], seed: int) -> Lists:
    rng = np.random.default_rng(seed)
    names, p = list(share), list(share.values())
    return [rng.choice(names, rng.integers(2, 12), p=p) for _ in range(lists)]


def log_of(lists: Lists) -> pd.DataFrame:
    length = [len(each) for each in lists]
    rank = np.concatenate([np.arange(1, n + 1) for n in length])
    number = np.repeat(np.arange(len(lists)), length)
    return pd.DataFrame(
        {
            "list_id": number.astype(str),
            "item_id": [f"{a}.{b}" for a, b in zip(number, rank, strict=True)],
            "rank": rank,
            "relevance": (number + rank) % 2,
            "group": np.concatenate(lists),
        }
    )


def scored(log: pd.DataFrame, labels: Sequence[str], draws: int) -> pd.DataFrame:
    evidence = {"resamples": 0, "noise_draws": draws}
    return score(log, ["group"], metrics=labels, settings={"evidence": evidence})


def permuted(
    lists: Lists, weights: Mapping[bytes, np.ndarray], orders: int, seed: int
) -> tuple[dict[bytes, np.ndarray], np.ndarray, np.ndarray]:
    """Sums of each weight and of shares of pairs, (orders, groups), and NDKL, in random orders."""
    names = np.unique(np.concatenate(lists))
    rng = np.random.default_rng(seed)
    sums = {key: np.zeros((orders, len(names))) for key in weights}
    share, ndkl = np.zeros((orders, len(names))), np.zeros(orders)
    for each in (np.searchsorted(names, one) for one in lists):
        n = len(each)
        place = rng.random((orders, n)).argsort(axis=1)
        at = np.arange(1, n + 1)
        discount = 1 / np.log2(at + 1)
        for column in np.unique(each):
            mine = each[place] == column
            own = int((each == column).sum())
            for key, weight in weights.items():
                sums[key][:, column] += (mine * weight[:n]).sum(axis=1)
            if own < n:
                below = n * own - (mine * at).sum(axis=1) - own * (own - 1) / 2
                share[:, column] += below / (own * (n - own))
            part = mine.cumsum(axis=1) / at + SMOOTHING
            logs = np.log(part / (own / n + SMOOTHING))
            ndkl += (part * logs * discount).sum(axis=1) / discount.sum() / len(lists)
    return sums, share, ndkl


def counts_of(lists: Lists) -> Counts:
    """Counts of the log of ``log_of``, as far as measures here ask for them."""
    log = log_of(lists)
    names = sorted(set(log["group"]))
    cells = (
        log.assign(code=log["group"].map(names.index))
        .groupby(["code", "rank"])
        .agg(rows=("relevance", "size"), relevant=("relevance", "sum"))
        .reset_index()
    )
    one = {name: cells[name].to_numpy(np.int64) for name in ("code", "rank", "rows", "relevant")}
    held = np.array([[(each == name).sum() for name in names] for each in lists])
    mixed = ((held > 0) & (held < held.sum(axis=1)[:, None])).sum(axis=0)
    real = one["relevant"].astype(float)
    return Counts(
        lists=len(lists),
        groups=tuple(names),
        ranks=RankHistogram(
            one["code"], one["rank"], one["rows"], one["rows"], one["relevant"], real,
            one["rows"], real,
        ),
        binary=True,
        pairs=PairCounts(mixed, np.full(len(names), 0.5) * mixed),
        known_rows={"rows": len(log), "relevance": len(log)},
    )  # fmt: skip


def simulated(lists: Lists, orders: int, seed: int) -> dict[str, np.ndarray]:
    """Every score of LABELS, and NDKL, in random orders; shape (orders,) each."""
    counts = counts_of(lists)
    depth = int(counts.ranks.rank.max())
    wants = {label: asked(parse_measure(label), depth).totals for label in LABELS}
    every = [weight for totals in wants.values() for weight in totals.values()]
    weights = {weight.tobytes(): weight for weight in every if weight is not None}
    sums, share, ndkl = permuted(lists, weights, orders, seed)
    found = {"NDKL": ndkl}
    for label, totals in wants.items():
        measure = parse_measure(label)
        base = evaluate(measure, counts)
        replicates = Replicates(
            **{
                **{name: getattr(counts, name) for name in Counts.__dataclass_fields__},
                "lists": np.array([[float(len(lists))]]),
                "ranks": _ranks_to(depth),
                "pairs": PairCounts(counts.pairs.lists[None], share) if counts.pairs else None,
                "totals": {
                    (column, key): counts.total(column)[None] if key is None else sums[key]
                    for column, key in totals
                },
            }
        )
        for one, values in zip(base.scores, replicated(base, replicates).scores, strict=True):
            if values is not None:
                found[one.name.label] = values
    return found


def _ranks_to(depth: int) -> RankHistogram:
    none, nothing = np.zeros(0, dtype=np.int64), np.zeros(0)
    return RankHistogram(none, np.arange(1, depth + 1), none, none, none, nothing, none, nothing)


def against_permutations(orders: int, seed: int) -> Iterator[tuple[str, str]]:
    """One table per log: the floor of every score beside what permutations give."""
    for name, (size, share) in LOGS.items():
        lists = random_lists(size, share, seed)
        floors = scored(log_of(lists), [*LABELS, "NDKL"], orders)
        found = simulated(lists, orders, seed)
        rows = []
        for row in floors.itertuples():
            label = row.metric if pd.isna(row.aggregation) else f"{row.metric}.{row.aggregation}"
            if pd.isna(row.expected):
                continue
            values = found[label]
            side = -1 if row.aggregation == "MinMaxRatio" else 1
            cells = [f"{row.expected:.4g}", f"{values.mean():.4g}"]
            if pd.isna(row.noise_limit):
                cells += [""] * 3
            else:
                limit = side * np.quantile(side * values, 0.95)
                passed = (side * values > side * row.noise_limit).mean()
                cells += [f"{row.noise_limit:.4g}", f"{limit:.4g}", f"{passed:.1%}"]
            rows.append([label, *cells])
        yield name, table(["score", "expected", "permuted", "limit", "permuted", "passed"], rows)


def alike(own: Sequence[int], lists: int) -> Mix:
    """Lists of ten items, all with so many of each group."""
    held, groups = np.array(own), len(own)
    one, other = np.triu_indices(groups, 1)
    others = LENGTH - held
    return Mix(
        groups,
        np.arange(groups),
        np.full(groups, LENGTH),
        held,
        np.full(groups, lists),
        one,
        other,
        np.full(len(one), LENGTH),
        lists * (held[one] * held[other]).astype(float),
        lists * (LENGTH + 1.0) / (others[one] * others[other]),
    )


def fair_worlds(draws: int, seed: int) -> str:
    """EXP.MinMaxRatio of N fair requests, by the items of each group in a list."""
    rng = np.random.default_rng(seed)
    weight = 1 / np.log2(np.arange(1, LENGTH + 1) + 1)
    rows = []
    for own in WORLDS:
        groups, starts = len(own), np.concatenate([[0], np.cumsum(own)[:-1]])
        for lists in (10, 30, 100, 300, 1000):
            sums = drawn(*alike(own, lists).weighted(weight), normal_draws(1, draws, groups))
            real = np.zeros((draws, groups))
            for _ in range(lists):
                order = rng.random((draws, LENGTH)).argsort(axis=1)
                real += np.add.reduceat(weight[order], starts, axis=1)
            cells = []
            for values in (sums / np.array(own), real / np.array(own)):
                ratio = values.min(axis=1) / values.max(axis=1)
                low = f"{np.quantile(ratio, 0.05):.3f}"
                cells.append((f"{ratio.mean():.3f}", low, f"{(ratio < 0.8).mean():.1%}"))
            paired = (cell for pair in zip(*cells, strict=True) for cell in pair)
            alone = f"{groups} x {own[0]}" if len(set(own)) == 1 else " + ".join(map(str, own))
            rows.append([alone, str(lists), *paired])
    heads = ["groups x items", "requests", "expected", "simulated", "5% point", "simulated"]
    return table([*heads, "below 0.8", "simulated"], rows)


def calibration(worlds: int, seed: int) -> str:
    """Share of fair logs with a p-value below 5 %, by number of lists: each a slice."""
    rows = []
    for lists in (10, 30, 100):
        parts = []
        for world in range(worlds):
            each = log_of(random_lists(lists, LOGS["60 lists, 5 groups"][1], seed + world))
            each["list_id"] = f"{world} " + each["list_id"]
            each["item_id"] = f"{world} " + each["item_id"]
            each["world"] = str(world)
            parts.append(each)
        labels = [*(label for label in LABELS if label not in ("EXPU", "ERBR")), "NDKL"]
        found = score(
            pd.concat(parts, ignore_index=True), ["group"], metrics=labels, slices=["world"],
            settings={"evidence": {"resamples": 0}},
        )  # fmt: skip
        found = found[(found["slice"] == "world") & found["p_noise"].notna()]
        kept = found[found["aggregation"].isin(SIDES) | (found["metric"] == "NDKL")]
        for (metric, way), part in kept.groupby(["metric", "aggregation"], dropna=False):
            label = metric if pd.isna(way) else f"{metric}.{way}"
            shares = [f"{(part['p_noise'] < level).mean():.1%}" for level in (0.01, 0.05, 0.5)]
            rows.append([label, str(lists), str(len(part)), *shares])
    rows.sort(key=lambda row: row[0])
    return table(["score", "lists", "fair logs", "p < 1%", "p < 5%", "p < 50%"], rows)


def cost(orders: int, seed: int) -> str:
    """CPU seconds of the floors, and of as many permutations in numpy."""
    rows = []
    for size in (100, 1000, 10_000):
        lists = random_lists(size, LOGS["60 lists, 5 groups"][1], seed)
        log = log_of(lists)
        floors = min(_seconds_in_floors(log, orders) for _ in range(3))
        start, sample = time.process_time(), lists[:100]
        simulated(sample, orders, seed)
        slow = (time.process_time() - start) * size / len(sample)
        rows.append([f"{size:,}", f"{floors:.2f}", f"{slow:.1f}"])
    return table(["lists", "floors, CPU s", "permutations, CPU s"], rows)


def _seconds_in_floors(log: pd.DataFrame, draws: int) -> float:
    """CPU seconds that scoring spends in noise floors, from the tables of the batch on."""
    spent = 0.0

    def timed(work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            nonlocal spent
            start = time.process_time()
            found = work(*given)
            spent += time.process_time() - start
            return found

        return run

    normal_draws.cache_clear()
    with (
        patch.object(Noise, "__init__", timed(Noise.__init__)),
        patch.object(Noise, "floors", timed(Noise.floors)),
    ):
        scored(log, [*LABELS, "NDKL"], draws)
    return spent


def tables(quick: bool, seed: int) -> Iterator[tuple[str, str]]:
    """The measured tables, each with the name of its markers, as they get ready."""
    orders = 500 if quick else 20_000
    yield from against_permutations(orders, seed)
    yield "fair worlds", fair_worlds(200 if quick else 20_000, seed)
    yield "calibration", calibration(5 if quick else 1000, seed)
    yield "cost", cost(200 if quick else 2000, seed)


@click.command(help=__doc__)
@click.option("--seed", default=1, show_default=True, help="Seed of the simulations.")
@click.option("--quick", is_flag=True, help="Few and small simulations, to see that all runs.")
@click.option("--document", default=DOCUMENT, type=click.Path(path_type=Path), show_default=False)
def main(seed: int, quick: bool, document: Path) -> None:
    fill(document, tables(quick, seed))


if __name__ == "__main__":
    main()
