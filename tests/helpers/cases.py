"""On how many cases laws and oracles are tried: on all of them with ``--full``, else on fewer.

What is asserted is the same.  ``make test-all`` says ``--full``.
"""

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import settings

Case = TypeVar("Case")


class _Extent:
    full = False


def tried_on(*, everything: bool) -> None:
    """Whether all cases are tried; to be said before tests are collected."""
    _Extent.full = everything


def examples(number: int, *, few: int) -> settings:
    """A decorator: so many examples for hypothesis, or ``few``."""
    assert few < number
    return settings(max_examples=number if _Extent.full else few)


def some(cases: Sequence[Case], *, few: int) -> Sequence[Case]:
    """All of ``cases``, or ``few`` of them in equal steps up to the last, from the first if two."""
    assert 1 <= few < len(cases)
    if _Extent.full:
        return cases
    last = len(cases) - 1
    return [cases[last - at * last // max(few - 1, 1)] for at in reversed(range(few))]


def number(full: int, *, few: int) -> int:
    """``full``, or ``few``: of rounds, seeds or draws."""
    assert few < full
    return full if _Extent.full else few


def everything() -> bool:
    """Whether all cases are tried."""
    return _Extent.full
