"""Measured tables, and their places in documents: between ``<!-- measured: NAME -->`` markers."""

import re
from collections.abc import Iterable
from pathlib import Path

import click


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def written(document: str, name: str, measured: str) -> str:
    """``document`` with a table between its markers; ValueError if it has no such markers."""
    start, end = f"<!-- measured: {name} -->", "<!-- /measured -->"
    pattern = re.compile(re.escape(start) + r".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(document):
        raise ValueError(f"no marker {start}")
    return pattern.sub(lambda _: f"{start}\n{measured}\n{end}", document)


def fill(document: Path, tables: Iterable[tuple[str, str]]) -> None:
    """Print each table, and write it to its place in the document, as it gets ready."""
    for name, measured in tables:
        click.echo(f"\n{name}\n{measured}")
        text = written(document.read_text(encoding="utf-8"), name, measured)
        document.write_text(text, encoding="utf-8")
