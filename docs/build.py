"""Writes the derived parts of the documentation.

What the catalogue, the tables and the settings already say is not written twice: it stands in the
pages between ``<!-- derived: name -->`` and ``<!-- /derived -->``, and this script puts it there.
``python docs/build.py`` rewrites the pages; ``--check`` names the stale ones and exits 1.
"""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

import numpy as np
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from metrics import AGGREGATIONS, FAMILIES, METRICS, Metric, Reason
from metrics.parameters import text_of
from pipeline.scores.verdicts import Cause
from pipeline.settings.audit import DECIDE_ROWS, DECIDE_SCORES, Settings
from pipeline.terminal.catalogue import bad_side, columns_of, values_of
from schemas.columns import Column, Table
from schemas.copy import COPY_TABLES
from schemas.counts import bucket_counts
from schemas.history import BATCH_TABLES, HISTORY_TABLES
from schemas.offenders import row_rules
from schemas.rules import LOGGED, QUERY_ID, list_rules, ranking_log
from schemas.stored_log import log_entries, stored_log
from schemas.views import VIEWS

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests" / "helpers"))
if TYPE_CHECKING:
    from bad_inputs import Case

PAGES = tuple(
    ROOT / "docs" / f"{name}.md"
    for name in (
        "metrics",
        "tables",
        "settings",
        "operations",
        "evidence",
        "reliability",
        "bad-inputs",
    )
)
_PART = re.compile(r"(<!-- derived: (?P<name>[\w-]+) -->\n).*?(<!-- /derived -->)", re.DOTALL)


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def code(text: object) -> str:
    """``text`` as code; nothing for nothing."""
    return f"`{text}`" if str(text) else ""


def codes(texts: Iterable[object]) -> str:
    """Several pieces of code, separated by commas."""
    return ", ".join(map(code, texts))


def number(value: float | None) -> str:
    """A number in its shortest form, ``none`` where there is none."""
    return "none" if value is None else f"{value:g}"


# -- metrics


def _best(metric: Metric) -> str:
    """The best value of each score that is not one of the seven aggregations."""
    if metric.usual.ways == AGGREGATIONS:
        return "groups equal"
    best = [number(score.fairest) for score in metric.usual.scores()]
    return ", ".join(dict.fromkeys(best))


def _cutoff(metric: Metric) -> str:
    return "needed" if metric.needs_cutoff else "yes" if metric.cutoff else ""


def metrics_overview() -> str:
    """One line per metric, a table per family."""
    return "\n\n".join(
        f"### {family.title}\n\n{family.text} In the settings: {code(family.name)}.\n\n"
        + _overview([metric for metric in METRICS if metric.family is family])
        for family in FAMILIES
    )


def _overview(metrics: Sequence[Metric]) -> str:
    head = ("metric", "what", "values", "range", "best", "bad when", "needs", "`@k`")
    return grid(
        head,
        (
            (
                f"[{code(metric.usual.label)}](#{metric.name.lower()})",
                metric.title,
                "per group" if metric.per_group else "one",
                str(metric.range),
                _best(metric),
                bad_side(metric),
                codes(columns_of(metric)),
                _cutoff(metric),
            )
            for metric in metrics
        ),
    )


def metric_details() -> str:
    """A section per metric."""
    return "\n\n".join(_detail(metric) for metric in METRICS)


def _detail(metric: Metric) -> str:
    lines = [
        f"### {metric.name}",
        "",
        f"{metric.title}. {'Value of a group' if metric.per_group else 'One number'}:",
        "",
        "```text",
        metric.formula,
        "```",
        "",
    ]
    if metric.usual.ways != AGGREGATIONS:
        lines += [
            f"- {code(score.label)}: {code(score.aggregation.formula)}, in {score.range}."
            for score in metric.usual.scores()
            if score.aggregation
        ]
    if metric.parameters:
        lines.append(f"- Parameters: {codes(each.name for each in metric.parameters)}.")
    lines.append(f"- Source: {metric.source}.")
    return "\n".join(lines)


