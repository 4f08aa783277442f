"""What people read in a terminal: a line per batch, what stands out, what to do next.

Everything can be read in 80 columns, and without colour.  Nothing here decides anything.

Not here: alerts (``alerts``), series (``series``), how tables fit (``tables``), rows for programs
(``exports``).
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from pipeline.formatting.evidence import chance_text, power_text, thin_text
from pipeline.formatting.looks import LOOKS, look_text, signs_for, styled
from pipeline.formatting.numbers import counted, interval_text, number, part_text, score_text
from pipeline.log.rejected_rows import rule_lines
from pipeline.terminal.tables import chop, fold, print_table, stack
from schemas.judged import as_judged

if TYPE_CHECKING:
    from pipeline.runs.outcome import Outcome

WIDTH = 80
"""Columns of what is no terminal: logs and mails keep them unbroken."""


def console(*, quiet: bool = False, stderr: bool = False) -> Console:
    """A console as wide as the terminal, or as COLUMNS says; ``quiet`` swallows everything."""
    found = Console(stderr=stderr, quiet=quiet, highlight=False, soft_wrap=False)
    if not (found.is_terminal or os.environ.get("COLUMNS", "").isdecimal()):
        found.width = WIDTH
    return found


def telling(*, quiet: bool = False) -> Callable[[str], None]:
    """Where texts for people go while something is under way: the error stream."""
    err = console(stderr=True, quiet=quiet)
    return lambda text: err.print(printable(text))


def printable(text: str) -> str:
    """``text`` without control characters, which could steer a terminal, ready for rich."""
    return escape(harmless(text))


def harmless(text: str) -> str:
    """``text`` without control characters."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


def batch_line(outcome: "Outcome", encoding: str) -> str:
    """One batch in one line of rich markup, for a stream in ``encoding``."""
    look, sign = LOOKS[outcome.status], signs_for(encoding)[outcome.status]
    head = styled(look.name, f"{sign} {printable(outcome.batch):<12}{look.word:<10}")
    if outcome.status in ("no_data", "failed"):
        return head + printable(outcome.message.split("\n")[0])
    if outcome.lists is None or outcome.rows_read is None:
        parts = ["too few for numbers to be told"]
    else:
        parts = [f"{outcome.lists:>9,} lists", f"{outcome.rows_read:>11,} rows"]
    if outcome.gated:
        parts.append(styled("gated", "gated"))
    if outcome.rows_rejected:
        parts.append(f"[yellow]{outcome.rows_rejected:,} rejected[/]")
    if outcome.breaches:
        parts.append(styled("breach", counted(outcome.breaches, "breach")))
    return head + "  ".join(parts)


def details(outcome: "Outcome") -> list[str]:
    """What a reader needs beside the line: why rows or the batch were refused."""
    if outcome.status in ("refused", "failed"):
        # The first line of what failed stands in the line of the batch already.
        said = outcome.message.split("\n")[outcome.status == "failed" :]
        return [printable(f"  {line}") for line in said]
    lines = [*outcome.notes, *rule_lines(outcome.rules, samples=2), *later_lines(outcome.later)]
    return [printable(f"  {line}") for line in lines]


def later_lines(batches: Sequence[str]) -> list[str]:
    """Which later batches are assessed otherwise than before, in a line; none for none."""
    if not batches:
        return []
    first, last = batches[0], batches[-1]
    which = first if first == last else f"{first} to {last}"
    return [f"assessed anew: {counted(len(batches), 'later batch')} ({which})"]


_CELLS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "batch": lambda row: row["batch"],
    "slice": part_text,
    "attribute": lambda row: row["attribute"] or "-",
    "score": lambda row: row["metric"] + (f".{row['aggregation']}" if row["aggregation"] else ""),
    "value": lambda row: score_text(row["value"], row["reason"]),
    "interval": lambda row: interval_text(row["lower"], row["upper"]),
    "by chance": lambda row: "" if row["expected"] is None else number(row["expected"]),
    "because": lambda row: row["status_reason"] or row["reason"] or "",
    "worst off": lambda row: row["worst_group"] or "",
    "best off": lambda row: row["best_group"] or "",
}
HISTORY_COLUMNS = (
    *("batch", "slice", "attribute", "score", "value", "interval"),
    *("status", "because", "worst off"),
)
BREACH_COLUMNS = (*HISTORY_COLUMNS[:-1], "by chance", HISTORY_COLUMNS[-1])
"""Of breaches also what chance alone gives: a breach is worse than that."""
SCORE_COLUMNS = ("slice", "attribute", "score", "value", "worst off", "best off")
INTERVAL_COLUMNS = ("slice", "attribute", "score", "value", "interval", "by chance", "worst off")

_LOOSE = ("slice", "attribute", "because", "worst off", "best off")
"""Columns of names that people chose, which may be of any length."""
_STEPS = (
    fold("because", r"(?<=: )|(?<=_)(?=[a-z]+$)"),
    fold("worst off", r"(?<=\*)"),
    fold("best off", r"(?<=\*)"),
    stack("because", below="status"),
    stack("interval", below="value"),
    stack("attribute", below="slice"),
    stack("by chance", below="value"),
    fold("slice", r"(?<= )"),
    fold("attribute", r"(?<=\*)"),
    stack("worst off", below="status"),
    chop("slice", 24),
    stack("slice", below="score"),
)
"""What is done to the columns, in this order, until lines fit."""


def print_scores(
    out: Console,
    rows: Sequence[Mapping[str, Any]],
    title: str = "",
    columns: Sequence[str] = HISTORY_COLUMNS,
) -> None:
    """Print rows of fairness_history.  What all rows share stands above the table, once.

    Where verdicts are shown, the scores are those that they are about.
    """
    signs = signs_for(out.encoding)
    rows = [as_judged(row) for row in rows] if "status" in columns else rows
    cells = {name: [_CELLS[name](row) for row in rows] for name in columns if name != "status"}
    statuses = [look_text(row["status"], signs) for row in rows] if "status" in columns else []
    if "because" in cells:
        cells["value"] = ["none" if row["value"] is None else _CELLS["value"](row) for row in rows]
    cells = {name: statuses if name == "status" else cells[name] for name in columns}
    shared = [
        name
        for name in ("batch", "slice", "attribute", "score", "status")
        if name in cells and len(rows) > 1 and len(set(cells[name])) == 1
    ]
    said = ", ".join(f"{name} {cells.pop(name)[0]}" for name in shared)
    heading = ": ".join(filter(None, (title, said)))
    if heading:
        out.print(printable(heading), style="bold")
    for name in ("interval", "by chance", "because", "worst off", "best off"):
        if not any(cells.get(name, ())):
            cells.pop(name, None)
    shown = {name: [Text(harmless(cell)) for cell in column] for name, column in cells.items()}
    for row, cell in zip(rows, shown.get("status", ()), strict="status" in shown):
        cell.stylize(LOOKS[row["status"]].style)
    # The reason why there is no value may be long; a number that is broken reads as another one.
    reasons = () if all(row["value"] is not None for row in rows) else ("value",)
    print_table(out, shown, steps=_STEPS, loose=(*_LOOSE, *reasons))


def score_details(row: Mapping[str, Any]) -> list[str]:
    """What a score rests on, a sentence a line: for one that is looked at by itself."""
    lines = (power_text(row), chance_text(row) if row["status"] in _BESIDE else "", thin_text(row))
    return [printable(line) for line in lines if line]


_BESIDE = ("breach", "composition")
"""Verdicts that are about chance as well."""
