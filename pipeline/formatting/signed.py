"""Changes as people read them: with a sign, all of one change with the same decimals.

Not here: values without a sign (``numbers``).
"""

from math import floor, log10

from pipeline.formatting.encodings import can_print

_FINEST = 12
"""Most decimals of a part that are shown: further down there is nothing but rounding."""


class Signed:
    """Parts of one change as texts, all with as many decimals as the largest needs."""

    def __init__(self, *numbers: float | None) -> None:
        self.largest = max((abs(each) for each in numbers if each is not None), default=0.0)
        places = 2 - floor(log10(self.largest)) if self.largest > 0 else 0
        self.places = min(max(places, 0), _FINEST)

    def __call__(self, number: float | None) -> str:
        """``number`` with its sign; what rounds to nothing is 0."""
        if number is None:
            return ""
        text = f"{number:+,.{self.places}f}"
        return text if text.strip("+-0.,") else "0"

    def within(
        self, number: float | None, ends: tuple[float | None, float | None], about: str
    ) -> str:
        """``number`` and, after the sign ``about``, how far its interval reaches to either side."""
        lower, upper = ends
        if number is None or lower is None or upper is None:
            return self(number)
        return f"{self(number)} {about}{(upper - lower) / 2:,.{self.places}f}"


def either_side(encoding: str) -> str:
    """The sign of an interval that reaches as far to either side, where text is in ``encoding``.

    >>> either_side("utf-8"), either_side("ascii")
    ('±', '+-')
    """
    return "±" if can_print("±", encoding) else "+-"