def parameters() -> str:
    """One line per parameter."""
    every = dict.fromkeys(each for metric in METRICS for each in metric.parameters)
    return grid(
        ("parameter", "values", "default", "meaning", "taken by"),
        (
            (
                code(parameter.name),
                values_of(parameter),
                code(text_of(parameter.default)),
                parameter.text,
                codes(metric.name for metric in METRICS if parameter in metric.parameters),
            )
            for parameter in sorted(every, key=lambda each: each.name)
        ),
    )


def aggregations() -> str:
    """One line per aggregation; when it is undefined is found by trying it."""
    tried = (np.zeros(2), np.array([0.0, 1.0]))
    return grid(
        ("aggregation", "formula", "fairest", "unfair when", "null when"),
        (
            (
                code(each.name),
                code(each.formula),
                number(each.fairest),
                each.alarm or "never",
                codes(dict.fromkeys(reason for v in tried if (reason := each.undefined(v)))),
            )
            for each in AGGREGATIONS
        ),
    )


def ranges() -> str:
    """Where every score can lie: metrics down, aggregations across."""
    grouped = [metric for metric in METRICS if metric.usual.ways == AGGREGATIONS]
    return grid(
        ("", "a group's value", *(each.name for each in AGGREGATIONS)),
        (
            (
                code(metric.name),
                str(metric.range),
                *(str(score.range) for score in metric.usual.scores()),
            )
            for metric in grouped
        ),
    )


def reasons() -> str:
    """One line per reason of a null."""
    return grid(("reason", "meaning"), ((code(reason.value), reason.text) for reason in Reason))


def causes() -> str:
    """One line per cause of an insufficient verdict."""
    return grid(("status_reason", "meaning"), ((code(cause.value), cause.text) for cause in Cause))


# -- tables


def _columns(columns: Iterable[Column]) -> str:
    return grid(
        ("column", "type", "meaning"),
        (
            (
                code(each.name),
                each.type + (", null" if each.nullable else ""),
                each.text,
            )
            for each in columns
        ),
    )


def _said(column: Column) -> tuple[str, str, str, bool]:
    return column.name, column.type, column.text, column.nullable


def _headed(table: Table) -> str:
    key = f" One row per {codes(table.key)}." if table.key else ""
    return f"### {table.name}\n\n{table.text}{key}\n\n"


def _extends(table: Table, other: Table) -> list[Column] | None:
    """What ``table`` has besides all columns of ``other``; None if it lacks one."""
    own, theirs = set(map(_said, table.columns)), set(map(_said, other.columns))
    if not theirs <= own:
        return None
    return [column for column in table.columns if _said(column) not in theirs]


def _described(table: Table, others: Iterable[Table]) -> str:
    """A section on a table; one that adds at most a column to another says so."""
    likes = [(other, _extends(table, other)) for other in others]
    near = [(other, more) for other, more in likes if more is not None and len(more) <= 1]
    if not near:
        return _headed(table) + _columns(table.columns)
    other, more = min(near, key=lambda each: len(each[1]))
    said = f"The columns of `{other.name}`"
    return _headed(table) + said + (f", and:\n\n{_columns(more)}" if more else ".")


def history_tables() -> str:
    """Every table of the history, and of the copy that dashboards read."""
    return "\n\n".join(
        _described(table, HISTORY_TABLES[:at]) for at, table in enumerate(HISTORY_TABLES)
    )


def batch_tables() -> str:
    """Every table of a batch file; those that the history has too are only named."""
    log = ranking_log((), ())
    sections = [
        _described(log, [])
        + "\n\nOne more column per slice and per attribute, all text. A view of the tables that "
        "follow, which hold every text once."
    ]
    entries = log_entries((column.name for column in LOGGED), placed=True)
    sections += [_described(table, []) for table in stored_log((), (), entries)]
    sections.append(
        "`log_entries` has the columns that the log has; `log_rows` is a view of it with all.\n"
        "`log_lists` has one more column per slice and `log_cells` one per attribute, named with\n"
        "'=' in front."
    )
    sections.append(
        _described(bucket_counts((), ()), [])
        + "\n\nOne more column per slice and per attribute, named with '=' in front."
    )
    known = []
    for table in BATCH_TABLES:
        likes = ((other, _extends(other, table)) for other in HISTORY_TABLES)
        like = next(((other, more) for other, more in likes if more and len(more) == 1), None)
        if like is None:
            sections.append(_described(table, []))
        else:
            other, (more,) = like
            name = f" `{other.name}`" if other.name != table.name else ""
            known.append(f"- `{table.name}`:{name} without `{more.name}`")
    same = "\n".join(["These are as in the history:", "", *known])
    return "\n\n".join([*sections, same])


