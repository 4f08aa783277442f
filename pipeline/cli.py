"""The command line.  Heavy imports happen inside commands, so that help answers at once."""

import json
import sys
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any

import click

_FILE = click.Path(path_type=Path)
CONFIG = click.option(
    "--config", "-c", type=_FILE, envvar="RANKAUDIT_CONFIG", help="Settings [audit.yaml]."
)
JSON = click.option("--json", "as_json", is_flag=True, help="End with one line of JSON.")
QUIET = click.option("--quiet", "-q", is_flag=True, help="Print errors only.")
DAY = click.DateTime(["%Y-%m-%d"])
INTERRUPTED = 1


def _reports_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Turn errors that a user can cause into a message and the exit code they carry."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        from pipeline.errors import AuditError

        try:
            command(*args, **kwargs)
        except AuditError as error:
            click.echo(f"rankaudit: {_safe(str(error))}", err=True)
            if kwargs.get("as_json"):
                click.echo(json.dumps({"error": str(error), "exit_code": error.exit_code}))
            sys.exit(error.exit_code)
        except KeyboardInterrupt:
            click.echo(
                "\nrankaudit: interrupted. Finished batches are kept; "
                "the same command goes on where this one stopped.",
                err=True,
            )
            sys.exit(INTERRUPTED)

    return run


def _safe(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80})
@click.version_option(package_name="rankaudit", prog_name="rankaudit")
def main() -> None:
    """Audit the fairness of rankings, batch after batch.

    Exit codes: 0 done, 2 usage or settings, 3 data refused, 4 no data for the batch, 5 a threshold
    is passed under --fail-on, 75 store busy, 1 anything else.
    """


def _settings(config: Path | None) -> Any:
    from pipeline.settings import load_settings

    return load_settings(config)


def _end(outcomes: Iterable[Any], found: list[Any], *, fail_on: str | None) -> int:
    """The exit code of some batches: the gravest first."""
    codes = {outcome.exit_code for outcome in outcomes}
    gravest = [code for code in (1, 75, 2, 3) if code in codes]
    if gravest:
        return gravest[0]
    if fail_on and found:
        return 5
    return 4 if 4 in codes else 0


def _outcome(outcome: Any) -> dict[str, Any]:
    return {
        name: value
        for name, value in outcome.__dict__.items()
        if name not in ("rules", "exit_code")
    } | {"rules": {rule.rule: rule.rows for rule in outcome.rules}}


@main.command()
@click.option("--batch", required=True, help="The batch, as in 2026-01-05.")
@CONFIG
@click.option("--force", is_flag=True, help="Compute again although nothing changed.")
@click.option("--from-counts", is_flag=True, help="Score stored counts again; read no logs.")
@click.option("--fail-on", type=click.Choice(["breach"]), help="Exit 5 when a score breaches.")
@JSON
@QUIET
@_reports_errors
def run(
    batch: str,
    config: Path | None,
    force: bool,
    from_counts: bool,
    fail_on: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Audit one batch: ingest, measure, score, merge, publish."""
    settings = _settings(config)
    from pipeline import summary
    from pipeline.history import breaches
    from pipeline.publish import publish
    from pipeline.run import run_batch
    from pipeline.store import store_of

    out = summary.console(quiet=quiet)
    busy = summary.console(stderr=True, quiet=quiet)
    outcome = run_batch(settings, batch, force=force, from_counts=from_counts, waiting=busy.print)
    if outcome.status != "unchanged" or not store_of(settings).dashboard.exists():
        publish(settings, busy.print)
    found = breaches(settings, [batch])
    if outcome.status in ("no_data", "refused", "failed"):
        click.echo(f"rankaudit: {_safe(outcome.message)}", err=True)
    else:
        out.print(summary.batch_line(outcome))
        for line in summary.details(outcome):
            out.print(line)
        if found:
            out.print(summary.breaches_table(found, "\nBeyond their thresholds"))
    if as_json:
        click.echo(json.dumps({**_outcome(outcome), "breaches": len(found)}))
    sys.exit(_end([outcome], found, fail_on=fail_on))


@main.command()
@click.option("--from", "first", type=DAY, required=True, help="First day.")
@click.option("--to", "last", type=DAY, required=True, help="Last day.")
@CONFIG
@click.option("--jobs", type=click.IntRange(1, 64), default=1, help="Batches at once [1].")
@click.option("--force", is_flag=True, help="Compute again although nothing changed.")
@click.option("--from-counts", is_flag=True, help="Score stored counts again; read no logs.")
@click.option("--fail-on", type=click.Choice(["breach"]), help="Exit 5 when a score breaches.")
@JSON
@QUIET
@_reports_errors
def backfill(
    first: datetime,
    last: datetime,
    config: Path | None,
    jobs: int,
    force: bool,
    from_counts: bool,
    fail_on: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Audit many days; finished ones are skipped, so it can be interrupted."""
    settings = _settings(config)
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from pipeline import summary
    from pipeline.errors import SettingsError
    from pipeline.history import breaches
    from pipeline.run import backfill as run_backfill
    from pipeline.run import days

    if last < first:
        raise SettingsError(f"--to {last:%Y-%m-%d} lies before --from {first:%Y-%m-%d}")
    keys = days(first.date(), last.date())
    out = summary.console(quiet=quiet)
    outcomes = []
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
            waiting=progress.console.print,
        ):
            outcomes.append(outcome)
            out.print(summary.batch_line(outcome))
            for line in summary.details(outcome):
                out.print(line)
            progress.advance(task)
    if not quiet:
        summary.closing(settings, outcomes)
    found = breaches(settings, keys)
    if as_json:
        document = {"batches": [_outcome(each) for each in outcomes], "breaches": len(found)}
        click.echo(json.dumps(document))
    code = _end(outcomes, found, fail_on=fail_on)
    # Days without logs are gaps that the history shows; they do not fail a backfill.
    sys.exit(0 if code == 4 and any(o.exit_code == 0 for o in outcomes) else code)


