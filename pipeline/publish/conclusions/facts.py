"""The facts beside a conclusion: since when, where worst, what else, whether the data are sound.

Not here: the sentences (``sentences``).
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from metrics import WHOLE
from pipeline.formatting.looks import LOOKS
from pipeline.formatting.numbers import counted, number
from pipeline.formatting.sentences import capital
from pipeline.publish.conclusions.reading import Batch
from pipeline.publish.conclusions.sentences import About
from pipeline.scores.score_texts import Names, ScoreTexts
from schemas.columns import Row

_NAMED = 2
"""Slices that are named: with more it is a list."""
_ALERTS = {
    "missing": "a group is missing",
    "window": "several days together are beyond a limit",
    "release": "a release changed something",
    "flip": "another group loses",
    "shift": "scores moved beyond chance",
    "improvement": "scores are fairer than usual",
}
"""What an alert is about, of those that no sentence of a conclusion tells."""


class Fact(NamedTuple):
    """A heading, its answer, and a note."""

    name: str
    text: str
    more: str = ""


def facts_of(about: About, names: Names) -> list[Mapping[str, str]]:
    """What there is, in the order in which people ask."""
    return [fact._asdict() for fact in _facts(about, names)]


def _facts(about: About, names: Names) -> Iterator[Fact]:
    batch, score = about.batch, about.score
    is_breach = score is not None and score.row["status"] == "breach"
    if is_breach:
        yield _since(about)
        if where := _worst_slices(about):
            yield where
        if also := _also_breaching(about, names):
            yield also
    elif score is not None and about.choice.state == "calm":
        closest = min(
            (row for row in batch.scores if row["status"] == "ok" and row["margin"] is not None),
            key=lambda row: row["margin"],
            default=None,
        )
        if closest is not None:
            yield _closest(ScoreTexts(closest, names))
    if batch.is_scored and not is_breach and (last := _last_breach(about)):
        yield last
    is_assessed = batch.is_scored and about.choice.state != "gated"
    if is_assessed and not is_breach and (words := _alert_words(about)):
        first, *more = words
        yield Fact("Alert", capital(first), _listed(more))
    if batch.is_scored and batch.state not in ("done", "unchanged"):
        yield Fact("Last attempt", LOOKS[batch.state].word, "These scores are of the one before.")
    if missing := _missing(about):
        yield missing
    if batch.is_scored and about.choice.state != "withheld":
        yield _sound(batch)


def _since(about: About) -> Fact:
    row = about.choice.score or {}
    opened, now = row.get("opened"), about.batch.name
    if opened == now and row.get("former_loser"):
        return Fact("Since", f"This {about.noun}", "Before, it was a breach of another group.")
    if opened == now:
        judged = (
            other.is_scored and other.counts["ok"] and not other.counts["breach"]
            for other in about.batch.before
        )
        fine = sum(1 for _ in takewhile(bool, judged))
        noun = about.noun
        before = f"; the {counted(fine, noun)} before had none" if fine > 1 else ""
        return Fact("Since", f"This {noun}", f"It is new{before}.")
    if opened is None:
        return Fact("Since", "Not known", "No alert is about it by itself.")
    days = counted(about.beside.get("days", 0), about.noun)
    return Fact("Since", about.day(opened), f"{days} in breach since then.")


def _worst_slices(about: About) -> Fact | None:
    score = about.score
    slices: list[Row] = about.beside.get("slices", [])
    if score is None or not slices:
        return None
    breaching = [row for row in slices if row["status"] == "breach"]
    unsure = [row for row in slices if row["status"] == "insufficient"]
    judged = [row for row in slices if row["status"] != "not_judged"]
    shown = breaching or (slices if not judged else [])
    named = ", ".join(
        f"{score.names.labels.slice(row['slice'], row['slice_value'])} {score.text(row['value'])}"
        for row in shown[:_NAMED]
    )
    left = ", ".join(
        score.names.labels.slice(row["slice"], row["slice_value"]) for row in unsure[:_NAMED]
    )
    if not named:
        named = "No slice by itself"
    return Fact("Worst in", named, f"Unsure: {left}." if left else "")


def _also_breaching(about: About, names: Names) -> Fact | None:
    row = about.choice.score or {}
    others = [
        ScoreTexts(other, names)
        for other in about.batch.scores
        if other["status"] == "breach"
        and other["slice"] == WHOLE
        and (other["label"], other["attribute"]) != (row["label"], row["attribute"])
    ]
    words = _alert_words(about)
    # Another attribute says more than another score of the same.
    others.sort(key=lambda other: other.row["attribute"] == row["attribute"])
    if not others:
        return Fact("Also", capital(words[0]), _listed(words[1:])) if words else None
    first, *more = others
    limit = f", limit {first.limit:g}" if first.limit is not None else ""
    opened: str = first.row.get("opened") or about.batch.name
    since = "" if opened == about.batch.name else f", since {about.day(opened)}"
    score = f"{first.short_title}: {number(first.row['value'])}{limit}{since}"
    rest = [f"{counted(len(more), 'more score')} of all requests"] if more else []
    return Fact("Also", score, _listed([*rest, *words]))


def _listed(words: Sequence[str]) -> str:
    return f"{capital(', '.join(words))}." if words else ""


def _closest(score: ScoreTexts) -> Fact:
    limit = "" if score.limit is None else f"Limit {score.limit:g}"
    loser = f"; {score.loser.name} got least" if score.loser else ""
    return Fact(
        "Closest to its limit",
        f"{score.short_title}: {number(score.row['value'])}",
        f"{limit}{loser}.",
    )


def _last_breach(about: About) -> Fact | None:
    for other in about.batch.before:
        if other.is_scored and other.counts["breach"]:
            count = counted(other.counts["breach"], "score")
            return Fact("Last breach", about.day(other.name), f"{count} beyond a limit.")
    return None


def _alert_words(about: About) -> list[str]:
    """What alerts of the batch are about, each kind once; that of the sentence is left out."""
    told = about.choice.alert
    kinds = (alert["kind"] for alert in about.batch.alerts if alert is not told)
    return list(dict.fromkeys(_ALERTS[kind] for kind in kinds if kind in _ALERTS))


def _missing(about: About) -> Fact | None:
    gaps = [other for other in about.batch.before if not other.is_scored]
    if not gaps:
        return None
    first, *more = gaps
    rest = f"And {counted(len(more), about.noun)} before." if more else ""
    return Fact("Without scores", f"{about.day(first.name)}, {LOOKS[first.state].word}", rest)


def _sound(batch: Batch) -> Fact:
    lists, rows = batch.counts["lists"], batch.counts["rows_accepted"]
    size = "" if lists is None or rows is None else f"{lists:,} lists, {rows:,} rows."
    closed: list[Mapping[str, Any]] = [gate for gate in batch.gates if not gate["passed"]]
    name = "Are the data sound?"
    if closed:
        count = f"{len(closed)} of {counted(len(batch.gates), 'check')}"
        return Fact(name, f"No: {count} failed", f"{capital(closed[0]['text'])}. {size}")
    if not any(gate["baseline"] for gate in batch.gates):
        return Fact(name, "Not known yet", f"The first days have none to compare with. {size}")
    return Fact(name, f"✓ Yes, all {len(batch.gates)} checks passed", size)
