"""The command compare: another batch or model version beside the first.

Not here: the comparison (``compare.logs``).
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.common import CONFIG, FILE, JSON, QUIET, examples, reports_errors

if TYPE_CHECKING:
    from rich.console import Console

    from pipeline.compare.logs.report import Comparison

_SCORES_SHOWN = 3
"""Scores of a query that fit beside its name in a line of 80 columns."""


@click.command(
    epilog=examples(
        "evenrank compare 2026-01-18 2026-01-19 --top 3",
        "evenrank compare old/ new/ --metric 'RBO(p=0.8)@20' --csv queries.csv",
    )
)
@click.argument("a")
@click.argument("b")
@click.option("--metric", "metrics", multiple=True, help="Label, as in 'RBO(p=0.8)@20' [all].")
@click.option("--k", type=int, help="Cut-off of metrics that take one.")
@click.option("--p", type=float, help="p of RBO and RBD: higher looks deeper [0.9].")
@click.option("--top", type=click.IntRange(0), default=10, help="Queries shown [10].")
@click.option("--csv", "table", type=FILE, help="Write a row per query to this file.")
@CONFIG
@JSON
@QUIET
@reports_errors
def compare(
    a: str,
    b: str,
    metrics: tuple[str, ...],
    k: int | None,
    p: float | None,
    top: int,
    table: Path | None,
    config: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Compare the lists of A with those of B, per query and overall.

    A and B are log files, folders of them, or batches of the store, as in 2026-01-05.  B's order
    is the reference.
    """
    from pipeline.compare.logs.compare import compare as compared
    from pipeline.compare.logs.report import LESS
    from pipeline.errors import SettingsError
    from pipeline.terminal.printing import console, printable

    if table:
        _refuse_input(table, a, b)
    comparison = compared(a, b, metrics=metrics, k=k, p=p, config=config)
    if table:
        if not comparison.told:
            raise SettingsError(f"--csv {table}: {LESS}")
        _write(comparison, table)
    if as_json:
        click.echo(json.dumps(comparison.document()))
        return
    out = console(quiet=quiet)
    for line in _heading(comparison):
        out.print(printable(line))
    out.print()
    _print_overall(out, comparison)
    for weight in comparison.prefix_weights():
        out.print(
            f"p={weight['p']!r}: the first {weight['ranks']} ranks decide "
            f"{weight['weight']:.0%} of RBO and RBD"
        )
    if top and comparison.told:
        out.print()
        _print_queries(out, comparison, top)


def _refuse_input(path: Path, *compared: str) -> None:
    """SettingsError where the table would replace a log that is compared."""
    from pipeline.errors import SettingsError

    written = path.resolve()
    for side in (Path(name).resolve() for name in compared):
        if written == side or (side.is_dir() and side in written.parents):
            raise SettingsError(f"--csv {path}: is among the logs compared; name another file")


def _write(comparison: "Comparison", path: Path) -> None:
    """A row per query as CSV, the most different first."""
    from pipeline.errors import SettingsError
    from pipeline.terminal.exports import write_csv

    def rows() -> Iterator[dict[str, Any]]:
        for at in comparison.most_different().tolist():
            row = comparison.query(at)
            values = row.pop("values")
            del row["reasons"]
            yield {**row, **values}

    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            write_csv(rows(), file)
    except OSError as error:
        raise SettingsError(f"--csv {path}: {error.strerror}") from None


def _heading(comparison: "Comparison") -> Iterator[str]:
    """What was read, how lists were matched and what that leaves out."""
    from pipeline.compare.logs.report import LESS
    from pipeline.formatting.numbers import counted

    for letter, side in (("A", comparison.a), ("B", comparison.b)):
        rejected = f", {side.rejected:,} rejected" if side.rejected else ""
        size = f"{counted(side.lists, 'list')}, {counted(side.rows, 'row')}{rejected}"
        yield f"{letter}  {size}: {side.name}"
        yield from (f"   {note}" for note in side.notes)
    if not comparison.told:
        yield LESS
        return
    how = comparison.matching
    queries = f"{how.queries:,} {'query' if how.queries == 1 else 'queries'}"
    yield f"{queries} in both, {how.only_a:,} only in A, {how.only_b:,} only in B"
    if how.by_list_id or how.in_order:
        yield (
            f"where a query has several lists: {how.by_list_id:,} matched by list_id, "
            f"{how.in_order:,} in order of it"
        )
    if how.left_a or how.left_b:
        yield f"without a partner: {counted(how.left_a, 'list')} of A, {how.left_b:,} of B"


def _print_overall(out: "Console", comparison: "Comparison") -> None:
    from rich.table import Table

    from pipeline.formatting.numbers import counted, score_text
    from pipeline.terminal.printing import printable

    told = comparison.told
    how_many = counted(comparison.matching.lists, "matched list") if told else "matched lists"
    out.print(f"Mean over {how_many}", style="bold")
    table = Table(box=None, pad_edge=False)
    table.add_column("score", no_wrap=True)
    table.add_column("value", overflow="fold")
    table.add_column("lists", justify="right")
    table.add_column("no value", justify="right")
    for each in comparison.overall:
        without = comparison.matching.lists - each.lists
        cells = (each.name.label, score_text(each.value, each.reason))
        sizes = (f"{each.lists:,}", f"{without:,}" if without else "") if told else ("", "")
        table.add_row(*map(printable, cells), *sizes)
    out.print(table)


def _print_queries(out: "Console", comparison: "Comparison", top: int) -> None:
    """The queries that differ most, and a few scores of each."""
    from rich.table import Table

    from pipeline.formatting.numbers import number
    from pipeline.terminal.printing import printable

    shown = _shown(comparison)
    order = comparison.most_different()[:top].tolist()
    out.print(f"Most different by {shown[0]}", style="bold")
    table = Table(box=None, pad_edge=False)
    table.add_column("query", overflow="fold")
    for name in ("items A", "items B", "in both", *shown):
        table.add_column(name, justify="right", overflow="fold")
    for at in order:
        query = comparison.query(at)
        sizes = (f"{query[name]:,}" for name in ("items_a", "items_b", "shared"))
        values = (query["values"][label] for label in shown)
        scores = (number(value) for value in values)
        table.add_row(printable(query["query_id"]), *sizes, *scores)
    out.print(table)
    if len(comparison.queries) > len(order):
        out.print(f"  and {len(comparison.queries) - len(order):,} more: --top, --csv or --json")


def _shown(comparison: "Comparison") -> list[str]:
    """Labels of the scores beside a query: what it is ordered by, then other metrics."""
    first = comparison.deciding
    # A distance is what an overlap lacks of 1, so both would say the same.
    metrics_shown = {"RBO", "RBD"} if first.measure.metric.name in ("RBO", "RBD") else set()
    metrics_shown.add(first.measure.metric.name)
    labels = [first.label]
    for name in comparison.scores:
        metric = name.measure.metric.name
        if metric not in metrics_shown and name.fairest is not None:
            metrics_shown.add(metric)
            labels.append(name.label)
    return labels[:_SCORES_SHOWN]