def _file_settings(
    config: Path | None,
    files: tuple[Path, ...],
    items: Path | None,
    attributes: tuple[str, ...],
    slices: tuple[str, ...],
    **more: Any,
) -> Any:
    """Settings for files that are no batch: those of a file, changed by what is asked for."""
    from pipeline.quick import guess_attributes
    from pipeline.settings import load_settings, settings_from

    base: dict[str, Any] = {}
    if config:
        base = load_settings(config).model_dump(mode="json", exclude_unset=True)
        base.pop("folder", None)
        base.pop("items", None)
        base.pop("thresholds", None)
    if slices:
        base["slices"] = list(slices)
    if attributes:
        base["attributes"] = [each.split("*") if "*" in each else each for each in attributes]
    elif "attributes" not in base:
        base["attributes"] = guess_attributes(files, items, base.get("slices", ()))
    return settings_from({**base, **more}, folder=Path())


_FILES = click.argument("files", nargs=-1, required=True, type=_FILE)
_ITEMS = click.option("--items", type=_FILE, help="Item table: item_id and attributes.")
_ATTRIBUTE = click.option(
    "--attribute", "attributes", multiple=True, help="Attribute column; 'a*b' for both at once."
)
_SLICE = click.option("--slice", "slices", multiple=True, help="Slice column.")