def copy_tables() -> str:
    """Every table that the published copy has beside those of the history."""
    return "\n\n".join(_described(table, []) for table in COPY_TABLES)


def views() -> str:
    """Every view of the published copy."""
    return "\n\n".join(_described(view, VIEWS[:at]) for at, view in enumerate(VIEWS))


# -- rules


def rules() -> str:
    """One line per rule that a delivered row can break."""
    rows = [
        (code(rule.name), code(rule.column), rule.error)
        for column in LOGGED
        if column is not QUERY_ID
        for rule in row_rules(column, raw="raw", value="value")
    ]
    rows += [
        (code(rule.name), code(rule.column) if rule.column != "slice" else "a slice", rule.error)
        for rule in list_rules(("slice",), gaps_allowed=False)
    ]
    return grid(("rule", "column", "the value ..."), rows)


# -- settings

MEANINGS = {
    "logs": "where the logs of one batch lie; a path or a list of paths, each with `{batch}`",
    "items": "the item table: `item_id` and attribute columns; may hold `{batch}`",
    "store": "the folder that results are kept in",
    "spill": "the folder for what does not fit into memory while a batch is computed",
    "columns": "names of the contract to names in your files, where they differ",
    "ranks.start": "the rank at the top of a list",
    "ranks.gaps": "what a gap in ranks means: `reject` the list, `compact` the ranks, or `keep` "
    "them: weights at the logged rank, pairs by order",
    "top_of_list": "whether the top is the good outcome; `bad` swaps worst and best group",
    "missing_relevance": "what a missing relevance is; `undefined` makes scores that need it null",
    "missing_click": "the same for clicks",
    "relevant_from": "least relevance of an item that counts as relevant, where a metric knows "
    "relevant or not, and nothing in between",
    "attributes": "what groups are compared by; `[a, b]` is the intersection of two",
    "slices": "columns that describe the request; scores are computed per value as well",
    "metrics": "labels of what is computed, each in all its aggregations, or families of metrics",
    "groups": "groups that an attribute may have, by attribute; any other refuses the batch",
    "targets": "share that each group should have, by attribute, for `reference=target`",
    "thresholds.*.min": "least acceptable value of a score that is bad when low",
    "thresholds.*.max": "greatest acceptable value of a score that is bad when high",
    "thresholds.*.attributes": "attributes that the threshold holds for",
    "thresholds.*.slices": "slices that it holds for; `all` is the whole batch",
    "rejects.policy": "what a broken row costs: its list, itself alone, or the batch",
    "rejects.max_rejected_share": "above this share of rejected rows the batch is refused",
    "rejects.max_stored_rows": "offenders kept in `rejected_rows`, per rule; all are counted",
    "unknown_group.in_aggregations": "whether `unknown` is compared with the other groups",
    "unknown_group.max_share": "above this share of rows without a group the batch is refused",
    "limits.files": "most files of a batch",
    "limits.rows": "most rows of a batch",
    "limits.groups": "most groups of an attribute",
    "limits.slice_values": "most values of a slice",
    "limits.list_rows": "most rows of a list",
    "limits.name_length": "most characters of the name of a group or of a slice's value",
    "limits.text_bytes": "most bytes of one text file, unpacked where it is packed",
    "checksums": "whether a file needs the checksum of its sender beside it, in `file.sha256`; one "
    "that is there must agree in either case",
    "schedule.start": "first day that is a batch",
    "schedule.end": "last day; without it, days go on",
    "schedule.hour": "hour at which Dagster starts the night's run",
    "schedule.minute": "minute of that hour",
    "schedule.timezone": "time zone of the days and of the hour, like `Europe/Berlin`",
    "schedule.deadline_hours": "hours after the end of a day until its scores count as late",
    "evidence.confidence": "share of intervals that should hold the true value",
    "evidence.resamples": "resamples that intervals are made of; 0: no intervals",
    "evidence.noise_draws": "draws of the noise floor; 0: none",
    "evidence.seed": "what resamples and draws start from",
    "evidence.decide_by": "what must be beyond a threshold for a breach: the whole `interval`, "
    "or the number alone (`point`)",
    "evidence.min_queries": "least queries that hold each group that is compared",
    "evidence.min_appearances": "least rows of each group that is compared",
    "evidence.min_relevant": "least relevant rows of each such group, where the metric needs them",
    "gate.window": "batches before that a batch is held against, by their median",
    "gate.least": "fewest such batches; with less no gate is tested",
    "gate.volume": "share of the usual rows, and lists, that may be missing; as many times more "
    "may be too many",
    "gate.list_length": "change of the mean list length, as a share of the usual one",
    "gate.group_mix": "change of the groups' shares of rows: half the sum of the differences",
    "gate.unknown_share": "rise of the share of rows without a group",
    "gate.labels": "fall of the share of rows with a known relevance, or click",
    "trends.window": "batches before that make the baseline of a score",
    "trends.least": "fewest of them; with less no trend is tested",
    "trends.weekday_weeks": "times each weekday must have been seen before its effect is removed",
    "trends.smoothing": "weight of the newest batch in the EWMA",
    "trends.drift": "slack of the CUSUM, in standard errors",
    "trends.discoveries": "control of false discoveries among the night's scores: "
    "Benjamini-Yekutieli, Benjamini-Hochberg, or none",
    "trends.level": "level of that control",
    "trends.scores": "labels of the scores that are followed",
    "notify.command": "program that is started for each new alert, with its arguments; the alert "
    "comes as JSON on its standard input",
    "notify.webhook": "address that each new alert is posted to, as JSON",
    "notify.timeout_seconds": "seconds that a delivery may take",
    "privacy.hash_ids": "ids that are replaced by a keyed hash when they are read: `list_id`, "
    "`item_id`, `query_id`",
    "privacy.key": "name of the environment variable that holds the key of the hash",
    "privacy.min_cell": "least queries of a group in a slice whose numbers are published; 0: all",
    "privacy.keep_rows_days": "days after which rows of a batch are removed from the store; its "
    "scores and counts stay",
    "privacy.show_values": "whether messages may show values of ids, names and texts of the logs",
    "memory_limit": "memory that a run may take for its data, like `8GB`, or `50%` of the "
    "machine; `--jobs` share it",
    "threads": "threads that a run may take; `--jobs` share them",
    "busy_seconds": "seconds to wait for a store that another process holds",
    "owners": "who answers for the audit, as Dagster shows it on every asset: e-mail addresses, or "
    "teams as in `team:search`",
}
"""What each setting is, by its place in the file; ``*`` stands for a name that the user chooses."""

