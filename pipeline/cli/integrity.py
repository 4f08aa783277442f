"""Commands about the store as such: verify, rebuild, backup, restore, forget.

Not here: what is checked, copied or made again (``integrity``).
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from pipeline.cli.common import (
    CONFIG,
    FILE,
    JSON,
    QUIET,
    examples,
    reports_errors,
    safe,
    settings_of,
)
from pipeline.errors import NoData, StoreDamaged

_DAMAGED = StoreDamaged.exit_code


@contextmanager
def _progress(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], object]]:
    """A bar on the error output, for what counts things."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from pipeline.terminal import printing

    console = printing.console(stderr=True, quiet=quiet)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)


def _verified(verified: Any) -> list[str]:
    """What a look at the store found, in rich markup."""
    from pipeline.terminal.printing import printable

    lines = [f"  {printable(text)}" for text in verified.unfinished]
    if lines:
        lines.insert(0, "[yellow]unfinished[/]:")
    if verified.head:
        lines += [
            f"ledger   {verified.head[0]:,} lines, the last one",
            f"         {verified.head[1]}",
        ]
    lines.append(
        f"history  {verified.batches:,} batches, {verified.revisions:,} results, "
        f"{verified.rows:,} rows"
    )
    skipped = f"; {verified.skipped:,} unchanged, not read again" if verified.skipped else ""
    lines.append(f"files    {verified.files:,}, {verified.bytes / 1e6:,.1f} MB{skipped}")
    if verified.problems:
        lines.append(f"[red]{len(verified.problems):,} wrong[/]; nothing was changed")
    else:
        lines.append("nothing is lost, torn or changed")
    return lines


def _recomputed(found: Any) -> list[str]:
    """What computing a batch again gave, in rich markup."""
    from pipeline.terminal.printing import printable

    made_of = "rows" if found.from_rows else "counts; its rows were removed"
    how = "the same bits" if found.same else "[red]differs[/]"
    lines = [f"{printable(found.batch):<12} {how}, from {made_of}"]
    return lines + [f"  {printable(text)}" for text in found.differences]


