"""Commands that write what people read: report, publish.

Not here: the page and the copy themselves (``publish``).
"""

import json
import os
from pathlib import Path

import click

from pipeline.cli.common import CONFIG, FILE, JSON, QUIET, examples, reports_errors, settings_of
from pipeline.errors import NoData


@click.command(
    epilog=examples(
        "evenrank report",
        "evenrank report --out /srv/www/fairness.html",
    )
)
@click.option("--out", type=FILE, help="Where to [report.html in the store].")
@CONFIG
@JSON
@QUIET
@reports_errors
def report(out: Path | None, config: Path | None, as_json: bool, quiet: bool) -> None:
    """Write the page of the published copy: one file that opens in any browser."""
    settings = settings_of(config)
    from pipeline.publish.copy import publish_changes
    from pipeline.publish.page.page import write_report
    from pipeline.store.paths import store_of

    if os.access(store_of(settings).root, os.W_OK):
        publish_changes(settings)
    path = write_report(settings, out)
    if as_json:
        click.echo(json.dumps({"report": str(path), "bytes": path.stat().st_size}))
    elif not quiet:
        click.echo(path)


@click.command(epilog=examples("evenrank publish"))
@CONFIG
@QUIET
@reports_errors
def publish(config: Path | None, quiet: bool) -> None:
    """Replace the dashboard copy by the history as it stands, and its page."""
    settings = settings_of(config)
    from pipeline.history.commits import has_history
    from pipeline.publish.page.fresh import show
    from pipeline.store.paths import store_of

    if not has_history(store_of(settings)):
        raise NoData("there is no history yet; run a batch first")
    path = show(settings)
    if not quiet:
        click.echo(path)
