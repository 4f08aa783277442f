"""Settings: kinds, bounds and defaults from the JSON schema of the model, meanings from here.

Not here: reasons for defaults, which stand beside them in ``pipeline.settings``.
"""

from collections.abc import Iterator
from typing import Any

from docs.build.markdown import code, codes, grid
from metrics.parameters import text_of
from pipeline.settings.audit import DECIDE_ROWS, DECIDE_SCORES, Settings

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
    "values": "other ways to write a group, by attribute: delivered values, each with the group "
    "that it counts as",
    "groups": "groups that an attribute may have, by attribute; any other refuses the batch",
    "labels": "how a value is named in sentences, by attribute or slice column: `F: women`; where "
    "it has no label, the value stands as it is",
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
    "lists_span_files": "whether a list may have rows in several files; otherwise such lists are "
    "remarked on, and refused where they are numbered in each file and have no ranks",
    "checksums": "whether a file needs the checksum of its sender beside it, in `file.sha256`; one "
    "that is there must agree in either case",
    "schedule.start": "first day that is a batch",
    "schedule.end": "last day; without it, days go on",
    "schedule.hour": "hour at which Dagster starts the night's run",
    "schedule.minute": "minute of that hour",
    "schedule.timezone": "time zone of the days and of the hour, like `Europe/Berlin`",
    "schedule.deadline_hours": "hours after the end of a day until its scores count as late",
    "schedule.batches": "what a batch is called: `days`, as in 2026-01-05, or hours of them, as in "
    "2026-01-05T07; or any `names`, letters, digits, `.`, `_` and `-`",
    "evidence.confidence": "share of intervals that should hold the true value",
    "evidence.resamples": "resamples that intervals are made of; 0: no intervals",
    "evidence.noise_draws": "draws of the noise floor; 0: none",
    "evidence.seed": "what resamples and draws start from",
    "evidence.decide_by": "what must be beyond a threshold for a breach: the whole `interval`, "
    "or the number alone (`point`)",
    "evidence.min_queries": "least queries that hold each group that is compared",
    "evidence.min_appearances": "least rows of each group that is compared",
    "evidence.min_relevant": "least relevant rows of each such group, where the metric needs them",
    "windows": "numbers of days, like 7 and 28: scores of the last so many days together",
    "gate.window": "batches before that a batch is held against, by their median",
    "gate.least": "fewest such batches; with less only `gate.joined` is tested",
    "gate.joined": "share of the rows whose item the item table must hold, where attributes come "
    "from it; needs no batches before",
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
    "notify.webhook": "address that each new alert is posted to, as JSON; may hold "
    "`user:password@`",
    "notify.timeout_seconds": "seconds that a delivery may take",
    "privacy.hash_ids": "ids that are replaced by a keyed hash when they are read: `list_id`, "
    "`item_id`, `query_id`",
    "privacy.key": "name of the environment variable that holds the key of the hash",
    "privacy.min_cell": "least queries, lists and items of a group in a slice whose numbers are "
    "told; 0: all",
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
    "notify.command": "off",
    "notify.webhook": "off",
    "spill": "`spill` in the store",
    "memory_limit": "an eighth of the machine, at least 1 GB",
    "threads": "one for each core",
}
"""Defaults that are better said than printed."""

_CHANGES = (
    dict.fromkeys(DECIDE_SCORES, "scores")
    | dict.fromkeys(DECIDE_ROWS, "rows")
    # Ids that are hashed otherwise are other rows.
    | {"privacy.hash_ids": "rows"}
)
"""Whether changing a setting means counting rows again, or scoring counts again."""
_KINDS = {"object": "mapping", "array": "list", "boolean": "`true`, `false`", "string": "text"}

Schema = dict[str, Any]


def fields() -> Iterator[tuple[str, Schema]]:
    """Every setting by its place in the file, with its schema; sections resolved."""
    whole = Settings.model_json_schema()
    whole["properties"].pop("folder")
    yield from _fields(whole, whole["$defs"], "")


def _fields(model: Schema, sections: Schema, before: str) -> Iterator[tuple[str, Schema]]:
    for name, field in model["properties"].items():
        named = field.get("additionalProperties", {})
        reference = field.get("$ref") or named.get("$ref")
        if reference:
            inside = f"{before}{name}.{'*.' if named else ''}"
            yield from _fields(sections[reference.rpartition("/")[2]], sections, inside)
        else:
            needed = name in model.get("required", ())
            yield before + name, field | {"needed": needed}


def settings() -> str:
    """One line per setting."""
    rows = [
        (
            code(name.replace("*", "<score>")),
            _kind(field),
            _default(name, field),
            MEANINGS[name],
            _CHANGES.get(name, _CHANGES.get(name.split(".")[0], "")),
        )
        for name, field in fields()
    ]
    return grid(("setting", "values", "default", "meaning", "changes"), rows)


def _kind(field: Schema) -> str:
    # A value that may be null is the first of two.
    field = field.get("anyOf", [field])[0]
    if "enum" in field:
        return codes(field["enum"])
    if field.get("format") == "date":
        return "day"
    if field["type"] in _KINDS:
        return _KINDS[field["type"]]
    kind = "whole number" if field["type"] == "integer" else "number"
    low, high = field.get("minimum"), field.get("maximum")
    kind += "" if low is None else f" from {low:g}"
    return kind + ("" if high is None else f" to {high:g}")


def _default(name: str, field: Schema) -> str:
    if field["needed"]:
        return "needed"
    if name in _DEFAULTS:
        return _DEFAULTS[name]
    value = field.get("default")
    if value is None or value == []:
        return "none"
    return codes(value) if isinstance(value, list) else code(text_of(value))
