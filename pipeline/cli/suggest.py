"""The command suggest: limits that the history and chance leave room for.

Not here: the rule (``history.suggestions``), and how it reads (``terminal.suggestions``).
"""

import json
from dataclasses import asdict
from pathlib import Path

import click

from pipeline.cli.common import CONFIG, JSON, examples, reports_errors, settings_of
from pipeline.errors import NoData, SettingsError


@click.command(epilog=examples("evenrank suggest", "evenrank suggest --all --attribute gender"))
@click.option("--attribute", help="Attribute [all].")
@click.option("--metric", help="Metric or score label, as in EXP.MinMaxRatio.")
@click.option("--all", "every", is_flag=True, help="Every fairness score, not only the first ones.")
@CONFIG
@JSON
@reports_errors
def suggest(
    attribute: str | None,
    metric: str | None,
    every: bool,
    config: Path | None,
    as_json: bool,
) -> None:
    """Propose thresholds from the history, as lines of the settings, with their reasons.

    Each limit leaves room for ordinary batches and for what chance alone does.  None says what is
    fair enough, and none is set: copy what you want into the settings.
    """
    settings = settings_of(config)
    from metrics import parse_score
    from pipeline.history.suggestions import suggestions
    from pipeline.terminal.printing import console
    from pipeline.terminal.suggestions import print_suggestions

    if metric:
        try:
            metric = parse_score(metric).label
        except ValueError as error:
            raise SettingsError(f"--metric: {error}") from None
    found = [
        each
        for each in suggestions(settings)
        if attribute in (None, each.attribute)
        and (metric is None or f"{each.label}.".startswith(f"{metric}."))
    ]
    if as_json:
        documents = [{**asdict(each), "yaml": each.yaml} for each in found]
        click.echo(json.dumps({"suggestions": documents}))
    elif not found:
        raise NoData(
            "the history has no fairness score without a threshold; run a batch first, or leave "
            "--metric and --attribute out"
        )
    else:
        print_suggestions(
            console(), found, every=every or bool(metric), thresholds=bool(settings.thresholds)
        )