_DEFAULTS = {
    "metrics": "`fairness`",
    "thresholds.*.attributes": "all",
    "thresholds.*.slices": "all",
    "trends.scores": "one of each metric",
    "notify.command": "nobody",
    "notify.webhook": "nobody",
    "spill": "`spill` in the store",
    "memory_limit": "an eighth of the machine, at least 1 GB",
    "threads": "one for each core",
}
"""Defaults that are better said than printed."""


def fields() -> Iterator[tuple[str, FieldInfo]]:
    """Every setting by its place in the file, sections resolved."""
    yield from _fields(Settings, "")


def _fields(model: type[BaseModel], before: str) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        if name == "folder":
            continue
        section, inside = _section(field.annotation)
        if section is None:
            yield before + name, field
        else:
            yield from _fields(section, f"{before}{name}.{inside}")


def _section(annotation: Any) -> tuple[type[BaseModel] | None, str]:
    """The model of a section, and what stands between its name and that of a field in it."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, ""
    inner = get_args(annotation)
    if get_origin(annotation) is dict and isinstance(inner[1], type):
        return (inner[1], "*.") if issubclass(inner[1], BaseModel) else (None, "")
    return None, ""


def settings() -> str:
    """One line per setting."""
    changes = _changes()
    rows = []
    for name, field in fields():
        rows.append(
            (
                code(name.replace("*", "<score>")),
                _kind(field),
                _default(name, field),
                MEANINGS[name],
                changes.get(name, changes.get(name.split(".")[0], "")),
            )
        )
    return grid(("setting", "values", "default", "meaning", "changes"), rows)


def _changes() -> dict[str, str]:
    """Whether changing a setting means counting rows again, or scoring counts again."""
    # Ids that are hashed otherwise are other rows.
    rows = dict.fromkeys((*DECIDE_ROWS, "privacy.hash_ids"), "rows")
    return rows | dict.fromkeys(DECIDE_SCORES, "scores")


def _kind(field: FieldInfo) -> str:
    annotation = field.annotation
    if get_origin(annotation) in (Union, UnionType):
        (annotation,) = (each for each in get_args(annotation) if each is not type(None))
    if get_origin(annotation) is Literal:
        return codes(get_args(annotation))
    if annotation is bool:
        return codes(("true", "false"))
    if annotation in (int, float):
        return _bounds("whole number" if annotation is int else "number", field.metadata)
    names: dict[Any, str] = {str: "text", date: "day"}
    if annotation in names:
        return names[annotation]
    return "mapping" if get_origin(annotation) is dict else "list"


def _bounds(kind: str, metadata: Iterable[Any]) -> str:
    low = next((each.ge for each in metadata if hasattr(each, "ge")), None)
    high = next((each.le for each in metadata if hasattr(each, "le")), None)
    if low is not None:
        kind += f" from {low:g}"
    return kind if high is None else f"{kind} to {high:g}"


def _default(name: str, field: FieldInfo) -> str:
    if field.is_required():
        return "needed"
    if name in _DEFAULTS:
        return _DEFAULTS[name]
    value = field.get_default(call_default_factory=True)
    if value is None or value in ({}, ()):
        return "none"
    if isinstance(value, tuple):
        return codes(value)
    return code(text_of(value) if isinstance(value, bool | int | float) else value)


# -- what was tried


def bad_inputs() -> str:
    """One line per delivery that the tests make, and what becomes of it."""
    from bad_inputs import CASES

    return grid(("delivery", "outcome"), ((case.name, _outcome(case)) for case in CASES))


def _outcome(case: "Case") -> str:
    if case.status == "done":
        return f"its list is dropped: {codes(sorted(case.rules))}" if case.rules else "accepted"
    said = "; ".join(map(code, case.said))
    return f"{case.status.replace('_', ' ')}: {said}"


def crashes() -> str:
    """One line per way in which a store was harmed, with how often, by version of DuckDB."""
    record = json.loads((ROOT / "tests" / "harm" / "crashes.json").read_text("utf-8"))
    versions = sorted(record, reverse=True)
    kinds = list(dict.fromkeys(kind for each in versions for kind in record[each]["kinds"]))
    rows = [
        (kind, *(f"{record[each]['kinds'].get(kind, 0):,}" for each in versions)) for kind in kinds
    ]
    rows.append(
        (
            "**lost, torn, or wrong in silence**",
            *(f"**{record[each]['problems']:,}**" for each in versions),
        )
    )
    return grid(("harm", *(f"DuckDB {each}" for each in versions)), rows)


# -- pages

PARTS: dict[str, Callable[[], str]] = {
    "metrics": metrics_overview,
    "metric-details": metric_details,
    "parameters": parameters,
    "aggregations": aggregations,
    "ranges": ranges,
    "reasons": reasons,
    "causes": causes,
    "history-tables": history_tables,
    "batch-tables": batch_tables,
    "copy-tables": copy_tables,
    "views": views,
    "rules": rules,
    "settings": settings,
    "bad-inputs": bad_inputs,
    "crashes": crashes,
}


def rewritten(text: str) -> str:
    """A page with its derived parts as they should be."""
    return _PART.sub(lambda m: f"{m[1]}\n{PARTS[m['name']]()}\n\n{m[3]}", text)


def parts_of(text: str) -> list[str]:
    """Names of the derived parts of a page."""
    return [match["name"] for match in _PART.finditer(text)]


def main(arguments: Sequence[str]) -> int:
    """Rewrite the pages, or with ``--check`` say which are stale."""
    stale = []
    for page in PAGES:
        text = page.read_text("utf-8")
        wanted = rewritten(text)
        if wanted != text:
            stale.append(page)
            if "--check" not in arguments:
                page.write_text(wanted, encoding="utf-8")
    for page in stale:
        said = "is stale: python docs/build.py" if "--check" in arguments else "rewritten"
        print(f"{page.relative_to(ROOT)} {said}")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
