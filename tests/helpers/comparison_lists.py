"""Lists beside a reference for tests of comparisons, what a label says of them, and the labels."""

from collections.abc import Sequence
from typing import Any

from rankings import rankings

from metrics import Rankings, parse_score

READINGS = ("MIN", "RES", "EXT")
OVERLAPS = ("AO", "RBD(p=0.9)", *(f"RBO(p=0.9).{reading}" for reading in READINGS))
CUT = ("AO@3", "RBD(p=0.8)@3", *(f"RBO(p=0.8)@3.{reading}" for reading in READINGS))
PAIRS = ("NDPM", "FCP", "Kendall", "Spearman", "Pearson")


def by_relevance(label: str) -> str:
    """The same label against the order by relevance."""
    name, bracket, rest = label.partition("(")
    if bracket:
        return f"{name}({rest.replace(')', ',reference=relevance)')}"
    name, at, k = name.partition("@")
    return f"{name}(reference=relevance){at}{k}"


LABELS = tuple(label for each in (*OVERLAPS, *CUT, *PAIRS) for label in (each, by_relevance(each)))


def values_of(label: str, lists: Rankings) -> Any:
    """What a label, or a reading of it, says of each list."""
    score = parse_score(label)
    reading = score.aggregation.name if score.aggregation else None
    return score.measure.list_functions[reading](lists, score.measure.given).value


def against(
    shown: Sequence[str], reference: Sequence[str], name: str = "q"
) -> list[dict[str, Any]]:
    """Rows of a list beside the ranking it is compared with."""
    places = {item: place for place, item in enumerate(reference, start=1)}
    return [
        {"list_id": name, "item_id": item, "rank": rank, "reference_rank": places.get(item)}
        for rank, item in enumerate(shown, start=1)
    ]


def value(label: str, shown: Sequence[str], reference: Sequence[str]) -> float:
    """A label's value of one list and its reference, one letter per item."""
    lists = rankings(against(shown, reference), reference_length={"q": len(reference)})
    (found,) = values_of(label, lists).tolist()
    return found


def ordered(label: str, relevance: Sequence[float | None]) -> float:
    """A label's value of one list whose items have these relevances, from the top."""
    rows = [
        {"list_id": "q", "item_id": str(rank), "rank": rank, "relevance": each}
        for rank, each in enumerate(relevance, start=1)
    ]
    (found,) = values_of(by_relevance(label), rankings(rows)).tolist()
    return found
