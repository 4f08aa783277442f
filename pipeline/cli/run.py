"""Commands that fill the store: run, backfill.

Not here: the order of a run (``pipeline.runs``), and its texts (``pipeline.terminal``).
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from pipeline.cli.common import (
    CONFIG,
    DAY,
    FILE,
    JSON,
    QUIET,
    examples,
    reports_errors,
    safe,
    settings_of,
)
from pipeline.cli.events import Events, events
from pipeline.errors import AuditError, DataRefused, GateFailed, NoData, SettingsError, StoreBusy

_UNTOLD = "a breach about too few to be told (privacy.min_cell)"
_NOTIFY = "Send new alerts, as `notify` in the settings says"


def _work(notify: bool, notify_help: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Options of the commands that compute batches."""
    options = (
        CONFIG,
        click.option("--force", is_flag=True, help="Compute again although nothing changed."),
        click.option(
            "--from-counts", is_flag=True, help="Score stored counts again; read no logs."
        ),
        click.option(
            "--fail-on",
            type=click.Choice(["breach", "shift", "missing", "gate"]),
            multiple=True,
            help="Exit 5 on breaches (or nothing to judge), shifts, missing groups, failed gates; "
            "may be repeated.",
        ),
        click.option(
            "--require-data", is_flag=True, help="Exit 1 where a batch has no data, to try again."
        ),
        click.option("--notify/--no-notify", default=notify, help=f"{_NOTIFY} [{notify_help}]."),
        click.option(
            "--summary",
            type=FILE,
            envvar="EVENRANK_SUMMARY",
            help="Write the end as JSON to this file, however it ends.",
        ),
        click.option("--log", is_flag=True, help="One line per event, on stderr; no tables."),
        JSON,
        QUIET,
        reports_errors,
    )

    def declare(function: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            function = option(function)
        return function

    return declare


def _noticed(settings: Any, batches: list[str]) -> dict[str, list[str]]:
    """What of each kind that --fail-on knows was found in ``batches``, in words.

    Where nothing could be judged, nobody can say that there is no breach.
    """
    from pipeline.formatting.numbers import counted
    from pipeline.history.queries import verdicts
    from pipeline.monitoring.alerts import alerts
    from pipeline.monitoring.unjudged import unjudged

    def counted_if_any(number: int, what: str) -> list[str]:
        return [counted(number, what)] if number else []

    seen = alerts(settings, batches=batches)
    breaches = verdicts(settings, batches, told=True).get("breach", 0)
    untold = not breaches and verdicts(settings, batches).get("breach", 0) > 0
    found = {
        "breach": [_UNTOLD] if untold else counted_if_any(breaches, "breach"),
        "shift": counted_if_any(sum(row["kind"] == "shift" for row in seen), "shift"),
        "missing": counted_if_any(sum(row["kind"] == "missing" for row in seen), "missing group"),
    }
    not_judged = unjudged(settings, batches)
    found["gate"] = [f"{each.batch}: {each.text}" for each in not_judged if each.gated]
    found["breach"] += [f"{each.batch}: {each.text}" for each in not_judged]
    return found


def _failed_on(noticed: Mapping[str, list[str]], fail_on: tuple[str, ...]) -> list[str]:
    """Why a run fails, each reason once."""
    return list(dict.fromkeys(text for kind in fail_on for text in noticed[kind]))


def gravest(
    outcomes: Iterable[Any],
    noticed: Mapping[str, object],
    *,
    fail_on: tuple[str, ...],
    require_data: bool,
) -> int:
    """The exit code of some batches: the gravest first."""
    codes = {outcome.exit_code for outcome in outcomes}
    if require_data and NoData.exit_code in codes:
        codes.add(AuditError.exit_code)
    for error in (AuditError, StoreBusy, SettingsError, DataRefused):
        if error.exit_code in codes:
            return error.exit_code
    if any(noticed[kind] for kind in fail_on):
        return GateFailed.exit_code
    # Batches without logs are gaps that the history shows; they do not fail the others.
    return NoData.exit_code if NoData.exit_code in codes and 0 not in codes else 0


def _outcome(outcome: Any) -> dict[str, Any]:
    return {
        name: value
        for name, value in outcome.__dict__.items()
        if name not in ("rules", "assessed", "exit_code")
    } | {"rules": {rule.rule: rule.rows for rule in outcome.rules}}


@click.command(
    epilog=examples(
        "evenrank run --batch 2026-01-20",
        "evenrank run --batch 2026-01-20 --fail-on breach --summary run.json",
    )
)
@click.option(
    "--batch",
    "said",
    required=True,
    multiple=True,
    help="The batch, as in 2026-01-05, or a moment of its day; may be repeated.",
)
@_work(notify=True, notify_help="yes, for the newest batch")
def run(
    said: tuple[str, ...],
    config: Path | None,
    force: bool,
    from_counts: bool,
    fail_on: tuple[str, ...],
    require_data: bool,
    notify: bool,
    summary: Path | None,
    log: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Audit one batch: ingest, measure, score, merge, assess, publish.

    Several are computed in turn, and assessed and published once, at the end.
    """
    with events(summary, log=log, quiet=quiet) as events_of_run:
        settings = events_of_run.settings = settings_of(config)
        from pipeline.settings.batch_keys import batch_keys

        batches = batch_keys(said, settings)
        ends = {"fail_on": fail_on, "require_data": require_data}
        work = {"force": force, "from_counts": from_counts}
        if len(batches) == 1:
            _one(events_of_run, settings, batches[0], ends, as_json=as_json, notify=notify, **work)
        else:
            _many(
                events_of_run,
                settings,
                batches,
                ends,
                as_json=as_json,
                notify="newest" if notify else "none",
                **work,
            )
    sys.exit(events_of_run.exit_code)


def _one(
    events_of_run: Events,
    settings: Any,
    batch: str,
    ends: dict[str, Any],
    *,
    notify: bool,
    as_json: bool,
    **work: bool,
) -> None:
    """Audit one batch, and show all that there is to see in it."""
    from pipeline.history.queries import breaches, verdicts
    from pipeline.history.series import last_month
    from pipeline.monitoring.alerts import alerts
    from pipeline.runs.batches import run_batch
    from pipeline.runs.outcome import as_told
    from pipeline.terminal.alerts import print_alerts
    from pipeline.terminal.closing import NO_THRESHOLDS, beside_breaches, untold_lines
    from pipeline.terminal.conclusions import print_conclusion
    from pipeline.terminal.printing import (
        BREACH_COLUMNS,
        batch_line,
        console,
        details,
        print_scores,
    )
    from pipeline.terminal.series import print_watched

    out = console(quiet=events_of_run.silent)
    outcome = run_batch(settings, batch, notify=notify, publishing="changes", **work)
    outcome = as_told(settings, outcome)
    events_of_run.add(outcome)
    breached = breaches(settings, [batch])
    if outcome.status in ("no_data", "refused", "failed"):
        if not events_of_run.log:
            click.echo(f"evenrank: {safe(f'{batch}: {outcome.message}')}", err=True)
    elif not events_of_run.silent:
        out.print(batch_line(outcome, out.encoding))
        for line in details(outcome):
            out.print(line)
        for line in untold_lines(verdicts(settings, [batch], told=True)):
            out.print(f"  {line}")
        if not settings.thresholds:
            out.print(f"  {NO_THRESHOLDS}")
        print_conclusion(out, settings, [batch])
        if breached:
            out.print()
            print_scores(out, breached, "Beyond their thresholds", BREACH_COLUMNS)
            for line in beside_breaches(settings, breached):
                out.print(line)
        print_watched(out, settings, last_month(settings, batch))
        print_alerts(out, alerts(settings, batches=[batch]), "Alerts seen in the batch")
    noticed = _noticed(settings, [batch])
    failed_on = _failed_on(noticed, ends["fail_on"])
    events_of_run.ended(gravest([outcome], noticed, **ends), failed_on)
    if as_json:
        document = {**_outcome(outcome), "breaches": len(breached)}
        click.echo(json.dumps({**document, "failed_on": list(events_of_run.failed_on)}))


def _many(
    events_of_run: Events,
    settings: Any,
    batches: Sequence[str],
    ends: dict[str, Any],
    *,
    as_json: bool,
    **work: Any,
) -> None:
    """Audit many batches: a line for each, and at the end what stands out."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from pipeline.history.queries import verdicts
    from pipeline.runs.batches import backfill as run_backfill
    from pipeline.runs.outcome import as_told
    from pipeline.terminal.closing import closing
    from pipeline.terminal.printing import batch_line, console, details, later_lines

    out = console(quiet=events_of_run.silent)
    ends_of_runs: list[Any] = []
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=console(stderr=True, quiet=events_of_run.silent),
        transient=True,
    ) as progress:
        task = progress.add_task("batches", total=len(batches))
        events_of_run.above(progress.console)
        for outcome in run_backfill(settings, batches, finished=ends_of_runs.append, **work):
            told = as_told(settings, outcome)
            events_of_run.add(told)
            out.print(batch_line(told, out.encoding))
            for line in details(told):
                out.print(line)
            progress.advance(task)
    later = [batch for end in ends_of_runs for batch in end.assessed.later]
    if not events_of_run.silent:
        for line in later_lines(later):
            out.print(line)
        closing(settings, events_of_run.outcomes)
    noticed = _noticed(settings, list(batches))
    shown = verdicts(settings, list(batches), told=True).get("breach", 0)
    failed_on = _failed_on(noticed, ends["fail_on"])
    events_of_run.ended(gravest(events_of_run.outcomes, noticed, **ends), failed_on)
    if as_json:
        document = {
            "batches": [_outcome(each) for each in events_of_run.outcomes],
            "later": later,
            "breaches": shown,
            "failed_on": list(events_of_run.failed_on),
        }
        click.echo(json.dumps(document))


@click.command(epilog=examples("evenrank backfill --from 2026-01-01 --to 2026-01-30 --jobs 4"))
@click.option("--from", "first", type=DAY, required=True, help="First day.")
@click.option("--to", "last", type=DAY, required=True, help="Last day.")
@click.option("--jobs", type=click.IntRange(1, 64), default=1, help="Batches at once [1].")
@_work(notify=False, notify_help="no")
def backfill(
    first: datetime,
    last: datetime,
    jobs: int,
    config: Path | None,
    force: bool,
    from_counts: bool,
    fail_on: tuple[str, ...],
    require_data: bool,
    notify: bool,
    summary: Path | None,
    log: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Audit many days; finished ones are skipped, so it can be interrupted."""
    with events(summary, log=log, quiet=quiet) as events_of_run:
        settings = events_of_run.settings = settings_of(config)
        from pipeline.settings.batch_keys import days

        if last < first:
            raise SettingsError(f"--to {last:%Y-%m-%d} lies before --from {first:%Y-%m-%d}")
        _many(
            events_of_run,
            settings,
            days(first.date(), last.date()),
            {"fail_on": fail_on, "require_data": require_data},
            jobs=jobs,
            force=force,
            from_counts=from_counts,
            notify="all" if notify else "none",
            as_json=as_json,
        )
    sys.exit(events_of_run.exit_code)
