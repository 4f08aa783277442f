"""How far doubles are from numbers of many digits."""

from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

Truth = Callable[..., Decimal]


def furthest(found: Any, truth: Truth, *given: np.ndarray[Any, Any]) -> Decimal:
    """How far results are from the truth at most, in units of their last place."""
    most = Decimal(0)
    with localcontext() as context:
        context.prec = 60
        for number, *row in zip(found.tolist(), *(each.tolist() for each in given), strict=True):
            true = truth(*map(Decimal, row))
            unit = Decimal(float(np.spacing(abs(float(true)))))
            most = max(most, abs(Decimal(number) - true) / unit)
    return most