@click.command(
    epilog=examples(
        "evenrank verify",
        "evenrank verify --recompute --batch 2026-01-19",
    )
)
@click.option("--expect", metavar="HASH", help="A line that the ledger must hold, noted before.")
@click.option("--changed", is_flag=True, help="Skip batch files nobody wrote to since last time.")
@click.option("--recompute", is_flag=True, help="Compute the numbers of --batch again as well.")
@click.option("--batch", "batches", multiple=True, help="Batch to compute again [all].")
@CONFIG
@JSON
@QUIET
@reports_errors
def verify(
    expect: str | None,
    changed: bool,
    recompute: bool,
    batches: tuple[str, ...],
    config: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Read the whole store, and tell what is lost, torn or changed.

    Writes nothing, but for a note of what was read under --changed.  Exit code 1 where anything is
    wrong.
    """
    settings = settings_of(config)
    from pipeline.integrity.recompute import recompute as computed_again
    from pipeline.integrity.verify import verify as look
    from pipeline.store.paths import store_of
    from pipeline.terminal.printing import console

    if batches and not recompute:
        raise click.UsageError("--batch goes with --recompute")
    if not store_of(settings).root.exists():
        raise NoData(f"{store_of(settings).root}: there is no store yet")
    out = console(quiet=quiet)
    with _progress("files", quiet=quiet) as progress:
        verified = look(settings, expect=expect, changed=changed, progress=progress)
    recomputed = []
    if recompute:
        with _progress("batches", quiet=quiet) as progress:
            for result in computed_again(settings, batches, progress):
                recomputed.append(result)
                for line in _recomputed(result):
                    out.print(line)
    for text in verified.problems:
        click.echo(f"evenrank: {safe(text)}", err=True)
    for line in _verified(verified):
        out.print(line)
    wrong = bool(verified.problems) or any(not result.same for result in recomputed)
    if as_json:
        document: dict[str, Any] = {**verified.__dict__, "ok": not wrong}
        if recompute:
            document["recomputed"] = [result.__dict__ for result in recomputed]
        click.echo(json.dumps(document))
    sys.exit(_DAMAGED if wrong else 0)


@click.command(epilog=examples("evenrank rebuild"))
@CONFIG
@JSON
@QUIET
@reports_errors
def rebuild(config: Path | None, as_json: bool, quiet: bool) -> None:
    """Make the history again from the batch files and the ledger.

    The former history is kept under another name.  Exit code 1 where a batch could not be taken
    over.
    """
    settings = settings_of(config)
    from pipeline.integrity.rebuild import rebuild as make
    from pipeline.monitoring.assess import assess
    from pipeline.publish.page.fresh import show
    from pipeline.terminal.printing import console, printable

    with _progress("batches", quiet=quiet) as progress:
        rebuilt = make(settings, progress=progress)
    assess(settings, rebuilt.batches)
    show(settings)
    out = console(quiet=quiet)
    out.print(
        f"{len(rebuilt.batches):,} batches, {rebuilt.superseded:,} superseded results taken over"
    )
    for path in rebuilt.aside:
        out.print(printable(f"put aside: {path}"))
    for text in rebuilt.lost:
        out.print(printable(f"lost with the former history: {text}"))
    for text in rebuilt.left_out:
        click.echo(f"evenrank: left out: {safe(text)}", err=True)
    if as_json:
        document = {**rebuilt.__dict__, "aside": [str(path) for path in rebuilt.aside]}
        click.echo(json.dumps(document))
    sys.exit(_DAMAGED if rebuilt.left_out else 0)


@click.command(epilog=examples("evenrank backup /backups/2026-01-20"))
@click.argument("folder", type=FILE)
@CONFIG
@JSON
@QUIET
@reports_errors
def backup(folder: Path, config: Path | None, as_json: bool, quiet: bool) -> None:
    """Copy the store to the new folder FOLDER, also while runs go on.

    Only what the ledger vouches for is copied.
    """
    settings = settings_of(config)
    from pipeline.integrity.backup import backup as copy
    from pipeline.terminal.printing import console, printable

    with _progress("files", quiet=quiet) as progress:
        made = copy(settings, folder, progress=progress)
    text = f"{made.path}: {made.files:,} files, {made.bytes / 1e6:,.1f} MB, line {made.line:,}"
    console(quiet=quiet).print(printable(text))
    if as_json:
        click.echo(json.dumps(made.__dict__))


@click.command(epilog=examples("evenrank restore /backups/2026-01-20"))
@click.argument("folder", type=FILE)
@click.option("--replace", is_flag=True, help="Put aside what the store holds.")
@CONFIG
@QUIET
@reports_errors
def restore(folder: Path, replace: bool, config: Path | None, quiet: bool) -> None:
    """Put the backup in FOLDER in the place of the store, and publish it."""
    settings = settings_of(config)
    from pipeline.integrity.backup import restore as put_back
    from pipeline.publish.page.fresh import show
    from pipeline.terminal.printing import console, printable

    aside = put_back(settings, folder, replace=replace)
    show(settings)
    out = console(quiet=quiet)
    if aside:
        out.print(printable(f"put aside: {aside}"))
    out.print("restored; `evenrank verify` looks at all of it")


@click.command(epilog=examples("evenrank forget --batch 2026-01-19 --reason 'erasure request 17'"))
@click.option("--batch", required=True, help="The batch to remove, by its key.")
@click.option("--reason", required=True, help="Why, in one line; the ledger keeps it.")
@CONFIG
@JSON
@QUIET
@reports_errors
def forget(batch: str, reason: str, config: Path | None, as_json: bool, quiet: bool) -> None:
    """Remove one batch from the store: scores, counts, rows, alerts about it alone.

    The ledger keeps that there was one and why it went.  Delivered logs stay.
    """
    settings = settings_of(config)
    from pipeline.formatting.numbers import counted
    from pipeline.history.forget_batch import forget_batch
    from pipeline.monitoring.assess import assess
    from pipeline.publish.page.fresh import show
    from pipeline.terminal.printing import console, later_lines, printable

    gone = forget_batch(settings, batch, reason)
    later = assess(settings).later
    show(settings)
    out = console(quiet=quiet)
    out.print(printable(f"{batch}: forgotten, {gone.reason}"))
    removed = [counted(gone.rows, "row"), f"{counted(len(gone.alerts), 'alert')} about it alone"]
    out.print(printable(f"  {', '.join([*removed, *gone.files])}"))
    if gone.marked:
        out.print(printable(f"  `evenrank mark --batch {batch} --remove` takes its release back"))
    for line in later_lines(later):
        out.print(line)
    if as_json:
        click.echo(json.dumps({**gone.__dict__, "later": list(later)}))
