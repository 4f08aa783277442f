"""How large the page of three years is, and how soon its first chart is drawn in Chromium.

Beside it stands a floor: a page with the same script and no scores, until its script has run.  The
ratio of the two says what the data costs, whatever machine this is.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import click
from measured import table
from playwright.sync_api import Browser

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "helpers"))
from browser import chromium, opened, why_not
from pages import STORES

from pipeline.publish.page.page import write_report
from pipeline.store.paths import store_of

_FIRST = "() => performance.getEntriesByName('first-chart')[0].startTime"
_LOADED = "() => performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"


def seconds(browser: Browser, file: Path, moment: str, times: int) -> float:
    """Median of the seconds from the start of navigation to a moment, a fresh profile each time."""
    found = []
    for _ in range(times):
        with opened(browser, file) as watched:
            found.append(watched.page.evaluate(moment) / 1000)
    return statistics.median(found)


def measured(folder: Path, times: int) -> str:
    """Size and times of the pages of three years and of no scores, as a table."""
    rows, taken = [], {}
    with chromium() as browser:
        for name, said, moment in (("none", "no scores", _LOADED), ("years", "3 years", _FIRST)):
            settings = STORES[name](folder / name)
            before = time.perf_counter()
            page = write_report(settings)
            wrote = time.perf_counter() - before
            taken[name] = seconds(browser, page, moment, times)
            sizes = (page.stat().st_size / 1e6, store_of(settings).dashboard.stat().st_size / 1e6)
            cells = (f"{sizes[1]:.0f} MB", f"{sizes[0]:.2f} MB", f"{wrote:.1f} s")
            rows.append(
                [said, *cells, f"{taken[name]:.2f} s", f"{taken[name] / taken['none']:.1f}"]
            )
    heads = ["history", "copy", "page", "written in", "first chart after", "times the floor"]
    return table(heads, rows)


@click.command(help=__doc__)
@click.option("--times", type=click.IntRange(1), default=5, help="How often a page is opened [5].")
def main(times: int) -> None:
    if missing := why_not():
        raise click.ClickException(missing)
    with tempfile.TemporaryDirectory() as folder:
        click.echo(measured(Path(folder), times))


if __name__ == "__main__":
    main()
