"""The minima of the FA*IR test in exact fractions, by trying one level after another."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any


@cache
def minima(depth: int, share: Fraction, alpha: Fraction) -> tuple[int, ...]:
    """Fewest items in the first 1..depth, so that the whole test fails nearest to ``alpha``."""
    at_most = [
        [
            sum(math.comb(i, j) * share**j * (1 - share) ** (i - j) for j in range(x + 1))
            for x in range(i + 1)
        ]
        for i in range(1, depth + 1)
    ]
    levels = sorted({p for row in at_most for p in row if p <= alpha})
    best: tuple[int, ...] = (0,) * depth
    gap = alpha
    for level in levels:
        table = tuple(sum(p <= level for p in row) for row in at_most)
        failing = probability(table, share)
        if abs(failing - alpha) < gap:
            best, gap = table, abs(failing - alpha)
        if failing > alpha:
            break
    return best


def probability(table: Sequence[int], share: Fraction | float) -> Any:
    """Probability that a list of independent places misses one of the minima."""
    alive: dict[int, Any] = {0: 1}
    for need in table:
        after: dict[int, Any] = {}
        for count, chance in alive.items():
            after[count] = after.get(count, 0) + chance * (1 - share)
            after[count + 1] = after.get(count + 1, 0) + chance * share
        alive = {count: chance for count, chance in after.items() if count >= need}
    return 1 - sum(alive.values())
