"""What a night costs after 10, 100 and 400 nights: CPU seconds of whole commands.

Logs of one night are generated and audited; every night but the measured ones is that night's file
under another name, merged as any run would.  So the store holds as many rows, scores and entries of
the ledger as if each had been audited.  Measured nights are audited from logs of their own.
"""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from shutil import copyfile, copytree
from statistics import median

import click
import duckdb
from measured import fill, table

from pipeline.history.ledger import Ledger
from pipeline.history.merging import merge
from pipeline.monitoring.assess import assess
from pipeline.publish.page.fresh import show
from pipeline.settings.audit import Settings
from pipeline.settings.load import load_settings
from pipeline.store.batch_files import new_run_id
from pipeline.store.paths import store_of
from schemas.columns import literal, quoted

ROOT = Path(__file__).resolve().parents[1]
START = date(2026, 1, 1)
NIGHTS, QUICK = (10, 100, 400), (2, 3, 4)
COMMANDS = ("run", "assess", "publish", "verify", "verify --changed")


def night(number: int) -> str:
    return (START + timedelta(days=number - 1)).isoformat()


def evenrank(folder: Path, *words: str) -> float:
    """CPU seconds of a command and all that it starts, its own start included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "pipeline.cli", *words, "--quiet"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def deliver(folder: Path, number: int, lists: int) -> None:
    period = ("--start", night(number), "--days", "1", "--lists", str(lists))
    evenrank(folder, "generate", "--out", ".", *period)


def copied(settings: Settings, source: Path, batch: str) -> None:
    """Merge the file of one night as that of another."""
    store, run_id = store_of(settings), new_run_id()
    staged = store.staged(batch, run_id)
    copyfile(source, staged)
    with duckdb.connect(str(staged)) as file:
        for (name,) in file.execute(
            "SELECT table_name FROM duckdb_columns() "
            "WHERE column_name = 'batch' AND table_name IN (SELECT table_name FROM duckdb_tables())"
        ).fetchall():
            file.execute(f"UPDATE {quoted(name)} SET batch = {literal(batch)}")
        file.execute("CHECKPOINT")
    merge(settings, batch, run_id)


def measured(folder: Path, nights: Sequence[int], lists: int, rounds: int) -> Iterator[list[float]]:
    """CPU seconds of each command after so many nights."""
    copyfile(ROOT / "audit.yaml", folder / "audit.yaml")
    settings, done = load_settings(folder / "audit.yaml"), 1
    deliver(folder, 1, lists)
    evenrank(folder, "run", "--batch", night(1))
    source = store_of(settings).batch(night(1))
    for last in nights:
        for number in range(done + 1, last):
            copied(settings, source, night(number))
        assess(settings, [night(number) for number in range(done + 1, last)])
        show(settings)
        deliver(folder, last, lists)
        taken = []
        for turn in range(rounds):
            # A night is audited once, so each round has the store of before.
            again = folder / f"{last}-{turn}"
            for part in ("logs", "store"):
                copytree(folder / part, again / part)
            for part in ("audit.yaml", "items.parquet"):
                copyfile(folder / part, again / part)
            evenrank(again, "publish")
            taken.append(
                [
                    evenrank(again, "run", "--batch", night(last)),
                    evenrank(again, "assess", "--from", night(last)),
                    evenrank(again, "publish"),
                    # In a copy no batch file was noted but that of the night: all are read.
                    evenrank(again, "verify", "--changed"),
                    evenrank(again, "verify", "--changed"),
                ]
            )
        evenrank(folder, "run", "--batch", night(last))
        done = last
        lines = Ledger(store_of(settings).ledger).end()
        seconds = [median(each) for each in zip(*taken, strict=True)]
        said = ", ".join(f"{name} {cpu:.2f}" for name, cpu in zip(COMMANDS, seconds, strict=True))
        click.echo(
            f"{last} nights, {lines.last['line'] if lines else 0} lines of the ledger: {said}"
        )
        yield seconds


@click.command(help=__doc__)
@click.option("--lists", type=click.IntRange(1), default=1_000, help="Lists a night [1000].")
@click.option("--rounds", type=click.IntRange(1), default=3, help="Rounds [3].")
@click.option("--quick", is_flag=True, help="Few nights of few lists: does it run?")
@click.option("--document", type=click.Path(path_type=Path), default=ROOT / "docs/performance.md")
def main(lists: int, rounds: int, quick: bool, document: Path) -> None:
    nights = QUICK if quick else NIGHTS
    with tempfile.TemporaryDirectory() as name:
        columns = [*measured(Path(name), nights, 20 if quick else lists, 1 if quick else rounds)]
    rows = [
        [
            f"`evenrank {command}`",
            *(f"{column[at]:.2f}" for column in columns),
            f"{columns[-1][at] / columns[0][at]:.2f}",
        ]
        for at, command in enumerate(COMMANDS)
    ]
    heads = ["CPU s", *(f"night {number}" for number in nights), "last over first"]
    fill(document, [("nights", table(heads, rows))])


if __name__ == "__main__":
    main()
