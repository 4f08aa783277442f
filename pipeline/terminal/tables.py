"""Tables that fit the width there is: cells fold and stack, labels and numbers stay whole.

Here: how columns are laid out.  Not here: what stands in them (``printing``, ``series``).
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from rich.console import Console
from rich.table import Table
from rich.text import Text

Cells = dict[str, list[Text]]
"""The cells of each column, its heading among them as the first."""
Step = Callable[[Cells], Cells]

_GAP = 2  # blanks between columns
_LEAST = 8  # of a column that may be broken anywhere, before one that may not makes a line too long


def _folded(cells: Cells, name: str, at: re.Pattern[str]) -> Cells:
    """The cells of a column broken once, where they mean two things."""

    def fold(cell: Text) -> Text:
        place = at.search(cell.plain)
        return cell if place is None else _below(cell[: place.start()], cell[place.start() :])

    return {**cells, name: [fold(cell) for cell in cells[name]]} if name in cells else cells


def _stacked(cells: Cells, name: str, below: str) -> Cells:
    """A column moved into another one, below what stands there."""
    if not {name, below} <= {*cells}:
        return cells
    rest = {each: column for each, column in cells.items() if each != name}
    rest[below] = list(map(_below, cells[below], cells[name]))
    return rest


def _below(first: Text, second: Text) -> Text:
    return Text("\n").join([first, second]) if second.plain.strip() else first


def _chopped(cells: Cells, name: str, width: int) -> Cells:
    """The cells of a column in pieces of ``width`` signs, wherever that breaks them."""

    def chop(cell: Text) -> Text:
        lines = cell.split("\n")
        return Text("\n").join(
            line[at : at + width] for line in lines for at in range(0, max(1, len(line)), width)
        )

    return {**cells, name: [chop(cell) for cell in cells[name]]} if name in cells else cells


def chop(name: str, width: int) -> Step:
    """A step that breaks cells of the column ``name`` after every ``width`` signs."""
    return partial(_chopped, name=name, width=width)


def fold(name: str, at: str) -> Step:
    """A step that breaks cells of the column ``name`` before what the pattern ``at`` finds."""
    return partial(_folded, name=name, at=re.compile(at))


def stack(name: str, *, below: str) -> Step:
    """A step that puts the column ``name`` below the column ``below``."""
    return partial(_stacked, name=name, below=below)


def fitted(cells: Cells, width: int, steps: Sequence[Step]) -> Cells:
    """``cells`` after as few of the steps, in their order, as it takes to fit ``width``."""
    for step in steps:
        if _total(cells) <= width:
            break
        cells = step(cells)
    return cells


def print_table(
    out: Console,
    columns: Mapping[str, Sequence[Text]],
    *,
    steps: Sequence[Step] = (),
    loose: Collection[str] = (),
) -> None:
    """Print columns below their names; only ``loose`` ones are ever broken in the middle of a word.

    Where that is not enough, lines are longer than the console is wide, and nothing is cut.
    """
    cells = {name: [Text(name, "bold"), *column] for name, column in columns.items()}
    cells = fitted(cells, out.width, steps)
    table = Table(box=None, pad_edge=False, show_header=False)
    for name in cells:
        table.add_column(overflow="fold", no_wrap=name not in loose)
    for row in zip(*cells.values(), strict=True):
        table.add_row(*row)
    least = {name: min(_width(cells[name]), _LEAST) for name in loose if name in cells}
    width, out.width = out.width, max(out.width, _total(cells, least))
    try:
        out.print(table)
    finally:
        out.width = width


def _width(column: Sequence[Text]) -> int:
    return max(line.cell_len for cell in column for line in cell.split("\n"))


def _total(cells: Cells, instead: Mapping[str, int] | None = None) -> int:
    """How wide lines are, with other widths ``instead`` for some columns."""
    widths = [(instead or {}).get(name, _width(column)) for name, column in cells.items()]
    return sum(widths) + _GAP * (len(widths) - 1)
