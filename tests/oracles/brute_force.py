"""The ten fairness metrics and seven aggregations, written the slow and obvious way.

What belongs here: a second opinion.  Plain loops over rows, pairs and prefixes, straight from the
definitions, sharing no code with what it checks; where a formula has a short cut, this file does
not take it.  A row is a mapping with ``list_id``, ``item_id``, ``rank``, perhaps ``relevance`` and
``click`` (None or NaN where missing), and attribute columns (None, NaN or '' for an unknown group).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
Attribute = str | Sequence[str]
Catalogue = Iterable[Row] | Mapping[str, int]
"""The item table: its rows, or already the number of items per group."""

UNKNOWN = "unknown"
SMOOTHING = 1e-7
GROUP_METRICS = ("EXP", "EXPU", "EXPRU", "AWRF", "ERBE", "ERBP", "ERBR", "ARP")
SINGLE_METRICS = ("NDKL", "IAA")
AGGREGATIONS = (
    "MinMaxRatio",
    "MaxMinRatio",
    "MaxMinDiff",
    "MaxAbsDiff",
    "MeanAbsDev",
    "LTwo",
    "Variance",
)
_WITHOUT_CUTOFF = ("EXPRU", "ARP")
_WITH_DENOMINATOR = ("EXP", "AWRF", "ERBP")


@dataclass(frozen=True)
class Undefined:
    """No number, and why."""

    reason: str


Number = float | Undefined


def group_values(
    metric: str,
    rows: Sequence[Row],
    attribute: Attribute,
    *,
    p: float = 0.1,
    decay: float = 0.75,
    k: int | None = None,
    denominator: str = "appearances",
    catalogue: Catalogue | None = None,
    groups: Iterable[str] = (),
    batch: Sequence[Row] | None = None,
) -> dict[str, Number]:
    """Value of every group, in name order.

    ``groups`` are groups to report beside those in ``rows``; ``batch`` is the batch that ``rows``
    are a slice of, which decides whether relevance is binary.
    """
    if metric not in GROUP_METRICS:
        raise ValueError(f"{metric} has no group values")
    if k is not None and metric in _WITHOUT_CUTOFF:
        raise ValueError(f"{metric} has no cut-off")
    if denominator not in ("appearances", "catalogue"):
        raise ValueError(f"no denominator {denominator}")
    if denominator == "catalogue" and metric not in _WITH_DENOMINATOR:
        raise ValueError(f"{metric} has no denominator to choose")
    names = {group_of(row, attribute) for row in rows} | set(groups)
    sizes: dict[str, int] | None = None
    if denominator == "catalogue" and catalogue is not None:
        sizes = catalogue_sizes(catalogue, attribute)
        names |= {name for name in sizes if name != UNKNOWN}
    if metric == "ARP":
        return {name: _pairs_won(rows, attribute, name) for name in sorted(names)}
    binary = metric != "ERBR" or _binary(rows if batch is None else batch)

    found: dict[str, Number] = {}
    for name in sorted(names):
        mine = [row for row in rows if group_of(row, attribute) == name]
        weight = 0.0
        if metric != "EXPRU":
            weight = math.fsum(
                _weight(metric, row["rank"], p, decay) if k is None or row["rank"] <= k else 0.0
                for row in mine
            )
        if denominator == "catalogue":
            if sizes is None:
                found[name] = Undefined("catalogue_missing")
            elif sizes.get(name, 0) == 0:
                found[name] = Undefined("group_absent")
            else:
                found[name] = weight / (sizes[name] * len(lists_of(rows)))
        elif not mine:
            found[name] = Undefined("group_absent")
        elif metric in ("EXP", "AWRF", "ERBP"):
            found[name] = weight / len(mine)
        elif metric == "ERBE":
            found[name] = weight / len(lists_of(rows))
        elif metric == "EXPRU" and any(_missing(row.get("click")) for row in mine):
            found[name] = Undefined("click_missing")
        elif metric == "ERBR" and not binary:
            found[name] = Undefined("relevance_not_binary")
        elif any(_missing(row.get("relevance")) for row in mine):
            found[name] = Undefined("relevance_missing")
        elif metric == "ERBR":
            relevant = len([row for row in mine if row["relevance"] == 1])
            found[name] = weight / relevant if relevant else Undefined("no_relevant_items")
        else:
            relevance = math.fsum(row["relevance"] for row in mine)
            above = math.fsum(row["click"] for row in mine) if metric == "EXPRU" else weight
            found[name] = above / relevance if relevance else Undefined("zero_relevance")
    return found


def single_value(
    metric: str,
    rows: Sequence[Row],
    attribute: Attribute = (),
    *,
    reference: str | Mapping[str, float] = "list",
    catalogue: Catalogue | None = None,
    normalised: bool = False,
    groups: Iterable[str] = (),
) -> Number:
    """The value of a metric that is one number.

    ``reference`` of NDKL: "list", "catalogue", or the share that each group should have.
    ``groups`` are groups that the batch has beside those in ``rows``.
    """
    if not rows:
        return Undefined("no_lists")
    if metric == "IAA":
        return _attention_gap_normalised(rows) if normalised else _attention_gap(rows)
    if metric != "NDKL":
        raise ValueError(f"{metric} is not one number")
    names = {group_of(row, attribute) for row in rows} | set(groups)
    if len(names - {UNKNOWN}) < 2:
        return Undefined("one_group")
    mix: dict[str, float] | None = None
    if not isinstance(reference, str):
        mix = {name: float(share) for name, share in reference.items()}
    elif reference == "catalogue":
        if catalogue is None:
            return Undefined("catalogue_missing")
        sizes = catalogue_sizes(catalogue, attribute)
        mix = {name: float(size) for name, size in sizes.items()}
    elif reference != "list":
        raise ValueError(f"no reference {reference}")
    if mix is not None:
        whole = math.fsum(mix.values())
        mix = {name: mix.get(name, 0.0) / whole for name in names | set(mix)}

    divergences = []
    for ranked in lists_of(rows).values():
        shown = [group_of(row, attribute) for row in ranked]
        own = {name: shown.count(name) / len(shown) for name in sorted(names)}
        divergences.append(_discounted_divergence(shown, own if mix is None else mix))
    return math.fsum(divergences) / len(divergences)


def aggregate(name: str, values: Sequence[float]) -> Number:
    """Seven ways to turn the values of groups into one number."""
    if name not in AGGREGATIONS:
        raise ValueError(f"no aggregation {name}")
    if len(values) < 2:
        return Undefined("one_group")
    low, high = min(values), max(values)
    if name in ("MinMaxRatio", "MaxMinRatio") and high == 0:
        return Undefined("all_zero")
    if name == "MaxMinRatio" and low == 0:
        return Undefined("zero_minimum")
    mean = math.fsum(values) / len(values)
    if name == "MinMaxRatio":
        return low / high
    if name == "MaxMinRatio":
        return high / low
    if name == "MaxMinDiff":
        return high - low
    if name == "MaxAbsDiff":
        return max(abs(value - mean) for value in values)
    if name == "MeanAbsDev":
        return math.fsum(abs(value - mean) for value in values) / len(values)
    if name == "LTwo":
        return math.sqrt(math.fsum(value**2 for value in values))
    return math.fsum((value - mean) ** 2 for value in values) / len(values)


def score(
    metric: str,
    aggregation: str | None,
    rows: Sequence[Row],
    attribute: Attribute = (),
    *,
    unknown_counts: bool = False,
    **parameters: Any,
) -> Number:
    """One score as a report gives it.

    A reason names the first group without a value, unless all groups lack one for the same reason.
    """
    if metric in SINGLE_METRICS:
        return single_value(metric, rows, attribute, **parameters)
    if aggregation is None:
        raise ValueError(f"say how the groups of {metric} are aggregated")
    if not rows:
        return Undefined("no_lists")
    compared = compared_values(
        group_values(metric, rows, attribute, **parameters), unknown_counts=unknown_counts
    )
    if len(compared) < 2:
        return Undefined("one_group")
    causes = [(name, v.reason) for name, v in compared.items() if isinstance(v, Undefined)]
    if causes:
        name, reason = causes[0]
        shared = len(causes) == len(compared) and all(cause == reason for _, cause in causes)
        return Undefined(reason if shared else f"{reason}: {name}")
    return aggregate(aggregation, [v for v in compared.values() if not isinstance(v, Undefined)])


def compared_values(
    values: Mapping[str, Number], *, unknown_counts: bool = False
) -> dict[str, Number]:
    """The values that take part in aggregations."""
    return {name: value for name, value in values.items() if unknown_counts or name != UNKNOWN}


def worst_and_best(values: Mapping[str, Number]) -> tuple[str | None, str | None]:
    """Groups of the lowest and the highest value, first names first; none if all are equal."""
    known = [(v, name) for name, v in values.items() if not isinstance(v, Undefined)]
    if not known:
        return None, None
    low, high = min(known)[0], max(known)[0]
    if low == high:
        return None, None
    worst = min(name for value, name in known if value == low)
    best = min(name for value, name in known if value == high)
    return worst, best


def group_of(row: Row, attribute: Attribute) -> str:
    """The group a row belongs to; an intersection with an unknown part is unknown."""
    parts = (attribute,) if isinstance(attribute, str) else attribute
    found = [row.get(part) for part in parts]
    if any(_missing(value) or value in ("", UNKNOWN) for value in found):
        return UNKNOWN
    return "*".join(str(value) for value in found)


def lists_of(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows of every list, top first."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["list_id"], []).append(row)
    for ranked in found.values():
        ranked.sort(key=lambda row: row["rank"])
    return found


def catalogue_sizes(catalogue: Catalogue, attribute: Attribute) -> dict[str, int]:
    """Items of each group in the item table."""
    if isinstance(catalogue, Mapping):
        return dict(catalogue)
    sizes: dict[str, int] = {}
    for item in catalogue:
        name = group_of(item, attribute)
        sizes[name] = sizes.get(name, 0) + 1
    return sizes


def exposure(rank: int) -> float:
    """Discount of a rank by its logarithm."""
    return 1 / math.log2(rank + 1)


def attention(rank: int, p: float) -> float:
    """Percent of all attention that a rank receives."""
    return 100 * p * (1 - p) ** (rank - 1)


def rbp(rank: int, decay: float) -> float:
    """Weight of a rank in rank-biased precision."""
    return (1 - decay) * decay ** (rank - 1)


def _weight(metric: str, rank: int, p: float, decay: float) -> float:
    if metric in ("EXP", "EXPU"):
        return exposure(rank)
    if metric == "AWRF":
        return attention(rank, p)
    return rbp(rank, decay)


def _missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _binary(rows: Iterable[Row]) -> bool:
    for row in rows:
        relevance = row.get("relevance")
        if not _missing(relevance) and relevance not in (0, 1):
            return False
    return True


def _pairs_won(rows: Sequence[Row], attribute: Attribute, name: str) -> Number:
    if all(group_of(row, attribute) != name for row in rows):
        return Undefined("group_absent")
    shares = []
    for ranked in lists_of(rows).values():
        shown = [group_of(row, attribute) for row in ranked]
        won = mixed = 0
        for upper in range(len(shown)):
            for lower in range(upper + 1, len(shown)):
                if shown[upper] == shown[lower] or name not in (shown[upper], shown[lower]):
                    continue
                mixed += 1
                if shown[upper] == name:
                    won += 1
        if mixed:
            shares.append(won / mixed)
    return math.fsum(shares) / len(shares) if shares else Undefined("no_mixed_pairs")


def _discounted_divergence(shown: Sequence[str], reference: Mapping[str, float]) -> float:
    terms = []
    discounts = []
    for length in range(1, len(shown) + 1):
        prefix = shown[:length]
        mix = {name: prefix.count(name) / length for name in reference}
        discount = 1 / math.log2(length + 1)
        discounts.append(discount)
        terms.append(discount * _divergence(mix, reference))
    return math.fsum(terms) / math.fsum(discounts)


def _divergence(mix: Mapping[str, float], reference: Mapping[str, float]) -> float:
    return math.fsum(
        (mix[name] + SMOOTHING) * math.log((mix[name] + SMOOTHING) / (share + SMOOTHING))
        for name, share in reference.items()
    )


def _attention_gap(rows: Sequence[Row]) -> Number:
    received: dict[str, list[float]] = {}
    deserved: dict[str, list[float]] = {}
    for row in rows:
        if _missing(row.get("relevance")):
            return Undefined("relevance_missing")
        received.setdefault(row["item_id"], []).append(exposure(row["rank"]))
        deserved.setdefault(row["item_id"], []).append(row["relevance"])
    gaps = [abs(math.fsum(received[item]) - math.fsum(deserved[item])) for item in received]
    return math.fsum(gaps) / len(lists_of(rows))


def _attention_gap_normalised(rows: Sequence[Row]) -> Number:
    if any(_missing(row.get("relevance")) for row in rows):
        return Undefined("relevance_missing")
    received: dict[str, list[float]] = {}
    deserved: dict[str, list[float]] = {}
    judged = 0
    for ranked in lists_of(rows).values():
        relevance = math.fsum(row["relevance"] for row in ranked)
        if relevance == 0:
            continue
        judged += 1
        whole = math.fsum(exposure(row["rank"]) for row in ranked)
        for row in ranked:
            received.setdefault(row["item_id"], []).append(exposure(row["rank"]) / whole)
            deserved.setdefault(row["item_id"], []).append(row["relevance"] / relevance)
    if judged == 0:
        return Undefined("no_relevant_items")
    gaps = [abs(math.fsum(received[item]) - math.fsum(deserved[item])) for item in received]
    return math.fsum(gaps) / judged
