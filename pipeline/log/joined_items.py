"""How many accepted rows name an item that the item table holds, and what others differ in.

Counted over items, not rows.  Ids are texts: ``3.0`` joins no ``3``, and nobody can say of a row
that joins nothing which group its item has.

Not here: the join (``accepted_rows``), and whether a batch with few such rows is judged
(``trends.gates``).
"""

from dataclasses import dataclass

from pipeline.log.reading import Reading
from pipeline.privacy.hashed_ids import is_hashed
from pipeline.settings.group_values import shown
from schemas.history import IdsDiffer
from schemas.rules import ITEM_ID

_JOINED = "rows_joined"
"""Session table: rows of each part that was stored, and how many of them joined."""
_APART = "items_apart"
"""Session table: the items of each part that joined nothing and have most rows."""
_LOOKED_AT = 1000
"""Items whose ids are compared in other ways: enough to tell, and the same for any log."""
_MOST = 0.9
"""Share of rows that join from which on nobody looks why the others do not: items come and go."""
_FEW = 0.5
"""Share of rows that join below which it is remarked on, whatever the cause."""
_TRIMMED = r"regexp_replace({0}, '^[\s\p{{Z}}]+|[\s\p{{Z}}]+$', '', 'g')"
_WHOLE = r"regexp_replace({0}, '\.0+$', '')"
_SAME_WHERE = {
    IdsDiffer.DECIMALS: _WHOLE,
    IdsDiffer.ZEROS: "ltrim({0}, '0')",
    IdsDiffer.SPACES: _TRIMMED,
    IdsDiffer.CASE: "lower({0})",
    IdsDiffer.SEVERAL: f"ltrim(lower({_WHOLE.format(_TRIMMED)}), '0')",
}
"""SQL of what ids have in common that differ in nothing else."""


@dataclass(frozen=True)
class Joined:
    """``rows`` that were accepted, and of how many the item table holds the item.

    ``differ`` says what most of the other ids differ in from ids of the item table, None where
    that is not plain; ``example`` is the one with most rows.
    """

    rows: int
    joined: int
    differ: IdsDiffer | None
    example: str


def open_joined(reading: Reading) -> None:
    """Begin to count."""
    reading.run(f"CREATE OR REPLACE TEMP TABLE {_JOINED} (rows BIGINT, joined BIGINT)")
    reading.run(f"CREATE OR REPLACE TEMP TABLE {_APART} (item_id VARCHAR, rows BIGINT)")


def count_joined(reading: Reading) -> None:
    """Add the items in ``item_numbers``, within the transaction that stores their rows."""
    reading.run(
        f"INSERT INTO {_JOINED} SELECT sum(item_rows), "
        "coalesce(sum(item_rows) FILTER (joined), 0) FROM item_numbers"
    )
    reading.run(
        f"INSERT INTO {_APART} SELECT CAST(key AS VARCHAR) AS item_id, item_rows FROM item_numbers "
        f"WHERE NOT joined ORDER BY item_rows DESC, item_id LIMIT {_LOOKED_AT}"
    )


def joined_rows(reading: Reading) -> Joined | None:
    """What was counted; None where no attribute comes from an item table: nothing joins then."""
    ((rows, joined),) = reading.rows(
        f"SELECT sum(rows)::BIGINT, sum(joined)::BIGINT FROM {_JOINED}"
    )
    if not rows:
        return None
    differ, example = None, ""
    if joined < _MOST * rows:
        differ = _differ(reading)
        ((example,),) = reading.connection.execute(
            f"SELECT item_id FROM {_APART} ORDER BY rows DESC, item_id LIMIT 1"
        ).fetchall()
    return Joined(rows, joined, differ, example)


def notes_on_joined(
    reading: Reading, joined: Joined, table: str, *, few: bool = False
) -> tuple[str, ...]:
    """A remark where most rows join nothing, or somebody could mend it; ``table`` is its name.

    ``few``: the batch is about too few for numbers to be told.
    """
    if joined.differ is None and joined.joined >= _FEW * joined.rows:
        return ()
    apart = "some rows" if few else f"{joined.rows - joined.joined:,} of {joined.rows:,} rows"
    note = f"{apart} name an item that {table} does not hold"
    if joined.differ:
        note += f"; ids differ in {joined.differ.text}"
    if reading.settings.privacy.show_values and not is_hashed(reading.settings, ITEM_ID.name):
        note += f"; one is {shown(joined.example)}"
    return (note,)


def _differ(reading: Reading) -> IdsDiffer | None:
    """The first that explains half of the rows looked at, or more."""
    ((every,),) = reading.rows(f"SELECT sum(rows)::BIGINT FROM {_APART}")
    for differ, form in _SAME_WHERE.items():
        same = form.format("item_id")
        ((rows,),) = reading.rows(
            f"SELECT coalesce(sum(rows), 0)::BIGINT FROM (SELECT {same} AS id, rows FROM {_APART}) "
            f"SEMI JOIN (SELECT {same} AS id FROM item_table) USING (id)"
        )
        if 2 * rows >= every:
            return differ
    return None
