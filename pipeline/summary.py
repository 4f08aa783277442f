"""What people read in a terminal: a line per batch, what stands out, what to do next.

Everything fits 80 columns and reads the same without colour.  Nothing here decides anything.
"""

import csv
import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pipeline.rejects import counted, rule_lines
from pipeline.run import Outcome
from pipeline.settings import Settings
from pipeline.store import store_of

WIDTH = 80
_STYLES = {
    "done": "green",
    "unchanged": "dim",
    "no_data": "yellow",
    "refused": "red",
    "failed": "red",
}
_SYMBOLS = {"done": "+", "unchanged": "=", "no_data": "o", "refused": "!", "failed": "x"}
_SHOWN = 12


def console(*, quiet: bool = False, stderr: bool = False) -> Console:
    """A console of at most 80 columns; ``quiet`` swallows everything."""
    found = Console(stderr=stderr, quiet=quiet, highlight=False, soft_wrap=False)
    if found.width > WIDTH or not found.is_terminal:
        found.width = WIDTH
    return found


def printable(text: str) -> str:
    """``text`` without control characters, which could steer a terminal, ready for rich."""
    return escape("".join(c if c.isprintable() or c == "\n" else "?" for c in text))


def batch_line(outcome: Outcome) -> str:
    """One batch in one line of rich markup."""
    style = _STYLES[outcome.status]
    head = f"[{style}]{_SYMBOLS[outcome.status]} {printable(outcome.batch):<12}"
    head += f"{outcome.status.replace('_', ' '):<10}[/]"
    if outcome.status in ("no_data", "failed"):
        return head + printable(outcome.message.split("\n")[0])
    parts = [f"{outcome.lists:>9,} lists", f"{outcome.rows_read:>11,} rows"]
    if outcome.rows_rejected:
        parts.append(f"[yellow]{outcome.rows_rejected:,} rejected[/]")
    if outcome.breaches:
        parts.append(f"[red]{outcome.breaches:,} breach{'es' if outcome.breaches > 1 else ''}[/]")
    return head + "  ".join(parts)


def details(outcome: Outcome) -> list[str]:
    """What a reader needs beside the line: why rows or the batch were refused."""
    if outcome.status in ("refused", "failed"):
        return [printable(f"  {line}") for line in outcome.message.split("\n")]
    lines = [*outcome.notes, *rule_lines(outcome.rules, samples=2)]
    return [printable(f"  {line}") for line in lines]


def score_text(value: float | None, reason: str | None) -> str:
    """A score in three significant digits, or why there is none."""
    if value is None:
        return f"none ({reason})"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:#.3g}".removesuffix(".")


def _slice(row: Mapping[str, Any]) -> str:
    return "all" if row["slice"] == "all" else f"{row['slice']} {row['slice_value']}"


_CELLS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "batch": lambda row: row["batch"],
    "slice": _slice,
    "attribute": lambda row: row["attribute"] or "-",
    "score": lambda row: row["metric"] + (f".{row['aggregation']}" if row["aggregation"] else ""),
    "value": lambda row: score_text(row["value"], row["reason"]),
    "status": lambda row: row["status"].replace("_", " "),
    "worst off": lambda row: row["worst_group"] or "",
    "best off": lambda row: row["best_group"] or "",
}
HISTORY_COLUMNS = ("batch", "slice", "attribute", "score", "value", "status", "worst off")
SCORE_COLUMNS = ("slice", "attribute", "score", "value", "worst off", "best off")


def print_scores(
    out: Console,
    rows: Sequence[Mapping[str, Any]],
    title: str = "",
    columns: Sequence[str] = HISTORY_COLUMNS,
) -> None:
    """Print rows of fairness_history.  What all rows share stands above the table, once."""
    cells = {name: [_CELLS[name](row) for row in rows] for name in columns}
    shared = [
        name
        for name in ("batch", "slice", "attribute", "score", "status")
        if name in cells and len(rows) > 1 and len(set(cells[name])) == 1
    ]
    said = ", ".join(f"{name} {cells.pop(name)[0]}" for name in shared)
    heading = ": ".join(filter(None, (title, said)))
    if heading:
        out.print(printable(heading), style="bold")
    for name in ("worst off", "best off"):
        if not any(cells.get(name, ())):
            cells.pop(name, None)
    # A number or a verdict that is broken in two reads as another one; labels and names may fold.
    numbers = all(row["value"] is not None for row in rows)
    whole = ("batch", "status", *(("value",) if numbers else ("score",)))
    table = Table(box=None, pad_edge=False)
    for name in cells:
        table.add_column(name, overflow="fold", no_wrap=name in whole)
    for line in zip(*cells.values(), strict=True):
        table.add_row(*map(printable, line))
    out.print(table)


def closing(settings: Settings, outcomes: Sequence[Outcome], command: str = "") -> None:
    """The end of a run over many batches: counts, what stands out, files, what to try next."""
    from pipeline.history import breaches, verdicts

    out = console()
    counts = {
        status: sum(outcome.status == status for outcome in outcomes)
        for status in ("done", "unchanged", "no_data", "refused", "failed")
    }
    said = ", ".join(f"{n} {status.replace('_', ' ')}" for status, n in counts.items() if n)
    out.print(f"\n[bold]{counted(len(outcomes), 'batch')}[/]: {said or 'nothing to do'}")
    keys = [outcome.batch for outcome in outcomes]
    found, judged = breaches(settings, keys), verdicts(settings, keys)
    if found:
        out.print()
        print_scores(out, found[:_SHOWN], "Beyond their thresholds")
        if len(found) > _SHOWN:
            out.print(f"  and {len(found) - _SHOWN:,} more")
    elif judged.get("ok"):
        out.print("No score is beyond its threshold.")
    elif settings.thresholds:
        out.print("No score with a threshold has a value.")
    else:
        out.print("No thresholds are set, so nothing was judged.")
    if judged.get("undefined"):
        out.print(
            f"[yellow]{counted(judged['undefined'], 'score')} of whole batches with a threshold, "
            "but without a value[/] (status undefined)."
        )
    store = store_of(settings)
    out.print(f"\nHistory     {_short(store.history)}\nDashboards  {_short(store.dashboard)}")
    if command:
        out.print("\nNext")
        for line in _next(settings, found, command):
            out.print(f"  {printable(line)}")


def _next(settings: Settings, found: Sequence[Mapping[str, Any]], command: str) -> list[str]:
    first = found[0] if found else None
    config = f" --config {shlex.quote(str(command))}" if command != "audit.yaml" else ""
    about = f"--batch {first['batch']} --status breach" if first else "--slice all"
    return [
        f".venv/bin/rankaudit history {about}{config}",
        ".venv/bin/rankaudit metrics",
        f"make dev{' CONFIG=' + shlex.quote(str(command)) if config else ''}",
    ]


def _short(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def plain(value: Any) -> Any:
    """``value`` as JSON can hold it."""
    return value.isoformat() + "Z" if isinstance(value, datetime) else value


def write_csv(rows: Iterable[Mapping[str, Any]], file: IO[str]) -> None:
    """Rows as CSV; text that a spreadsheet would run as a formula is prefixed with a quote."""
    writer = None
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(file, list(row), lineterminator="\n")
            writer.writeheader()
        writer.writerow({name: _cell(value) for name, value in row.items()})


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return "'" + value
    return plain(value)


def write_json_lines(rows: Iterable[Mapping[str, Any]], file: IO[str]) -> None:
    """Rows as JSON, one object a line."""
    for row in rows:
        file.write(json.dumps({name: plain(value) for name, value in row.items()}) + "\n")
