"""Commands that work on the store: run, backfill, history, publish."""

import json
import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from pipeline.cli_common import CONFIG, DAY, FILE, JSON, QUIET, reports_errors, safe, settings_of
from pipeline.errors import (
    AuditError,
    DataRefused,
    GateFailed,
    NoData,
    SettingsError,
    StoreBusy,
)

_FORCE = click.option("--force", is_flag=True, help="Compute again although nothing changed.")
_FROM_COUNTS = click.option(
    "--from-counts", is_flag=True, help="Score stored counts again; read no logs."
)
_FAIL_ON = click.option(
    "--fail-on",
    type=click.Choice(["breach", "shift", "gate"]),
    multiple=True,
    help="Exit 5 on breaches, shifts, failed gates; may be repeated.",
)
_NOTIFY = "Send new alerts, as `notify` in the settings says"
_MOST_LINES = 400
"""Lines of a table that a person may still read."""


def _noticed(settings: Any, batches: list[str]) -> dict[str, int]:
    """How many findings of each kind that --fail-on knows there are in ``batches``."""
    from pipeline.alerts import alerts, gated_batches
    from pipeline.history import verdicts

    seen = alerts(settings, batches=batches)
    return {
        "breach": verdicts(settings, batches).get("breach", 0),
        "shift": sum(row["kind"] == "shift" for row in seen),
        "gate": len(gated_batches(settings, batches)),
    }


def _end(outcomes: Iterable[Any], found: dict[str, int], *, fail_on: tuple[str, ...]) -> int:
    """The exit code of some batches: the gravest first."""
    codes = {outcome.exit_code for outcome in outcomes}
    for error in (AuditError, StoreBusy, SettingsError, DataRefused):
        if error.exit_code in codes:
            return error.exit_code
    if any(found[kind] for kind in fail_on):
        return GateFailed.exit_code
    return NoData.exit_code if NoData.exit_code in codes else 0


def _outcome(outcome: Any) -> dict[str, Any]:
    return {
        name: value
        for name, value in outcome.__dict__.items()
        if name not in ("rules", "assessed", "exit_code")
    } | {"rules": {rule.rule: rule.rows for rule in outcome.rules}}


@click.command()
@click.option("--batch", required=True, help="The batch, as in 2026-01-05.")
@CONFIG
@_FORCE
@_FROM_COUNTS
@_FAIL_ON
@click.option("--notify/--no-notify", default=True, help=f"{_NOTIFY} [yes, for the newest batch].")
@JSON
@QUIET
@reports_errors
def run(
    batch: str,
    config: Path | None,
    force: bool,
    from_counts: bool,
    fail_on: tuple[str, ...],
    notify: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Audit one batch: ingest, measure, score, merge, assess, publish."""
    settings = settings_of(config)
    from pipeline import summary
    from pipeline.alerts import alerts
    from pipeline.closing import untold_lines
    from pipeline.course_lines import print_watched
    from pipeline.courses import last_month
    from pipeline.delivery import deliver
    from pipeline.forget import forget_rows
    from pipeline.history import breaches, newest_batch, verdicts
    from pipeline.publish import publish_changes
    from pipeline.report.fresh import renew_report
    from pipeline.run import run_batch

    out = summary.console(quiet=quiet)
    tell = summary.telling(quiet=quiet)
    outcome = run_batch(
        settings, batch, force=force, from_counts=from_counts, notify=notify, waiting=tell
    )
    forget_rows(settings, tell)
    publish_changes(settings, tell)
    if notify and batch == newest_batch(settings) and deliver(settings, tell):
        publish_changes(settings, tell)
    found = breaches(settings, [batch])
    if outcome.status in ("no_data", "refused", "failed"):
        click.echo(f"rankaudit: {safe(f'{batch}: {outcome.message}')}", err=True)
    else:
        out.print(summary.batch_line(outcome))
        for line in summary.details(outcome):
            out.print(line)
        for line in untold_lines(verdicts(settings, [batch])):
            out.print(f"  {line}")
        if found:
            out.print()
            summary.print_scores(out, found, "Beyond their thresholds")
        print_watched(out, settings, last_month(settings, batch))
        summary.print_alerts(out, alerts(settings, batches=[batch]), "Alerts seen in the batch")
    renew_report(settings, tell)
    noticed = _noticed(settings, [batch])
    if as_json:
        click.echo(json.dumps({**_outcome(outcome), "breaches": len(found)}))
    sys.exit(_end([outcome], noticed, fail_on=fail_on))


@click.command()
@click.option("--from", "first", type=DAY, required=True, help="First day.")
@click.option("--to", "last", type=DAY, required=True, help="Last day.")
@CONFIG
@click.option("--jobs", type=click.IntRange(1, 64), default=1, help="Batches at once [1].")
@_FORCE
@_FROM_COUNTS
@_FAIL_ON
@click.option("--notify/--no-notify", default=False, help=f"{_NOTIFY} [no].")
@JSON
@QUIET
@reports_errors
def backfill(
    first: datetime,
    last: datetime,
    config: Path | None,
    jobs: int,
    force: bool,
    from_counts: bool,
    fail_on: tuple[str, ...],
    notify: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Audit many days; finished ones are skipped, so it can be interrupted."""
    settings = settings_of(config)
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from pipeline import summary
    from pipeline.closing import closing
    from pipeline.report.fresh import renew_report
    from pipeline.run import backfill as run_backfill
    from pipeline.run import days

    if last < first:
        raise SettingsError(f"--to {last:%Y-%m-%d} lies before --from {first:%Y-%m-%d}")
    keys = days(first.date(), last.date())
    out = summary.console(quiet=quiet)
    outcomes = []
    assessed: list[Any] = []
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=summary.console(stderr=True, quiet=quiet),
        transient=True,
    ) as progress:
        task = progress.add_task("backfill", total=len(keys))
        for outcome in run_backfill(
            settings,
            keys,
            jobs=jobs,
            force=force,
            from_counts=from_counts,
            notify=notify,
            waiting=lambda text: progress.console.print(summary.printable(text)),
            assessed=assessed.append,
        ):
            outcomes.append(outcome)
            out.print(summary.batch_line(outcome))
            for line in summary.details(outcome):
                out.print(line)
            progress.advance(task)
    later = [batch for found in assessed for batch in found.later]
    renew_report(settings, summary.telling(quiet=quiet))
    if not quiet:
        for line in summary.later_lines(later):
            out.print(line)
        closing(settings, outcomes)
    noticed = _noticed(settings, keys)
    if as_json:
        document = {"batches": [_outcome(each) for each in outcomes], "later": later}
        click.echo(json.dumps({**document, "breaches": noticed["breach"]}))
    code = _end(outcomes, noticed, fail_on=fail_on)
    # Days without logs are gaps that the history shows; they do not fail a backfill.
    some_done = any(outcome.exit_code == 0 for outcome in outcomes)
    sys.exit(0 if code == NoData.exit_code and some_done else code)


