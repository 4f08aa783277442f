"""What a delivered value is worth, as SQL: blanks, spaces, numbers, groups.

Here: one value at a time.  Not here: whether it may be there (``schemas.rules``).
"""

from collections.abc import Callable, Sequence

from metrics import UNKNOWN
from pipeline.settings.labels import ESCAPE, JOIN
from schemas.columns import literal, quoted
from schemas.rules import CONTROL

INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
FLOATS = ("FLOAT", "DOUBLE")
NUMBERS = (*INTEGERS, *FLOATS, "UBIGINT", "HUGEINT", "UHUGEINT", "BOOLEAN")


def unless_blank(text: str) -> str:
    """SQL of a text as it is, null where it is nothing but spaces."""
    return f"CASE WHEN trim({text}) <> '' THEN {text} END"


def has_control(text: str) -> str:
    """SQL that is true for a text with a control character, such as a tab, in it."""
    return f"regexp_matches({text}, '{CONTROL}')"


def number_of(name: str, kind: str, *, truth: bool) -> str:
    """SQL of a number delivered in the type ``kind`` as DOUBLE, null where it is none.

    ``truth``: true and false are 1 and 0.  DuckDB also takes 1_000 for a number; a log does not.
    """
    value = f"TRY_CAST({name} AS DOUBLE)"
    if kind in FLOATS:
        # DuckDB 2.0 trusts statistics of Parquet files that leave NaN out, and then takes any
        # comparison with it for decided; infinities are compared as they should be.
        kept = f"isfinite({value}) OR {value} < 0"
        return f"CASE WHEN NOT ({kept}) THEN 'infinity'::DOUBLE ELSE {value} END"
    if kind != "VARCHAR":
        return value
    words = "WHEN lower({0}) = 'true' THEN 1.0 WHEN lower({0}) = 'false' THEN 0.0 " if truth else ""
    return f"CASE WHEN contains({name}, '_') THEN NULL {words.format(name)}ELSE {value} END"


def tidy(name: str) -> str:
    """SQL of a slice or attribute value: NFC, without surrounding space, unknown where empty."""
    outside = r"[\s\p{Z}\p{C}]+"
    trimmed = f"regexp_replace(nfc_normalize({name}), '^{outside}|{outside}$', '', 'g')"
    return f"coalesce(nullif({trimmed}, ''), {literal(UNKNOWN)})"


def group_of(attribute: Sequence[str], column: Callable[[str], str] = quoted) -> str:
    """SQL of the group of a row; an intersection is unknown where one of its parts is.

    A star or a backslash within a part has a backslash before it, so that no two groups have one
    name (``settings.labels.parts_of`` parts them).  ``column`` says what the tables at hand call an
    attribute column.
    """
    if len(attribute) == 1:
        return column(attribute[0])
    unknown = " OR ".join(f"{column(name)} = {literal(UNKNOWN)}" for name in attribute)
    joined = f" || {literal(JOIN)} || ".join(_escaped(column(name)) for name in attribute)
    return f"CASE WHEN {unknown} THEN {literal(UNKNOWN)} ELSE {joined} END"


def _escaped(part: str) -> str:
    """SQL of a part of the name of an intersection."""
    for sign in (ESCAPE, JOIN):
        part = f"replace({part}, {literal(sign)}, {literal(ESCAPE + sign)})"
    return part
