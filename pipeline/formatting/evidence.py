"""What a verdict rests on, in sentences: chance, thin groups, how sure an ok is, slices.

Rows are those of fairness_history; columns that older ones lack say nothing.

Not here: the verdict itself (``scores.verdicts``), and where a sentence is shown.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from metrics import WHOLE, LabelError, parse_score
from pipeline.formatting.numbers import interval_text, number
from schemas.judged import as_judged, group_names

Row = Mapping[str, Any]
_NAMED = 3
"""Groups that a sentence names: with more it is a list."""
_FEW = {
    "few_queries": "few queries",
    "few_effective_queries": "few queries hold most of its rows",
    "few_appearances": "few rows",
    "few_relevant": "few relevant rows",
}
_TOO_LITTLE = "too little evidence"
_HOPELESS = 1000
"""Times the lists of a batch: with more needed, their number is no advice."""
_DECIDED = ("ok", "breach", "composition")
_MOST = 0.5
"""Share of a batch's rows that judged slices hold at least, for them to speak against the whole."""


def few_text(cause: str | None, count: float | None = None) -> str:
    """Of what a group has too little, and how much it has.

    >>> few_text("few_queries", 3), few_text(None)
    ('few queries (3)', 'too little evidence')
    """
    words = _FEW.get(cause or "", _TOO_LITTLE)
    return words if count is None else f"{words} ({count:,.0f})"


def thin_text(row: Row, why: Mapping[str, str] | None = None) -> str:
    """Which groups are not judged, nothing for none; ``why`` says of what they have too little.

    >>> thin_text({"thin_groups": '["F"]'}, {"F": "few queries (3)"})
    'F is not judged: few queries (3).'
    >>> thin_text({"thin_groups": '["A", "B", "C", "D"]'})
    'A, B, C and 1 more are not judged: too little evidence.'
    """
    names = group_names(row.get("thin_groups"))
    if not names:
        return ""
    known = dict(why or {})
    if row.get("status") == "insufficient" and ": " in (row.get("status_reason") or ""):
        cause, group = row["status_reason"].split(": ", 1)
        known.setdefault(group, few_text(cause))
    reasons = {known.get(name, _TOO_LITTLE) for name in names[:_NAMED]}
    verb = "is" if len(names) == 1 else "are"
    if len(reasons) == 1:
        return f"{_listed(names)} {verb} not judged: {reasons.pop()}."
    said = [f"{name} ({known.get(name, _TOO_LITTLE)})" for name in names[:_NAMED]]
    return f"{_listed([*said, *names[_NAMED:]])} {verb} not judged."


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    if more > 0:
        return f"{', '.join(names[:_NAMED])} and {more} more"
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def chance_text(row: Row) -> str:
    """What chance alone gives, and how often it is as unfair; nothing where nobody knows.

    >>> chance_text({"status": "breach", "expected": 0.932, "p_noise": 0.002})
    'Chance alone gives 0.932, and is as unfair with p = 0.002.'
    """
    if row.get("status") == "composition":
        return composition_text(row)
    if row.get("expected") is None:
        return ""
    p = row.get("p_noise")
    often = "" if p is None else f", and is as unfair with {_p_text(p)}"
    return f"Chance alone gives {number(row['expected'])}{often}."


def _p_text(p: float) -> str:
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.2g}"


def composition_text(row: Row) -> str:
    """Why a score beyond its threshold is no breach, in two sentences.

    >>> composition_text({"against_chance": 0.98})
    'Lists in random order would be beyond the threshold too: what groups differ in is not their \
order. Against chance it is 0.980.'
    """
    said = (
        "Lists in random order would be beyond the threshold too: "
        "what groups differ in is not their order."
    )
    if row.get("against_chance") is None:
        return said
    between = interval_text(row.get("against_chance_lower"), row.get("against_chance_upper"))
    return f"{said} Against chance it is {number(row['against_chance'])}" + (
        f", {between}." if between else "."
    )


