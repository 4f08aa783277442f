"""Delivered values that count as a group, as ``values`` in the settings says.

Here: the session tables that hold what the settings say and how many rows it was true of.  Not
here: what settings may say (``settings.group_values``), and tidying (``values``).
"""

from collections.abc import Iterable

from pipeline.formatting.numbers import counted
from pipeline.log.reading import Reading
from pipeline.log.values import tidy
from pipeline.settings.group_values import shown
from schemas.columns import internal, literal

_SAID = "counted_as"
"""Session table: what the settings say, so that statements hold no text of theirs."""
_FOUND = "rows_counted_as"
"""Session table: accepted rows, by attribute, value and the group that it counts as."""
_SHOWN = 10  # values in one line of a message


def open_counted_as(reading: Reading) -> None:
    """Fill the session with what the settings say."""
    said = [
        [attribute, value, group]
        for attribute, groups in reading.settings.values.items()
        for value, group in groups.items()
    ]
    reading.run(
        f"CREATE OR REPLACE TEMP TABLE {_SAID} "
        '("attribute" VARCHAR, "value" VARCHAR, "group" VARCHAR)'
    )
    reading.run(
        f"CREATE OR REPLACE TEMP TABLE {_FOUND} "
        '("attribute" VARCHAR, "value" VARCHAR, "group" VARCHAR, "rows" BIGINT)'
    )
    if said:
        reading.connection.execute(
            f"INSERT INTO {_SAID} SELECT said[1], said[2], said[3] FROM (SELECT unnest(?) AS said)",
            [said],
        )


def group_meant(reading: Reading, name: str, value: str) -> str:
    """SQL of the group that a tidy ``value`` of the attribute ``name`` is, or counts as."""
    if name not in reading.settings.values:
        return value
    return (
        f'coalesce((SELECT "group" FROM {_SAID} AS said '
        f'WHERE said."attribute" = {literal(name)} AND said."value" = {value}), {value})'
    )


def count_rows(reading: Reading, rows: str, names: Iterable[str]) -> None:
    """Add those of ``rows`` whose value of an attribute in ``names`` counts as another.

    Each of ``rows`` stands for as many as its ``times`` says.
    """
    for name in names:
        if name in reading.settings.values:
            reading.run(
                f'INSERT INTO {_FOUND} SELECT "attribute", "value", "group", "rows" '
                f'FROM (SELECT {tidy("written")} AS "value", sum(times)::BIGINT AS "rows" '
                f"FROM (SELECT {internal(name)} AS written, sum(times) AS times FROM {rows} "
                f"GROUP BY ALL) GROUP BY ALL) "
                f'JOIN {_SAID} USING ("value") WHERE "attribute" = {literal(name)}'
            )


def notes_on_counted(reading: Reading) -> tuple[str, ...]:
    """A remark for each attribute of which rows count as another group than they say."""
    notes = []
    for name in reading.settings.values:
        found = reading.connection.execute(
            f'SELECT "value", "group", sum("rows")::BIGINT FROM {_FOUND} WHERE "attribute" = ? '
            "GROUP BY ALL ORDER BY 3 DESC, 1",
            [name],
        ).fetchall()
        if not found:
            continue
        if reading.settings.privacy.names_groups:
            said = [
                f"{counted(rows, 'row')} with {shown(value)} {_count(rows)} as {shown(group)}"
                for value, group, rows in found[:_SHOWN]
            ]
            if len(found) > _SHOWN:
                said.append(f"and so on for {counted(len(found) - _SHOWN, 'more value')}")
            notes.append(f"{name}: {'; '.join(said)}")
        else:
            rows = sum(times for *_, times in found)
            number = f"{counted(rows, 'row')} with {counted(len(found), 'value')} {_count(rows)}"
            if reading.settings.privacy.min_cell > 1:
                number = "some rows count"
            notes.append(f"{name}: {number} as the groups that `values` in the settings names")
    return tuple(notes)


def _count(rows: int) -> str:
    return "counts" if rows == 1 else "count"
