"""Pieces of SQL that several statements of measuring are made of."""

from schemas.tables import BUCKETS


def scaled(value: str, unit: int) -> str:
    """SQL of a real number as a scaled integer, rounded once: halves to even, as a cast does."""
    return f"CAST(({value}) * {float(unit)!r}::DOUBLE AS BIGINT)"


def structs(name: str, value: str, pairs: list[tuple[str, str]]) -> str:
    """SQL of a list of {name, value} structs, to be unnested."""
    return "[" + ", ".join(f"{{'{name}': {a}, '{value}': {b}}}" for a, b in pairs) + "]"


def bucket_of(query: str) -> str:
    """SQL of the bucket that a query falls into: the same on every machine."""
    # The upper half is what md5_number_lower takes four times as long to compute.
    return f"((md5_number({query}) >> 64) & {BUCKETS - 1})::INTEGER"
