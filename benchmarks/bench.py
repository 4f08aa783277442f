"""How fast an audit is: every goal measured, beside one scan of the same file.

Everything runs in turn, in processes of its own, and what counts are ratios inside a round, which a
busy machine moves far less than it moves the clock.  Numbers are kept in results.json; RESULTS.md,
the plot and the tables of docs/performance.md are made from them.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import click
from measured import written
from speed.entries import ENTRIES, SIZES, SUITES, Entry, chosen
from speed.goals import spread
from speed.page import goals, growth, page, steps
from speed.peers import build, python_of
from speed.plot import svg
from speed.rounds import Results, Rounds, keep, read

HERE = Path(__file__).parent
ROOT = HERE.parent
CACHE = ROOT / ".bench"
COMMITTED = ("10M", "100M")
"""Sizes whose results are kept beside the code; others are a quick look."""


def write_pages(folder: Path) -> None:
    """Write the page and the plot of the results in a folder, and the tables of the manual."""
    kept = read(folder / "results.json")
    plot = folder / "growth.svg"
    if folder.resolve() == HERE:
        plot = ROOT / "docs" / "images" / "growth.svg"
    results = kept.get("10M") or next(iter(kept.values()), {})
    plot.write_text(svg(results), "utf-8")
    link = Path(os.path.relpath(plot, folder)).as_posix()
    (folder / "RESULTS.md").write_text(page(kept, link), "utf-8")
    if folder.resolve() == HERE:
        manual = ROOT / "docs" / "performance.md"
        text = manual.read_text("utf-8")
        tables = {"goals": goals(kept), "steps": steps(results), "growth": growth(results)}
        for name, made in tables.items():
            text = written(text, name, made)
        manual.write_text(text, "utf-8")


def runnable(entries: list[Entry], cache: Path) -> list[Entry]:
    """Entries whose environment is there; the others are named."""
    peers = {each.peer for each in entries if each.peer}
    missing = sorted(peer for peer in peers if not python_of(cache, peer).exists())
    if missing:
        click.echo(f"without {', '.join(missing)}: --peers makes environments", err=True)
    return [each for each in entries if each.peer not in missing]


def show(results: Results) -> None:
    """What a run measured, in a line for each entry."""
    click.echo("\nCPU seconds, and multiples of the scan: median and range")
    for name in ENTRIES:
        found = results.get(name)
        if not found:
            continue
        if "failed" in found:
            click.echo(f"  {name:<20} failed: {found['failed'][:50]}")
            continue
        floor = next((each for each in ENTRIES[name].against if each.startswith("floor")), None)
        seconds = spread([each["cpu"] for each in found["rounds"]])
        times = ""
        if floor:
            times = spread([each["cpu"] / each["against"][floor] for each in found["rounds"]])
        click.echo(f"  {name:<20} {seconds:<26} {times}".rstrip())


@click.command(help=__doc__)
@click.option("--size", type=click.Choice(list(SIZES)), default="10M", show_default=True)
@click.option("--rounds", type=click.IntRange(1), help="Rounds [5; 2 at small, 1 at 100M].")
@click.option("--only", default="", help="Entries or suites, separated by commas.")
@click.option("--peers", is_flag=True, help="Make environments for other libraries, with pip.")
@click.option("--report", is_flag=True, help="Measure nothing; write the pages anew.")
@click.option("--list", "listed", is_flag=True, help="Say what can be measured.")
@click.option("--cache", type=click.Path(path_type=Path), default=CACHE, help="Logs [.bench].")
@click.option(
    "--results", type=click.Path(path_type=Path), help="Their folder [benchmarks, or the cache]."
)
def main(
    size: str,
    rounds: int | None,
    only: str,
    peers: bool,
    report: bool,
    listed: bool,
    cache: Path,
    results: Path | None,
) -> None:
    folder = results or (HERE if size in COMMITTED else cache / size)
    if listed:
        click.echo(f"suites: {', '.join(SUITES)}")
        for entry in ENTRIES.values():
            click.echo(f"  {entry.name:<20} {entry.suite:<10} {entry.text}")
        return
    if not report:
        try:
            entries = chosen(size, [name.strip() for name in only.split(",") if name.strip()])
        except LookupError as error:
            raise click.UsageError(f"{error}: no such entry or suite; --list names them") from None
        measure(size, entries, rounds, peers, cache.absolute(), folder)
    write_pages(folder)
    click.echo(f"\n{folder / 'RESULTS.md'}")


def measure(
    size: str, entries: list[Entry], rounds: int | None, peers: bool, cache: Path, folder: Path
) -> None:
    """Run entries and keep what they say; what was measured before Ctrl-C is kept, too."""
    begun = time.monotonic()

    def tell(text: str) -> None:
        click.echo(f"{time.monotonic() - begun:7.0f} s  {text}", err=True)

    cache.mkdir(parents=True, exist_ok=True)
    if peers:
        try:
            build(cache, tell)
        except subprocess.CalledProcessError as error:
            raise click.ClickException(f"no environment for other libraries: {error}") from None
    usual = {"tiny": 1, "small": 2, "100M": 1}.get(size, 5)
    path = folder / "results.json"
    runs = Rounds(size, cache, lambda found: keep(path, size, found), tell)
    try:
        runs.run(runnable(entries, cache), rounds or usual)
    except KeyboardInterrupt:
        keep(path, size, runs.results)
        write_pages(folder)
        click.echo("\nstopped; what was measured is kept", err=True)
        sys.exit(130)
    show(runs.results)


if __name__ == "__main__":
    main()
