"""Commands about what batches mean: alerts, mark, assess.

Not here: what an alert says (``monitoring.alert_texts``), and how it is printed
(``terminal.alerts``).
"""

import getpass
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from pipeline.cli.common import CONFIG, DAY, JSON, QUIET, examples, reports_errors, settings_of
from pipeline.errors import NoData, SettingsError

_NAMES = click.argument("names", metavar="ID...", nargs=-1, required=True)
_WHO = click.option("--by", "who", help="Who does it [you].")
_NOTE = click.option("--note", help="Why, for whoever looks next.")


@click.group(
    invoke_without_command=True,
    epilog=examples(
        "evenrank alerts --all",
        "evenrank alerts --batch 2026-01-19 --long",
        "evenrank alerts ack 90cd --note 'rolled back'",
    ),
)
@click.option("--all", "every", is_flag=True, help="Also resolved, acknowledged, snoozed ones.")
@click.option("--batch", help="All that were seen in one batch.")
@click.option("--long", "-l", "whole", is_flag=True, help="Whole texts, with the SQL to go on.")
@CONFIG
@JSON
@click.pass_context
@reports_errors
def alerts(
    context: click.Context,
    every: bool,
    batch: str | None,
    whole: bool,
    config: Path | None,
    as_json: bool,
) -> None:
    """List the alerts that wait for somebody, or acknowledge and snooze them."""
    context.obj = config
    if context.invoked_subcommand:
        return
    settings = settings_of(config)
    from pipeline.history.manifest import manifest
    from pipeline.monitoring.alerts import alerts as found_alerts
    from pipeline.terminal import exports
    from pipeline.terminal.alerts import print_alert, print_alerts
    from pipeline.terminal.printing import console, printable

    record = manifest(settings).get(batch) if batch else None
    if batch and not (record and record.revision):
        raise NoData(f"{batch}: the history has no scores of such a batch")
    rows = found_alerts(settings, every=every, batches=[batch] if batch else None)
    out = console()
    if as_json:
        plain = [{name: exports.plain(value) for name, value in row.items()} for row in rows]
        click.echo(json.dumps({"alerts": plain}))
    elif not rows:
        where = f" in {batch}" if batch else ""
        text = f"No alert{where}." if every or batch else "No alert is open."
        if not (every or batch) and (others := len(found_alerts(settings, every=True))):
            text += f" --all lists {others:,} more."
        out.print(printable(text))
    elif whole:
        for row in rows:
            print_alert(out, row)
    else:
        print_alerts(out, rows)


def _acts(
    context: click.Context,
    config: Path | None,
    names: Sequence[str],
    action: str,
    outcome: str,
    *,
    as_json: bool,
    quiet: bool,
    who: str | None,
    note: str | None = None,
    until: datetime | None = None,
) -> None:
    settings = settings_of(config or context.obj)
    from pipeline.monitoring.alerts import act

    alert_ids, assessed = act(
        settings,
        names,
        action,
        who=who or _user(),
        note=note,
        until=until,
    )
    _ended(settings, assessed, [f"{name} {outcome}" for name in alert_ids], {"alerts": alert_ids},
           as_json=as_json, quiet=quiet)  # fmt: skip


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"


