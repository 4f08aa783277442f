"""Remarks on groups of a batch that nobody can tell apart by looking at them.

Not here: groups that no other batch has (``history.new_groups``), and making them one
(``counted_as``).
"""

from itertools import groupby

from metrics import UNKNOWN
from pipeline.formatting.numbers import counted
from pipeline.log.reading import Reading
from pipeline.settings.group_values import folded, shown
from schemas.columns import internal

_SHOWN = 3  # sets of groups in one line of a message


def notes_on_alike(reading: Reading) -> tuple[str, ...]:
    """A remark for each attribute and slice with values that are alike when ``folded``."""
    notes = []
    for names, table in (
        (reading.settings.attribute_columns, "log_cells"),
        (reading.settings.slices, "log_lists"),
    ):
        for name in names:
            found = reading.connection.execute(
                f"SELECT DISTINCT {internal(name)} FROM {reading.database}.{table}"
            ).fetchall()
            values = sorted((folded(value), value) for (value,) in found if value != UNKNOWN)
            sets = [
                [value for _, value in each]
                for _, each in groupby(values, key=lambda pair: pair[0])
            ]
            if alike := [each for each in sets if len(each) > 1]:
                notes.append(f"{name}: {_said(reading, alike)}")
    return tuple(notes)


def _said(reading: Reading, alike: list[list[str]]) -> str:
    many = counted(sum(map(len, alike)), "value")
    text = f"{many} differ only in case, width or signs that cannot be seen"
    if not reading.settings.privacy.names_groups:
        return text
    named = ["; ".join(" and ".join(map(shown, each)) for each in alike[:_SHOWN])]
    more = [f"and {len(alike) - _SHOWN:,} more"] if len(alike) > _SHOWN else []
    return f"{text}: {' '.join([*named, *more])}"
