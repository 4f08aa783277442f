"""The command that writes the page."""

import json
from pathlib import Path

import click

from pipeline.cli_common import CONFIG, FILE, JSON, QUIET, reports_errors, settings_of


@click.command()
@click.option("--out", type=FILE, help="Where to [report.html in the store].")
@CONFIG
@JSON
@QUIET
@reports_errors
def report(out: Path | None, config: Path | None, as_json: bool, quiet: bool) -> None:
    """Write the page of the published copy: one file that opens in any browser."""
    settings = settings_of(config)
    from pipeline.report.page import write_report

    path = write_report(settings, out)
    if as_json:
        click.echo(json.dumps({"report": str(path), "bytes": path.stat().st_size}))
    elif not quiet:
        click.echo(path)
