"""The words that the page explains at its end.

Not here: formulas and sources, which the catalogue of metrics has.
"""

from typing import NamedTuple


class Word(NamedTuple):
    """A word, the code of a score or verdict that it stands for, and what it means."""

    name: str
    code: str
    text: str


WORDS = (
    Word(
        "Exposure",
        "EXP",
        "The first place counts 1, the second 0.63, the tenth 0.29: people look at the top. "
        "A group's exposure is what its items get on average.",
    ),
    Word(
        "Ratio",
        "MinMaxRatio",
        "What the worst-off group gets for each 1 that the best-off group gets. 1 is equal; "
        "0.8 means a fifth less.",
    ),
    Word(
        "Pairs won",
        "ARP",
        "Take two items of different groups from one list. How often is this group's item the "
        "higher one? Half the time is equal.",
    ),
    Word(
        "Interval",
        "",
        "How far a number could be off because only some searches were seen. Of 20 intervals of "
        "95%, 19 hold the true value.",
    ),
    Word(
        "✕ Beyond its limit, ? unsure, ✓ within",
        "",
        "Beyond: the whole interval is on the wrong side of the limit. Unsure: the number is, and "
        "part of the interval is not; or too few searches were seen.",
    ),
    Word(
        "≠ Explained by chance, ⊘ held back",
        "",
        "Explained by chance: lists in random order would be beyond the limit too. Held back: "
        "the data of the day is so unlike that of other days that nothing is judged.",
    ),
    Word(
        "Usual",
        "",
        "The median of the batches before. One bad day does not move it.",
    ),
    Word(
        "Beyond chance",
        "",
        "Further from the usual value than 3 robust standard deviations of the batches before "
        "(1.4826 times their median distance from it).",
    ),
    Word(
        "Assured",
        "",
        "Within its limit, and so is the whole interval: a breach would have been noticed.",
    ),
)