@main.command()
@_FILES
@_ITEMS
@_ATTRIBUTE
@_SLICE
@click.option("--metric", "metrics", multiple=True, help="Label, as in 'AWRF(p=0.2)@10' [all].")
@click.option("--k", type=int, help="Cut-off: ranks below it get no weight.")
@click.option("--p", type=float, help="p of metrics that take one [0.1].")
@click.option("--decay", type=float, help="decay of metrics that take one [0.75].")
@click.option("--denominator", type=click.Choice(["appearances", "catalogue"]))
@CONFIG
@JSON
@QUIET
@_reports_errors
def score(
    files: tuple[Path, ...],
    items: Path | None,
    attributes: tuple[str, ...],
    slices: tuple[str, ...],
    metrics: tuple[str, ...],
    k: int | None,
    p: float | None,
    decay: float | None,
    denominator: str | None,
    config: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Score files directly, without a store."""
    _readable(files, items)
    from metrics import LabelError
    from pipeline import summary
    from pipeline.errors import SettingsError
    from pipeline.quick import as_document, measures_for, score_files
    from pipeline.rejects import rule_lines

    try:
        measures = measures_for(metrics, k=k, p=p, decay=decay, denominator=denominator)
    except (LabelError, ValueError) as error:
        raise SettingsError(str(error)) from None
    labels = [measure.label for measure in measures]
    settings = _file_settings(config, files, items, attributes, slices, metrics=labels)
    found = score_files(settings, list(files), items)
    document = as_document(found)
    if as_json:
        click.echo(json.dumps(document))
        return
    out = summary.console(quiet=quiet)
    rejected = f", {found.ingested.rows_rejected:,} rejected" if found.ingested.rules else ""
    out.print(f"{document['lists']:,} lists, {document['rows']:,} rows{rejected}")
    for line in rule_lines(found.ingested.rules):
        out.print(summary.printable(f"  {line}"))
    out.print(summary.scores_table(document))


def _readable(files: tuple[Path, ...], items: Path | None) -> None:
    from pipeline.errors import SettingsError

    missing = [path for path in (*files, *([items] if items else [])) if not path.is_file()]
    if missing:
        raise SettingsError("no such file: " + ", ".join(map(str, missing)))


@main.command()
@_FILES
@_ITEMS
@_ATTRIBUTE
@_SLICE
@CONFIG
@JSON
@QUIET
@_reports_errors
def check(
    files: tuple[Path, ...],
    items: Path | None,
    attributes: tuple[str, ...],
    slices: tuple[str, ...],
    config: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Check files against the contract; compute nothing.  Exit 3 if a row breaks it."""
    _readable(files, items)
    from pipeline import summary
    from pipeline.quick import check_files
    from pipeline.rejects import rule_lines

    settings = _file_settings(
        config, files, items, attributes, slices, rejects={"max_rejected_share": 1.0}
    )
    found = check_files(settings, list(files), items)
    document = {
        "lists": found.lists,
        "rows": found.rows_read,
        "accepted": found.rows_accepted,
        "rejected": found.rows_rejected,
        "rules": {rule.rule: rule.rows for rule in found.rules},
        "unknown": found.unknown_rows,
        "graded": found.graded_rows,
    }
    if as_json:
        click.echo(json.dumps(document))
    else:
        out = summary.console(quiet=quiet)
        out.print(f"{found.rows_read:,} rows, {found.rows_rejected:,} would be rejected")
        for line in rule_lines(found.rules):
            out.print(summary.printable(f"  {line}"))
        for name, rows in found.unknown_rows.items():
            if rows:
                out.print(summary.printable(f"  {name}: {rows:,} rows without a group"))
        if found.graded_rows:
            out.print(f"  {found.graded_rows:,} rows have graded relevance: ERBR is undefined")
    sys.exit(3 if found.rules else 0)


@main.command()
@click.option("--batch", "batches", multiple=True, help="Batch; may be repeated.")
@click.option("--from", "first", help="First batch.")
@click.option("--to", "last", help="Last batch.")
@click.option("--slice", "part", help="Slice column, or 'all' for whole batches.")
@click.option("--attribute", help="Attribute.")
@click.option("--metric", help="Metric or score label, as in EXP.MinMaxRatio.")
@click.option("--status", help="ok, breach, undefined or not_judged.")
@click.option("--format", "form", type=click.Choice(["table", "csv", "jsonl"]), default="table")
@click.option("--out", type=_FILE, help="Write to a file instead of the terminal.")
@CONFIG
@JSON
@_reports_errors
def history(
    batches: tuple[str, ...],
    first: str | None,
    last: str | None,
    part: str | None,
    attribute: str | None,
    metric: str | None,
    status: str | None,
    form: str,
    out: Path | None,
    config: Path | None,
    as_json: bool,
) -> None:
    """Print, filter and export the fairness history."""
    settings = _settings(config)
    from metrics import parse_score
    from pipeline import summary
    from pipeline.errors import NoData, SettingsError
    from pipeline.history import labelled
    from schemas.tables import STATUSES

    conditions = []
    values: list[Any] = []
    if status and status not in STATUSES:
        raise SettingsError(f"--status is one of {', '.join(STATUSES)}, not {status}")
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
        ("status = ?", status),
    ):
        if value is not None:
            conditions.append(condition)
            values.append(value)
    rows = labelled(settings, " AND ".join(conditions) or "true", values)
    if not rows:
        raise NoData("the history has no such scores")
    if as_json:
        form = "jsonl"
    if form == "table" and out is None:
        summary.console().print(summary.history_table(rows))
        return
    with click.open_file(str(out) if out else "-", "w", encoding="utf-8") as file:
        writer = summary.write_json_lines if form == "jsonl" else summary.write_csv
        writer(rows, file)


@main.command()
@JSON
@_reports_errors
def metrics(as_json: bool) -> None:
    """List the metrics and aggregations."""
    from pipeline import summary

    if as_json:
        click.echo(json.dumps(summary.catalogue()))
    else:
        summary.console().print(summary.metrics_table())


@main.command()
@click.option("--out", type=_FILE, required=True, help="Folder for logs and items.parquet.")
@click.option("--start", type=DAY, required=True, help="First day.")
@click.option("--days", type=click.IntRange(1), required=True, help="How many days.")
@click.option("--lists", type=click.IntRange(1), required=True, help="Lists a day.")
@click.option("--items", type=click.IntRange(1), default=2000, help="Items in all [2000].")
@click.option("--seed", type=int, default=7, help="Same seed, same logs [7].")
@QUIET
@_reports_errors
def generate(
    out: Path, start: datetime, days: int, lists: int, items: int, seed: int, quiet: bool
) -> None:
    """Write synthetic logs of a marketplace."""
    from pipeline.errors import SettingsError
    from pipeline.generator import generate as write

    def tell(text: str) -> None:
        if not quiet:
            click.echo(text, err=True)

    try:
        write(
            out, start=start.date(), days=days, lists=lists, items=items, seed=seed, progress=tell
        )
    except ValueError as error:
        raise SettingsError(str(error)) from None


@main.command()
@CONFIG
@QUIET
@_reports_errors
def publish(config: Path | None, quiet: bool) -> None:
    """Replace the dashboard copy by the history as it stands."""
    settings = _settings(config)
    from pipeline.errors import NoData
    from pipeline.publish import publish as write
    from pipeline.store import store_of

    if not store_of(settings).history.exists():
        raise NoData("there is no history yet; run a batch first")
    path = write(settings)
    if not quiet:
        click.echo(path)


if __name__ == "__main__":
    main()