def power_text(row: Row) -> str:
    """How sure an ok or insufficient score is, what would have been noticed, what would settle it.

    >>> power_text({"status": "ok", "assured": False, "value": 0.82, "lower": 0.79, "upper": 0.86,
    ...     "metric": "EXP", "aggregation": "MinMaxRatio", "detectable": 0.76, "lists": 900,
    ...     "lists_needed": 12_345})
    'Not assured: 0.790 to 0.860; a value below 0.760 would have been noticed in 4 of 5 such \
batches; about 12,000 lists would settle it.'
    """
    if row["status"] not in ("ok", "insufficient"):
        return ""
    row = as_judged(row)
    said = []
    # A gate or a missing group may have taken the verdict of what was ok.
    if row["status"] == "ok" and row.get("assured") is not None:
        sure = "assured" if row["assured"] else "not assured"
        said.append(": ".join(filter(None, (sure, interval_text(row["lower"], row["upper"])))))
    if row.get("detectable") is not None and (side := _unfair_side(row)):
        limit = number(row["detectable"])
        said.append(f"a value {side} {limit} would have been noticed in 4 of 5 such batches")
    if not row.get("assured") and (needed := _needed_text(row)):
        said.append(needed)
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _unfair_side(row: Row) -> str:
    label = ".".join(filter(None, (row["metric"], row["aggregation"])))
    try:
        alarm = parse_score(label).alarm
    except LabelError:
        # An old history may hold a score that is declared no more.
        return ""
    return {"low": "below", "high": "above"}.get(alarm or "", "")


def _needed_text(row: Row) -> str:
    """How many lists would tell the value from the threshold, in two digits: it is an estimate."""
    needed, lists = row.get("lists_needed"), row["lists"]
    if needed is None or lists is None or needed <= lists:
        return ""
    if needed > _HOPELESS * lists:
        return f"more than {_HOPELESS:,} times as many lists would be needed to settle it"
    return f"about {int(float(f'{needed:.2g}')):,} lists would settle it"


def slice_counts_text(slices: Iterable[Row]) -> str:
    """The verdicts of slices by themselves, slice column by slice column.

    >>> slice_counts_text([{"slice": "country", "status": status} for status in ("ok", "breach")])
    'country 1 breach, 1 ok'
    """
    return "; ".join(
        f"{name} {_counts_text(rows)}" for name, rows in _by_column(slices) if _counts_text(rows)
    )


def apart_texts(whole: Row, slices: Iterable[Row]) -> Iterator[str]:
    """Where a whole batch and its slices disagree, which people take for a mistake.

    ``slices`` are rows of the same score and attribute in the same batch.  Slices without a verdict
    say nothing; those with one must hold most rows of the batch.
    """
    for name, rows in _by_column(slices):
        decided = [row for row in rows if row["status"] in _DECIDED]
        if len(decided) < 2 or sum(row["rows"] for row in decided) < _MOST * whole["rows"]:
            continue
        breaching = sum(row["status"] == "breach" for row in decided)
        if whole["status"] == "breach" and not breaching:
            told = all(row["status"] in _DECIDED for row in rows)
            cause = "the groups are in different ones" if told else "not all of them can be judged"
            yield (
                f"the whole batch breaches, and no slice of {name} by itself "
                f"({_counts_text(rows)}): {cause}"
            )
        if whole["status"] == "ok" and breaching == len(decided):
            yield (
                f"every slice of {name} that can be judged breaches by itself "
                f"({_counts_text(rows)}), and the whole batch does not "
                f"({number(as_judged(whole)['value'])}): the slices make up for each other"
            )


def _by_column(slices: Iterable[Row]) -> list[tuple[str, list[Row]]]:
    rows_by_column: dict[str, list[Row]] = {}
    for row in slices:
        if row["slice"] != WHOLE:
            rows_by_column.setdefault(row["slice"], []).append(row)
    return sorted(rows_by_column.items())


def _counts_text(rows: Sequence[Row]) -> str:
    counts = Counter(row["status"] for row in rows)
    words = ("breach", "composition", "ok", "insufficient")
    return ", ".join(f"{counts[word]:,} {word}" for word in words if counts[word])
