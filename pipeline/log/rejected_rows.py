"""Rows that break a rule: found, explained, stored and counted; and lists that fall with them.

Not here: the rules (``schemas.rules``), and casting rows so that they can be judged
(``staged_rows``).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from pipeline.formatting.numbers import counted
from pipeline.log.reading import IDS, TEXT_CUT, Reading
from pipeline.log.sources import Source
from pipeline.privacy.hashed_ids import keyed, stored_id
from schemas.columns import literal
from schemas.rules import LIST_ID, LOGGED, RANK, SCORE, list_rules

_SAMPLES = 8
"""Offenders of a rule that messages may choose from: the table has the others."""
_NUMBERS = frozenset(column.name for column in LOGGED if column.type != "VARCHAR")
_NUMBER = re.compile(r"\s*[+-]?(\d[\d.,_]*([eE][+-]?\d+)?|nan|inf(inity)?|true|false)\s*", re.I)
_LONGEST_NUMBER = 40
"""Characters of a text that may still be a number."""
_MOST_DIGITS = 4
"""Digits of a number that names nobody: a telephone number, a birthday or an id has more."""
_ESSENTIAL = (LIST_ID.name, RANK.name, SCORE.name)
"""Columns whose loss leaves a hole in the list, so that dropping the row alone is not enough."""


@dataclass(frozen=True)
class RuleCount:
    """How many rows and lists broke one rule, with a few of them as text."""

    rule: str
    rows: int
    lists: int
    sample: tuple[str, ...] = ()


def judge(reading: Reading, sources: Sequence[Source]) -> None:
    """Store offenders of all rules, and fill ``judged_lists`` of the session.

    It has one row per list: its id and whether it is ``broken``.
    """
    _store(
        reading,
        sources,
        "SELECT * FROM (SELECT file, row, list_id, item_id, unnest(problems, recursive := true) "
        "FROM staged WHERE problems IS NOT NULL) WHERE rule IS NOT NULL",
    )
    settings = reading.settings
    rules = list_rules(settings.slices, gaps_allowed=settings.ranks.gaps != "reject")
    flags = "".join(f", coalesce({rule.broken}, false) AS rule{i}" for i, rule in enumerate(rules))
    essential = ", ".join(map(literal, _ESSENTIAL))
    fatal = "problems IS NOT NULL"
    if settings.rejects.policy == "drop_row":
        fatal = f'len(list_filter(problems, lambda p: p."column" IN ({essential}))) > 0'
    broken = " OR ".join(["rows_broken", *(f"rule{i}" for i in range(len(rules)))])
    reading.run(
        f"CREATE OR REPLACE TEMP TABLE judged_lists AS SELECT *, {broken} AS broken FROM ("
        f"SELECT list_id, coalesce(bool_or({fatal}), false) AS rows_broken{flags} "
        f"FROM staged WHERE list_id IS NOT NULL GROUP BY list_id)"
    )
    for i, rule in enumerate(rules):
        _store(
            reading,
            sources,
            f"SELECT file, row, list_id, item_id, {literal(rule.name)} AS rule, "
            f'{literal(rule.column)} AS "column", left({reading.column(rule.column)}::VARCHAR, '
            f"{TEXT_CUT}) AS value, {literal(rule.error)} AS problem "
            f"FROM staged WHERE list_id IN "
            f"(SELECT list_id FROM judged_lists WHERE rule{i}) QUALIFY {rule.offends}",
        )
    _number_lines(reading, sources)


def _store(reading: Reading, sources: Sequence[Source], offenders: str) -> None:
    """Count ``offenders`` and store the first of each rule.

    It is a query of file, row, list_id, item_id, rule, column, value and problem.
    """
    counts = reading.rows(
        f"SELECT rule, count(*), count(DISTINCT list_id) FROM ({offenders}) GROUP BY rule"
    )
    if not counts:
        return
    reading.connection.executemany(
        f"INSERT INTO {reading.database}.rule_counts VALUES (?, ?, ?)", counts
    )
    files = ", ".join(f"({n}, {literal(source.shown)})" for n, source in enumerate(sources))
    reading.run(
        f"INSERT INTO {reading.database}.rejected_rows BY NAME SELECT name AS file, row, "
        f'NULL AS line, {_stored_ids(reading)}, rule, "column", problem FROM ({offenders}) AS o '
        f"JOIN (VALUES {files}) AS f(number, name) ON f.number = o.file "
        "QUALIFY row_number() OVER (PARTITION BY rule ORDER BY o.file, row) "
        f"<= {reading.settings.rejects.max_stored_rows} ORDER BY o.file, row, rule"
    )


def _stored_ids(reading: Reading) -> str:
    """SQL of what an offender says of its ids: as they are stored, also where one is the value."""
    settings = reading.settings
    id_columns = [
        f"{stored_id(settings, column.name, column.name)} AS {column.name}" for column in IDS
    ]
    hidden = ", ".join(map(literal, settings.privacy.hash_ids))
    value = "value"
    if hidden:
        # What is blank says nothing of anybody, and is what is wrong.
        value = (
            f"CASE WHEN \"column\" IN ({hidden}) AND trim(value) <> '' "
            f"THEN {keyed('value')} ELSE value END"
        )
    return ", ".join([*id_columns, f"{value} AS value"])


def _number_lines(reading: Reading, sources: Sequence[Source]) -> None:
    """Say on which line of a text file each stored offender starts.

    The files are read again for it, only those with offenders: the reader of the rows counts rows,
    which empty lines and line feeds inside quotes set apart from lines.
    """
    table = f"{reading.database}.rejected_rows"
    for source in sources:
        of_source = f"file = {literal(source.shown)}"
        rows = reading.rows(f"SELECT DISTINCT row FROM {table} WHERE {of_source}")
        lines = source.lines_of(row for (row,) in rows)
        if lines:
            pairs = ", ".join(f"({row}, {line})" for row, line in lines.items())
            reading.run(
                f"UPDATE {table} SET line = found.line FROM (VALUES {pairs}) AS found(row, line) "
                f"WHERE {table}.row = found.row AND {of_source}"
            )


def accepted(reading: Reading) -> str:
    """SQL of the staged rows that are let in, to follow FROM staged."""
    own = "problems IS NULL" if reading.settings.rejects.policy == "drop_row" else "true"
    return (
        f"SEMI JOIN (SELECT list_id FROM judged_lists WHERE NOT broken) USING (list_id) WHERE {own}"
    )


def rule_counts(reading: Reading) -> tuple[RuleCount, ...]:
    """What was found, a rule each, with samples.

    They show a value only if it looks like a number of few digits where there should be one: any
    other may be an id, a name or a text that someone wrote, unless the settings say that values are
    shown.
    """
    shown = reading.settings.privacy.show_values
    samples: dict[str, list[str]] = {}
    for rule, file, row, line, column, value, problem in reading.rows(
        f'SELECT rule, file, row, line, "column", value, problem '
        f"FROM {reading.database}.rejected_rows "
        f"QUALIFY row_number() OVER (PARTITION BY rule ORDER BY file, row) <= {_SAMPLES} "
        "ORDER BY file, row"
    ):
        known = value is not None and (shown or _is_number(str(column), str(value)))
        said = f'"{value}" ' if known else ""
        where = f"row {row}" if line is None else f"line {line}"
        text = f"{where} of {PurePath(str(file)).name}: {column} {said}{problem}"
        samples.setdefault(str(rule), []).append(text)
    counted = reading.rows(
        f"SELECT rule, rows, lists FROM {reading.database}.rule_counts ORDER BY 1"
    )
    return tuple(
        RuleCount(str(rule), rows, lists, tuple(samples.get(str(rule), ())))
        for rule, rows, lists in counted
    )


def _is_number(column: str, value: str) -> bool:
    """Whether a delivered value says nothing but a short number, in a column of numbers."""
    fits = len(value) <= _LONGEST_NUMBER and _NUMBER.fullmatch(value) is not None
    few = sum(each.isdigit() for each in value) <= _MOST_DIGITS
    return column in _NUMBERS and fits and few


def rule_lines(rules: Iterable[RuleCount], samples: int = 3) -> list[str]:
    """Broken rules as text: a line each with counts, then a few of the offenders."""
    lines = []
    for rule in rules:
        lines.append(f"{rule.rule}: {counted(rule.rows, 'row')} in {counted(rule.lists, 'list')}")
        lines += [f"  {text}" for text in rule.sample[:samples]]
        if rule.rows > samples:
            lines.append(f"  and {rule.rows - samples:,} more")
    return lines
