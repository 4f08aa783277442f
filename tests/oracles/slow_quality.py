"""Ranking quality written the slow and obvious way: loops over the rows of one list at a time.

What belongs here: a second opinion, straight from the definitions, sharing no code with what it
checks.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from brute_force import Row, group_of, lists_of
from slow import Value, known, mean, parsed

LIMIT = 1e12


def score(
    label: str,
    rows: Sequence[Row],
    attribute: str | None = None,
    *,
    relevant_from: float = 0.5,
    groups: Iterable[str] = (),
    **context: Any,
) -> Value | dict[str, Value]:
    """What ``label`` (without an aggregation) says of all lists: one number, or one per group.

    None where there is no value.  ``groups`` are groups to report beside those in ``rows``;
    further context means nothing here.
    """
    asked = parsed(label)
    name, given, k = asked.name, asked.given, asked.k
    lists = list(lists_of(rows).values())
    if name == "CTR":
        return _ctr(lists, given.get("method", "matching"), k)
    judged = all(known(row, "relevance") for row in rows)
    if name.startswith("Group"):
        assert attribute is not None
        present = {group_of(row, attribute) for row in rows}
        values: dict[str, Value] = dict.fromkeys(sorted(present | set(groups)))
        for group in present if judged else ():
            values[group] = mean(
                _of_group(name, each, attribute, group, given, k, relevant_from) for each in lists
            )
        return values
    if not judged:
        return None
    if name == "RScore":
        return _r_score(lists, float(given.get("d", "0")), float(given.get("alpha", "5")))
    return mean(_of_list(name, each, given, k, relevant_from) for each in lists)


def _gain(row: Row, given: Mapping[str, str]) -> float:
    return 2.0 ** row["relevance"] - 1.0 if given.get("gain") == "exp" else row["relevance"]


def _dcg(pairs: Any, k: int | None) -> float:
    """Of pairs of rank and gain."""
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in pairs if k is None or rank <= k)


def _best_dcg(gains: list[float], k: int | None) -> float:
    return _dcg(enumerate(sorted(gains, reverse=True), start=1), k)


def _of_list(
    name: str, rows: list[Row], given: Mapping[str, str], k: int | None, relevant_from: float
) -> Value:
    if name in ("CG", "DCG", "nDCG"):
        gains = [_gain(row, given) for row in rows]
        if not any(gain > 0 for gain in gains):
            return None
        placed = [(row["rank"], gain) for row, gain in zip(rows, gains, strict=True)]
        if name == "CG":
            return math.fsum(gain for rank, gain in placed if k is None or rank <= k)
        if name == "DCG":
            return _dcg(placed, k)
        return _dcg(placed, k) / _best_dcg(gains, k)

    relevant = [row["rank"] for row in rows if row["relevance"] >= relevant_from]
    if not relevant:
        return None
    top = [row["rank"] for row in rows if k is None or row["rank"] <= k]
    in_top = [rank for rank in relevant if rank in top]

    def recall_at(depth: int) -> float:
        return sum(rank <= depth for rank in relevant) / len(relevant)

    def precision_at(depth: int) -> float:
        return sum(rank <= depth for rank in relevant) / depth

    if name == "RR":
        return 1 / in_top[0] if in_top else 0.0
    if name == "hit":
        return 1.0 if in_top else 0.0
    if name == "AP":
        return math.fsum(precision_at(rank) for rank in in_top) / len(relevant)
    assert k is not None, f"{name} needs a cut-off"
    if name == "P":
        return precision_at(k)
    if name in ("R", "JurityRecall"):
        return recall_at(k)
    if name == "F1":
        p, r = precision_at(k), recall_at(k)
        return 2 * p * r / (p + r) if p + r else 0.0
    if name == "AR":
        return math.fsum(recall_at(depth) for depth in range(1, k + 1)) / k
    if name == "JurityPrecision":
        return len(in_top) / len(top) if top else None
    if name == "JurityMAP":
        return math.fsum(precision_at(rank) for rank in in_top) / min(k, len(relevant))
    if name == "JurityNDCG":
        ideal = math.fsum(1 / math.log2(place + 1) for place in range(1, len(relevant) + 1))
        return math.fsum(1 / math.log2(rank + 1) for rank in in_top) / ideal
    raise ValueError(name)


def _of_group(
    name: str,
    rows: list[Row],
    attribute: str,
    group: str,
    given: Mapping[str, str],
    k: int | None,
    relevant_from: float,
) -> Value:
    own = [row for row in rows if group_of(row, attribute) == group]
    alone = given.get("of") == "group"
    if name == "GroupnDCG":
        ideal = _best_dcg([_gain(row, given) for row in (own if alone else rows)], k)
        if ideal == 0:
            return None
        return _dcg(((row["rank"], _gain(row, given)) for row in own), k) / ideal
    relevant = [row for row in rows if row["relevance"] >= relevant_from]
    if not relevant:
        return None
    assert k is not None, f"{name} needs a cut-off"
    won = sum(row["rank"] <= k and row["relevance"] >= relevant_from for row in own)
    if name == "GroupP":
        shown = sum(row["rank"] <= k for row in own) if alone else k
        return won / shown if shown else None
    assert name == "GroupR", name
    wanted = sum(row["relevance"] >= relevant_from for row in own) if alone else len(relevant)
    return won / wanted if wanted else None


def _r_score(lists: list[list[Row]], d: float, alpha: float) -> Value:
    def utility(relevance: list[float], ranks: list[int]) -> float:
        return math.fsum(
            max(value - d, 0.0) / 2.0 ** ((rank - 1) / (alpha - 1))
            for value, rank in zip(relevance, ranks, strict=True)
        )

    found, whole = [], []
    for rows in lists:
        relevance = [row["relevance"] for row in rows]
        found.append(utility(relevance, [row["rank"] for row in rows]))
        whole.append(utility(sorted(relevance, reverse=True), list(range(1, len(rows) + 1))))
    return math.fsum(found) / math.fsum(whole) if math.fsum(whole) else None


def _ctr(lists: list[list[Row]], method: str, k: int | None) -> Value:
    every = [row for rows in lists for row in rows]
    needs = {"matching": (), "ips": ("propensity",), "dr": ("propensity",)}[method]
    if not all(any(known(row, column) for row in every) for column in ("click", *needs)):
        return None
    if method == "dr" and not all(known(row, "predicted_click") for row in every):
        return None
    total, count = [], 0
    for rows in lists:
        top = [row for row in rows if k is None or row["rank"] <= k]
        matched = [row for row in top if known(row, "click")]
        if method == "matching":
            total += [row["click"] for row in matched]
            count += len(matched)
            continue
        gaps = [
            (row["click"] - (row["predicted_click"] if method == "dr" else 0.0), row)
            for row in matched
        ]
        if not all(known(row, "propensity") and row["propensity"] > 0 for gap, row in gaps if gap):
            continue
        parts = [gap / row["propensity"] for gap, row in gaps if gap]
        if method == "dr":
            parts += [row["predicted_click"] for row in top]
        if abs(math.fsum(parts)) < LIMIT:
            total += parts
            count += len(top)
    return math.fsum(total) / count if count else None
