"""Pieces of SQL that several statements of measuring are made of."""

from schemas.tables import BUCKETS


def scaled(value: str, unit: int) -> str:
    """SQL of a real number as a scaled integer, rounded once."""
    return f"CAST(round(({value}) * {float(unit)!r}::DOUBLE) AS BIGINT)"


def structs(name: str, value: str, pairs: list[tuple[str, str]]) -> str:
    """SQL of a list of {name, value} structs, to be unnested."""
    return "[" + ", ".join(f"{{'{name}': {a}, '{value}': {b}}}" for a, b in pairs) + "]"


def bucket_of(query: str) -> str:
    """SQL of the bucket that a query falls into: the same on every machine."""
    return f"(md5_number_lower({query}) % {BUCKETS})::INTEGER"
