"""Commands that work on files alone: score, check; and the list of metrics.

Not here: reading and scoring them without a store (``runs.in_memory``).
"""

import json
import sys
from pathlib import Path
from typing import Any

import click

from pipeline.cli.common import CONFIG, FILE, JSON, QUIET, examples, reports_errors, settings_of

_FEW = "Too few queries or items for any number about them to be told (privacy.min_cell)."
_FILES = click.argument("files", nargs=-1, required=True, type=FILE)
_ITEMS = click.option("--items", type=FILE, help="Item table: item_id and attributes.")
_ATTRIBUTE = click.option(
    "--attribute", "attributes", multiple=True, help="Attribute column; 'a*b' for both at once."
)
_SLICE = click.option("--slice", "slices", multiple=True, help="Slice column.")
_SHOW = click.option(
    "--show-values", is_flag=True, help="Quote values that break a rule, ids and texts too."
)


def _file_settings(
    config: Path | None,
    files: tuple[Path, ...],
    items: Path | None,
    attributes: tuple[str, ...],
    slices: tuple[str, ...],
    *,
    show_values: bool,
    **more: Any,
) -> tuple[Any, Path | None]:
    """Settings for files that are no batch: those of a file, changed by what is asked for.

    Also returns the item table: the one asked for, or that of the settings.
    """
    from pipeline.errors import SettingsError
    from pipeline.runs.in_memory import guess_attributes
    from pipeline.settings.load import settings_from

    base: dict[str, Any] = {}
    if config:
        settings = settings_of(config)
        base = settings.model_dump(
            mode="json", exclude_unset=True, exclude={"folder", "thresholds"}
        )
        named = base.pop("items", None)
        if items is None and named:
            if "{batch}" in named:
                raise SettingsError(f"items: {named}: name the table of these files with --items")
            items = settings.path(named)
    _readable(files, items)
    if show_values:
        base["privacy"] = {**base.get("privacy", {}), "show_values": True}
    if slices:
        base["slices"] = list(slices)
    if attributes:
        base["attributes"] = [each.split("*") if "*" in each else each for each in attributes]
    elif "attributes" not in base:
        base["attributes"] = guess_attributes(
            files, items, base.get("slices", ()), show_values=show_values
        )
    return settings_from({**base, **more}, folder=Path()), items


