"""Rows that are judged one by one: cast, with what is wrong with each.

Here: ``staged``, a table of the rows of suspect lists.  Not here: which lists are suspect
(``screening``) and what is said about them (``rejected_rows``).
"""

from pipeline.log.reading import IDS, TEXT_CUT, Reading, key_of, raw_of, value_of
from pipeline.log.values import tidy
from schemas.columns import Column, internal, literal, quoted
from schemas.offenders import RowRule, obeys, row_rules
from schemas.rules import LIST_ID, LOGGED, QUERY_ID


def _rules(reading: Reading) -> list[RowRule]:
    return [
        rule
        for column in reading.columns
        if column is not QUERY_ID
        for rule in row_rules(column, raw=raw_of(column), value=value_of(column))
    ]


def suspicious(reading: Reading) -> str:
    """SQL that is true for every delivered row that breaks a row rule, and for few others."""
    tests = [
        f"NOT {obeys(column, raw=raw_of(column), value=value_of(column))}"
        for column in reading.columns
        if column.type != "VARCHAR"
    ]
    for column in IDS:
        key = key_of(column)
        blank = is_blank(key) if is_text(reading, column) else "false"
        tests.append(f"({key} IS NULL OR {blank})")
    return " OR ".join(tests)


def is_blank(text: str) -> str:
    """SQL that is true for every text that is blank, and for few others.

    It is empty or begins with a space: with the usual one, which nothing printed comes before, or
    with one of those beyond ASCII.
    """
    return f"({text} < '!' OR ({text} >= '\u00a0' AND trim({text}) = ''))"


def is_text(reading: Reading, column: Column) -> bool:
    """Whether an id came as a text: one that is a number in all files is compared as a number."""
    ((kind,),) = reading.connection.execute(
        f"SELECT typeof(any_value({key_of(column)})) FROM (FROM delivered LIMIT 0)"
    ).fetchall()
    return str(kind) == "VARCHAR"


def stage(reading: Reading, lists: str) -> None:
    """Fill ``staged`` with the delivered rows of ``lists``, a table with keys of lists."""
    columns = [f"{quoted(column.name)} {column.type}" for column in LOGGED]
    columns += [f"{internal(name)} VARCHAR" for name in reading.names]
    reading.run(
        f"CREATE OR REPLACE TEMP TABLE staged (file INTEGER, row BIGINT, number BIGINT, "
        f"{', '.join(columns)}, "
        'problems STRUCT(rule VARCHAR, "column" VARCHAR, value VARCHAR, problem VARCHAR)[])'
    )
    select_columns = ["file", "row", "number"]
    select_columns += [f"{_typed(column)} AS {quoted(column.name)}" for column in reading.columns]
    # Slices are compared within a list; attributes wait until they are numbered.
    select_columns += [
        f"{tidy(internal(name)) if name in reading.settings.slices else internal(name)} "
        f"AS {internal(name)}"
        for name in reading.users
    ]
    rules = _rules(reading)
    broken = " OR ".join(f"({rule.offends})" for rule in rules)
    entries = ", ".join(
        f"CASE WHEN {rule.offends} THEN {{'rule': {literal(rule.name)}, "
        f"'column': {literal(rule.column)}, 'problem': {literal(rule.error)}, "
        f"'value': left(CAST({quoted('raw ' + rule.column)} AS VARCHAR), {TEXT_CUT})}} END"
        for rule in rules
    )
    select_columns.append(f"CASE WHEN {broken} THEN [{entries}] END AS problems")
    key = key_of(LIST_ID)
    reading.run(
        f"INSERT INTO staged BY NAME SELECT {', '.join(select_columns)} FROM delivered "
        f"SEMI JOIN {lists} AS chosen ON delivered.{key} IS NOT DISTINCT FROM chosen.key"
    )


def _typed(column: Column) -> str:
    """SQL of a delivered value in the column's own type, null where it does not fit."""
    value = value_of(column)
    if column.type in ("DOUBLE", "VARCHAR"):
        return value
    fits = f"isfinite({value}) AND {value} = floor({value}) AND abs({value}) < 9e15"
    return f"CASE WHEN {fits} THEN CAST({value} AS {column.type}) END"
