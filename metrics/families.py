"""The families that metrics come in: what the settings can name as a whole, one asset each.

Not here: their metrics (``catalogue``).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """Metrics that answer one question.  ``name`` stands for all of them in the settings."""

    name: str
    title: str
    text: str


FAIRNESS = Family(
    "fairness",
    "Fairness of exposure",
    "Do groups get the positions, and the attention, that they should?",
)
QUALITY = Family(
    "quality", "Ranking quality", "Do lists put relevant items on top, and whose items are they?"
)
COMPARISON = Family(
    "comparison",
    "Two rankings compared",
    "How far does a list follow another order of its items: a logged one, or that by relevance?",
)
TOP_K = Family(
    "top_k",
    "Fairness of a cut",
    "Who stands above the cut-off, of those who could, and of those who should?",
)
LIST_NATIVE = Family(
    "list_native",
    "Fairness of lists",
    "What other tools and tests say of the order of groups and items in a list.",
)
FAMILIES: tuple[Family, ...] = (FAIRNESS, QUALITY, COMPARISON, TOP_K, LIST_NATIVE)