@click.command(
    epilog=examples(
        "evenrank score log.csv --attribute gender --metric EXP",
        "evenrank score logs/*.parquet --items items.parquet --metric 'AWRF(p=0.2)@10'",
    )
)
@_FILES
@_ITEMS
@_ATTRIBUTE
@_SLICE
@click.option(
    "--metric", "metrics", multiple=True, help="Label as AWRF(p=0.2)@10, or family [fairness]."
)
@click.option("--k", type=int, help="Cut-off: ranks further down get no weight.")
@click.option("--p", type=float, help="p of metrics that take one [its own].")
@click.option("--decay", type=float, help="decay of metrics that take one [its own].")
@click.option(
    "--denominator",
    type=click.Choice(["appearances", "catalogue"]),
    help="What group sizes count: rows, or items of the item table.",
)
@click.option("--intervals", is_flag=True, help="Say how sure each number is.")
@_SHOW
@CONFIG
@JSON
@QUIET
@reports_errors
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
    intervals: bool,
    show_values: bool,
    config: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Score files directly, without a store."""
    from metrics import LabelError
    from pipeline.errors import SettingsError
    from pipeline.formatting.numbers import counted
    from pipeline.log.rejected_rows import rule_lines
    from pipeline.runs.in_memory import NO_EVIDENCE, score_files
    from pipeline.settings.choices import measures_for
    from pipeline.terminal.documents import as_document
    from pipeline.terminal.printing import (
        INTERVAL_COLUMNS,
        SCORE_COLUMNS,
        console,
        print_scores,
        printable,
    )

    try:
        measures = measures_for(metrics, k=k, p=p, decay=decay, denominator=denominator)
    except (LabelError, ValueError) as error:
        raise SettingsError(str(error)) from None
    labels = [measure.label for measure in measures]
    more: dict[str, Any] = {"metrics": labels}
    if not intervals:
        more["evidence"] = NO_EVIDENCE
    settings, items = _file_settings(
        config, files, items, attributes, slices, show_values=show_values, **more
    )
    scored = score_files(settings, list(files), items)
    document = as_document(scored)
    if as_json:
        click.echo(json.dumps(document))
        return
    out = console(quiet=quiet)
    if scored.ingested.few:
        out.print(_FEW)
        return
    rejected = f", {scored.ingested.rows_rejected:,} rejected" if scored.ingested.rules else ""
    read = f"{counted(document['lists'], 'list')}, {counted(document['rows'], 'row')}"
    out.print(f"{read}{rejected}")
    for line in (*scored.ingested.notes, *rule_lines(scored.ingested.rules)):
        out.print(printable(f"  {line}"))
    if scored.less:
        out.print("  Numbers about too few are left out (privacy.min_cell).")
    columns = SCORE_COLUMNS if not intervals else INTERVAL_COLUMNS
    print_scores(out, scored.scores, columns=columns)


def _readable(files: tuple[Path, ...], items: Path | None) -> None:
    from pipeline.errors import SettingsError, several
    from pipeline.log.files import FileProblem, regular

    problems = []
    for path in (*files, *([items] if items else [])):
        try:
            regular(path)
        except FileProblem as problem:
            problems.append(f"{path}: {problem}")
    if problems:
        raise SettingsError(several("files that cannot be read", problems))


@click.command(
    epilog=examples(
        "evenrank check log.csv --attribute gender",
        "evenrank check logs/2026-01-19/*.parquet --config audit.yaml",
    )
)
@_FILES
@_ITEMS
@_ATTRIBUTE
@_SLICE
@_SHOW
@CONFIG
@JSON
@QUIET
@reports_errors
def check(
    files: tuple[Path, ...],
    items: Path | None,
    attributes: tuple[str, ...],
    slices: tuple[str, ...],
    show_values: bool,
    config: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Check files against the contract; compute nothing.  Exit 3 if a row breaks it."""
    from pipeline.formatting.numbers import counted
    from pipeline.log.ingest import BatchRefused
    from pipeline.log.rejected_rows import rule_lines
    from pipeline.runs.in_memory import check_files
    from pipeline.terminal.printing import console, printable

    settings, items = _file_settings(
        config,
        files,
        items,
        attributes,
        slices,
        show_values=show_values,
        rejects={"max_rejected_share": 1.0},
    )
    try:
        ingested = check_files(settings, list(files), items)
    except BatchRefused as refused:
        ingested = refused.ingested
    document: dict[str, Any] = {
        "lists": ingested.lists,
        "rows": ingested.rows_read,
        "accepted": ingested.rows_accepted,
        "rejected": ingested.rows_rejected,
        "rules": {rule.rule: rule.rows for rule in ingested.rules},
        "unknown": ingested.unknown_rows,
        "graded": ingested.graded_rows,
    }
    if as_json:
        click.echo(json.dumps(dict.fromkeys(document) if ingested.few else document))
    elif ingested.few:
        console(quiet=quiet).print(_FEW)
    else:
        out = console(quiet=quiet)
        read = counted(ingested.rows_read, "row")
        out.print(f"{read}, {ingested.rows_rejected:,} would be rejected")
        for line in (*ingested.notes, *rule_lines(ingested.rules)):
            out.print(printable(f"  {line}"))
        for name, rows in ingested.unknown_rows.items():
            if rows:
                without = f"  {name}: {counted(rows, 'row')} without a group"
                out.print(printable(without))
        if ingested.graded_rows:
            graded = counted(ingested.graded_rows, "row")
            out.print(f"  graded relevance in {graded}: ERBR is undefined")
    sys.exit(3 if ingested.rules else 0)


@click.command(epilog=examples("evenrank metrics nDCG top_k"))
@click.argument("names", nargs=-1, metavar="[NAME]...")
@JSON
@reports_errors
def metrics(names: tuple[str, ...], as_json: bool) -> None:
    """List the metrics, or tell all there is to know of some.

    NAME is a metric, a label such as RBO(p=0.9) or a family such as quality.
    """
    from metrics import LabelError
    from pipeline.errors import SettingsError
    from pipeline.terminal import catalogue
    from pipeline.terminal.printing import console

    try:
        chosen = catalogue.chosen(names)
    except LabelError as error:
        raise SettingsError(str(error)) from None
    if as_json:
        click.echo(json.dumps(catalogue.catalogue(chosen)))
    elif names:
        catalogue.print_details(console(), chosen)
    else:
        catalogue.print_overview(console())
