"""Markdown: tables and pieces of code.

Not here: what stands in them.
"""

from collections.abc import Iterable, Sequence


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; columns are not aligned, so that a row changes one line of a diff."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def code(text: object) -> str:
    """``text`` as code; nothing for nothing."""
    return f"`{text}`" if str(text) else ""


def codes(texts: Iterable[object]) -> str:
    """Several pieces of code, separated by commas."""
    return ", ".join(map(code, texts))
