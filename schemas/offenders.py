"""From pandera to SQL: conditions that are true for the rows a schema would refuse.

Not here: the rules (``rules``), and running the SQL (``pipeline.log``).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandera.pandas as pa

from schemas.columns import Column, literal


@dataclass(frozen=True)
class RowRule:
    """One way in which a value can break its column's contract.

    ``offends`` is a SQL condition, true or null for an offending row.  ``error`` reads on after
    the value: ``1.2 is outside [0, 1]``.
    """

    name: str
    column: str
    error: str
    offends: str


def _in_range(value: str, given: Mapping[str, Any]) -> str:
    above = ">=" if given["include_min"] else ">"
    below = "<=" if given["include_max"] else "<"
    return f"({value} {above} {given['min_value']!r} AND {value} {below} {given['max_value']!r})"


def _isin(value: str, given: Mapping[str, Any]) -> str:
    allowed = given["allowed_values"]
    texts = (literal(each) if isinstance(each, str) else repr(each) for each in allowed)
    return f"{value} IN ({', '.join(texts)})"


_PASSES: dict[str, Callable[[str, Mapping[str, Any]], str]] = {
    "in_range": _in_range,
    "isin": _isin,
    "not_equal_to": lambda value, given: f"{value} <> {literal(given['value'])}",
    "str_matches": lambda value, given: f"regexp_matches({value}, {literal(given['pattern'])})",
    "greater_than": lambda value, given: f"{value} > {given['min_value']!r}",
    "greater_than_or_equal_to": lambda value, given: f"{value} >= {given['min_value']!r}",
    "less_than_or_equal_to": lambda value, given: f"{value} <= {given['max_value']!r}",
}


def passes(check: pa.Check, value: str) -> str:
    """SQL condition that a non-null ``value`` passes ``check``.

    KeyError for a check that has no translation: a rule must not be enforced in one place only.
    """
    return _PASSES[str(check.name)](value, check.statistics or {})


def obeys(column: Column, *, raw: str, value: str) -> str:
    """SQL that is true for a value that breaks none of the ``row_rules`` of its column.

    For a number: cheaper than asking rule by rule, where only few rows break any.
    """
    checks = [passes(check, value) for check in column.checks]
    if column.type == "BIGINT":
        checks.append(f"{value} = floor({value})")
    obeyed = f"coalesce({' AND '.join(checks)}, false)"
    return f"({raw} IS NULL OR {obeyed})" if column.nullable else obeyed


def row_rules(column: Column, *, raw: str, value: str) -> Iterator[RowRule]:
    """The rules of one column.

    ``raw`` is the SQL of what was delivered, ``value`` the SQL of it cast to the column's type, or
    to DOUBLE for whole numbers, null where the cast fails.  One row breaks at most one of them.
    """
    name = column.name
    if not column.nullable:
        yield RowRule(f"{name}_missing", name, "is missing", f"{raw} IS NULL")
    given = f"{raw} IS NOT NULL"
    if column.type == "DOUBLE":
        yield RowRule(f"{name}_not_number", name, "is not a number", f"{given} AND {value} IS NULL")
    if column.type == "BIGINT":
        whole = f"coalesce(isfinite({value}) AND {value} = floor({value}), false)"
        yield RowRule(
            f"{name}_not_whole", name, "is not a whole number", f"{given} AND NOT {whole}"
        )
        given = f"{whole}"
    for check in column.checks:
        yield RowRule(
            str(check.title),
            name,
            str(check.error),
            f"{given} AND {value} IS NOT NULL AND NOT ({passes(check, value)})",
        )