def _ended(
    settings: Any,
    assessed: Any,
    lines: Sequence[str],
    document: dict[str, Any],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Publish what changed, and say which batches are assessed otherwise than before."""
    from pipeline.publish.page.fresh import show
    from pipeline.terminal.printing import console, later_lines, printable

    show(settings)
    out = console(quiet=quiet)
    for line in (*lines, *later_lines(assessed.later)):
        out.print(printable(line))
    if as_json:
        click.echo(json.dumps({**document, "later": list(assessed.later)}))


def _command(name: str, example: str, *options: Callable[..., Any]) -> Callable[..., Any]:
    """A command below ``alerts`` that acts on some of them."""

    def declare(function: Callable[..., None]) -> click.Command:
        decorated: Callable[..., Any] = reports_errors(function)
        decorated = click.pass_context(decorated)
        for option in (QUIET, JSON, CONFIG, _WHO, *options, _NAMES):
            decorated = option(decorated)
        return alerts.command(name, epilog=examples(example))(decorated)

    return declare


@_command("ack", "evenrank alerts ack 90cd d791 --note 'rolled back'", _NOTE)
def ack(context: click.Context, config: Path | None, names: tuple[str, ...], **said: Any) -> None:
    """Acknowledge alerts: they are no longer listed or sent.

    Their batches are no baseline for later ones, which are assessed anew.  IDs may be cut short.
    """
    _acts(context, config, names, "ack", "acknowledged", **said)


@_command(
    "snooze",
    "evenrank alerts snooze 90cd --until 2026-02-01",
    _NOTE,
    click.option("--until", type=DAY, required=True, help="Day on which they are back (UTC)."),
)
def snooze(
    context: click.Context,
    config: Path | None,
    names: tuple[str, ...],
    until: datetime,
    **said: Any,
) -> None:
    """Put alerts off: neither listed nor sent before a day."""
    if until.date() <= datetime.now(UTC).date():
        raise SettingsError(f"--until {until:%Y-%m-%d} is no day to come")
    text = f"snoozed until {until:%Y-%m-%d}"
    _acts(context, config, names, "snooze", text, until=until, **said)


@_command("undo", "evenrank alerts undo 90cd")
def undo(context: click.Context, config: Path | None, names: tuple[str, ...], **said: Any) -> None:
    """Take back that alerts were acknowledged or snoozed."""
    _acts(context, config, names, "undo", "is as if nobody had seen it", **said)


@click.command(epilog=examples("evenrank mark --batch 2026-01-25 --text 'model v8'"))
@click.option("--batch", help="First batch of the release.")
@click.option("--text", help="What changed, as in 'model v7'.")
@click.option("--remove", is_flag=True, help="Take the marks of the batch back.")
@CONFIG
@JSON
@QUIET
@reports_errors
def mark(
    batch: str | None,
    text: str | None,
    remove: bool,
    config: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Mark a release: scores are compared with those since, not before.

    Without --batch: list the releases.
    """
    settings = settings_of(config)
    from pipeline.history.manifest import manifest
    from pipeline.monitoring.alerts import mark as write
    from pipeline.monitoring.alerts import markers, unmark
    from pipeline.terminal import exports
    from pipeline.terminal.alerts import print_markers
    from pipeline.terminal.printing import console, telling

    if batch is None and (text or remove):
        raise SettingsError("--batch: say which batch")
    if batch is not None and bool(text) == remove:
        raise SettingsError("give either --text or --remove")
    tell = telling(quiet=quiet)
    if batch is None:
        rows = markers(settings)
        if as_json:
            plain = [{name: exports.plain(value) for name, value in row.items()} for row in rows]
            click.echo(json.dumps({"markers": plain}))
        elif not quiet:
            print_markers(console(), rows)
        return
    if text:
        assessed, outcome = write(settings, batch, text), f"marked: {text}"
        if batch not in manifest(settings):
            tell(f"{batch}: the history has no such batch yet; --remove takes the mark back")
    else:
        assessed, outcome = unmark(settings, batch), "no longer marked"
    _ended(
        settings, assessed, [f"{batch} {outcome}"], {"batch": batch}, as_json=as_json, quiet=quiet
    )


@click.command(epilog=examples("evenrank assess --from 2026-01-10"))
@click.option("--from", "first", help="First batch [the first there is].")
@click.option("--to", "last", help="Last batch; all later ones follow [the last there is].")
@CONFIG
@JSON
@QUIET
@reports_errors
def assess(
    first: str | None, last: str | None, config: Path | None, as_json: bool, quiet: bool
) -> None:
    """Compute gates, trends and alerts again from the history; send nothing.

    For settings that no score depends on: gate, trends.  Later batches follow by themselves.
    """
    settings = settings_of(config)
    from pipeline.history.manifest import manifest
    from pipeline.monitoring.assess import assess as compute

    keys = [
        batch
        for batch, row in manifest(settings).items()
        if row.revision and (first or "") <= batch and (last is None or batch <= last)
    ]
    if not keys:
        raise NoData("the history has no such batches")
    assessed = compute(settings, keys)
    said = "changed" if assessed.changed else "nothing changed"
    line = f"{len(keys)} assessed, {keys[0]} to {keys[-1]}: {said}"
    document = {"batches": keys, "changed": assessed.changed, "opened": list(assessed.opened)}
    _ended(settings, assessed, [line], document, as_json=as_json, quiet=quiet)
