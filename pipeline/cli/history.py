"""The command history: scores of batches, printed, filtered and exported.

Not here: reading the history (``history.queries``), tables and exports (``terminal``).
"""

import json
from pathlib import Path
from typing import Any

import click

from pipeline.cli.common import CONFIG, FILE, JSON, examples, reports_errors, settings_of
from pipeline.errors import NoData, SettingsError

_MOST_LINES = 400
"""Lines of a table that a person may still read."""


@click.command(
    epilog=examples(
        "evenrank history --batch 2026-01-19",
        "evenrank history --trend --attribute gender",
        "evenrank history --status breach --format csv --out breaches.csv",
    )
)
@click.option("--batch", "batches", multiple=True, help="Batch; may be repeated.")
@click.option("--from", "first", help="First batch.")
@click.option("--to", "last", help="Last batch.")
@click.option("--slice", "part", help="Slice column, or 'all' for whole batches.")
@click.option("--attribute", help="Attribute.")
@click.option("--metric", help="Metric or score label, as in EXP.MinMaxRatio.")
@click.option(
    "--status", help="ok, breach, composition, insufficient, undefined, gated or not_judged."
)
@click.option("--trend", is_flag=True, help="A line per score: the last month, or --from and --to.")
@click.option("--all", "every", is_flag=True, help="Every score, not only those to see first.")
@click.option("--format", "form", type=click.Choice(["table", "csv", "jsonl"]), default="table")
@click.option("--out", type=FILE, help="Write to a file instead of the terminal.")
@CONFIG
@JSON
@reports_errors
def history(
    batches: tuple[str, ...],
    first: str | None,
    last: str | None,
    part: str | None,
    attribute: str | None,
    metric: str | None,
    status: str | None,
    trend: bool,
    every: bool,
    form: str,
    out: Path | None,
    config: Path | None,
    as_json: bool,
) -> None:
    """Print, filter and export the fairness history.

    Without a filter: the newest batch as a whole.  Of many scores of a batch, those that are
    judged, that moved, or that are furthest from chance; --all shows the others too.
    """
    settings = settings_of(config)
    from metrics import METRICS, parse_score
    from pipeline.history.queries import labelled
    from pipeline.history.series import batches_of, courses, last_month
    from pipeline.terminal import exports
    from pipeline.terminal.exports import write_csv, write_json_lines
    from pipeline.terminal.first_look import SCREEN, print_first_look, print_left_out
    from pipeline.terminal.printing import console, print_scores, score_details
    from pipeline.terminal.series import print_course, print_trends
    from schemas.scores import STATUSES

    conditions = []
    values: list[Any] = []
    if status and status not in STATUSES:
        raise SettingsError(f"--status is one of {', '.join(STATUSES)}, not {status}")
    if trend:
        if batches or as_json or form != "table" or out:
            raise SettingsError(
                "--trend is for reading, over many batches: use it with --from and --to, and "
                "without --batch, --format, --out and --json"
            )
        if not (part or attribute or metric or status):
            part = "all"
        if not (first or last):
            first = next(iter(last_month(settings)), None)
    metrics_of_family = [each.name for each in METRICS if each.family.name == metric]
    if metrics_of_family:
        metric = None
    if metric:
        try:
            metric = parse_score(metric).label
        except ValueError as error:
            raise SettingsError(f"--metric: {error}") from None
    for condition, value in (
        ("list_contains(?, batch)", list(batches) or None),
        ("batch >= ?", first),
        ("batch <= ?", last),
        ("slice = ?", part),
        ("attribute = ?", attribute),
        ("starts_with(label || '.', ? || '.')", metric),
        ("list_contains(?, regexp_extract(metric, '^[A-Za-z0-9]+'))", metrics_of_family or None),
        ("status = ?", None if trend else status),
    ):
        if value is not None:
            conditions.append(condition)
            values.append(value)
    if not conditions:
        newest = "(SELECT max(batch) FROM history.fairness_history)"
        conditions = [f"batch = {newest}", "slice = 'all'"]
    rows = labelled(settings, " AND ".join(conditions), values)
    if not rows:
        raise NoData("the history has no such scores")
    if trend:
        print_trends(console(), settings, rows, status, every=every)
    elif as_json:
        plain = [{name: exports.plain(value) for name, value in row.items()} for row in rows]
        click.echo(json.dumps({"scores": plain}))
    elif form == "table" and out is None:
        if len({row["batch"] for row in rows}) == 1 and len(rows) > SCREEN and not every:
            print_first_look(console(), settings, rows)
            return
        if not (batches or status):
            print_course(console(), settings, rows)
        shown = rows if every else rows[:_MOST_LINES]
        print_scores(console(), shown)
        if len(courses(rows, batches_of(settings, rows))) == 1:
            for line in score_details(rows[-1]):
                console().print(line)
        print_left_out(console(), len(rows) - len(shown))
    else:
        writer = write_json_lines if form == "jsonl" else write_csv
        try:
            with click.open_file(str(out) if out else "-", "w", encoding="utf-8") as file:
                writer(rows, file)
        except OSError as error:
            raise SettingsError(f"--out {out}: {error.strerror}") from None