@click.command()
@click.option("--batch", "batches", multiple=True, help="Batch; may be repeated.")
@click.option("--from", "first", help="First batch.")
@click.option("--to", "last", help="Last batch.")
@click.option("--slice", "part", help="Slice column, or 'all' for whole batches.")
@click.option("--attribute", help="Attribute.")
@click.option("--metric", help="Metric or score label, as in EXP.MinMaxRatio.")
@click.option("--status", help="ok, breach, insufficient, undefined, gated or not_judged.")
@click.option("--trend", is_flag=True, help="A line per score: the last month, or --from and --to.")
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
    form: str,
    out: Path | None,
    config: Path | None,
    as_json: bool,
) -> None:
    """Print, filter and export the fairness history.

    Without a filter: the newest batch as a whole.
    """
    settings = settings_of(config)
    from metrics import METRICS, parse_score
    from pipeline import summary
    from pipeline.course_lines import print_course, print_trends
    from pipeline.courses import last_month
    from pipeline.history import labelled
    from schemas.tables import STATUSES

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
    family = [each.name for each in METRICS if each.family.name == metric]
    if family:
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
        ("list_contains(?, regexp_extract(metric, '^[A-Za-z0-9]+'))", family or None),
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
        print_trends(summary.console(), settings, rows, status, _MOST_LINES)
    elif as_json:
        plain = [{name: summary.plain(value) for name, value in row.items()} for row in rows]
        click.echo(json.dumps({"scores": plain}))
    elif form == "table" and out is None:
        if not (batches or status):
            print_course(summary.console(), settings, rows)
        summary.print_scores(summary.console(), rows[:_MOST_LINES])
        if len(rows) > _MOST_LINES:
            click.echo(f"and {len(rows) - _MOST_LINES:,} more: narrow it, or --format csv")
    else:
        writer = summary.write_json_lines if form == "jsonl" else summary.write_csv
        try:
            with click.open_file(str(out) if out else "-", "w", encoding="utf-8") as file:
                writer(rows, file)
        except OSError as error:
            raise SettingsError(f"--out {out}: {error.strerror}") from None


@click.command()
@CONFIG
@QUIET
@reports_errors
def publish(config: Path | None, quiet: bool) -> None:
    """Replace the dashboard copy by the history as it stands, and its page."""
    settings = settings_of(config)
    from pipeline import summary
    from pipeline.report.fresh import show
    from pipeline.sealing import has_history
    from pipeline.store import store_of

    if not has_history(store_of(settings)):
        raise NoData("there is no history yet; run a batch first")
    path = show(settings, summary.telling(quiet=quiet))
    if not quiet:
        click.echo(path)
