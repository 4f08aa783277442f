"""Alerts and release markers in a terminal.

Not here: their sentences, which are written with them (``pipeline.monitoring.alert_texts``).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from pipeline.terminal.printing import printable

_STATE_STYLES = {"open": "red", "resolved": "dim", "withdrawn": "dim"}


def print_alerts(out: Console, rows: Sequence[Mapping[str, Any]], title: str = "") -> None:
    """Print alerts, a line or two for each; nothing for none."""
    if not rows:
        return
    if title:
        out.print(f"\n{printable(title)}", style="bold")
    table = Table(box=None, pad_edge=False)
    for name in ("alert", "kind", "opened", "seen"):
        table.add_column(name, no_wrap=True)
    table.add_column("what", overflow="fold")
    for row in rows:
        state = f"[{_STATE_STYLES[row['state']]}]{_state(row)}[/]: " if _state(row) else ""
        table.add_row(
            *map(printable, (row["alert"], row["kind"], row["opened"], f"{row['batches']}x")),
            state + printable(row["text"].split("\n")[0]),
        )
    out.print(table)


def print_alert(out: Console, row: Mapping[str, Any]) -> None:
    """Print an alert whole: what it says, and the query that looks further."""
    state = _state(row) or "open"
    out.print(printable(f"{row['alert']}  {row['kind']}, {state}"), style="bold")
    for name in ("text", "query"):
        for line in row[name].split("\n"):
            out.print(Padding(printable(line), (0, 0, 0, 2)))
    out.print()


def print_markers(out: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print releases, or that there are none."""
    if not rows:
        out.print("No release is marked.")
        return
    table = Table(box=None, pad_edge=False)
    for name in ("batch", "source"):
        table.add_column(name, no_wrap=True)
    table.add_column("text", overflow="fold")
    for row in rows:
        table.add_row(*(printable(row[name]) for name in ("batch", "source", "text")))
    out.print(table)


def _state(row: Mapping[str, Any]) -> str:
    """What there is to say about an alert beside that it is open."""
    if row["state"] != "open":
        known = ", acknowledged" if row["acknowledged_at"] is not None else ""
        return f"{row['state']}{known}"
    if row["acknowledged_at"] is not None:
        return "acknowledged"
    return f"snoozed until {row['snoozed_until']:%Y-%m-%d}" if row["snoozed_until"] else ""
