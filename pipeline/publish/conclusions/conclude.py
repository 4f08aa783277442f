"""Makes the rows of the table conclusions: one per batch that was attempted.

Not here: what is selected for them (``reading``), and batches that nobody ran, which the view
adds.
"""

import json
import shlex
from collections.abc import Mapping
from typing import Any

import duckdb

from pipeline.formatting.batches import batch_text
from pipeline.formatting.looks import LOOKS
from pipeline.formatting.numbers import counted
from pipeline.publish.conclusions.choice import Choice, choice_of
from pipeline.publish.conclusions.facts import facts_of
from pipeline.publish.conclusions.reading import Batch, beside, read_batches
from pipeline.publish.conclusions.sentences import About, is_beyond_chance, said_of
from pipeline.scores.score_texts import Names, ScoreTexts
from pipeline.settings.audit import Settings
from schemas.columns import Row
from schemas.copy import CONCLUSIONS
from schemas.monitoring import SERIES_KEY

_CHIPS: Mapping[str, tuple[str, str]] = {
    "new_breach": (LOOKS["breach"].symbol, "New breach"),
    "breach": (LOOKS["breach"].symbol, "Breach"),
    "window": (LOOKS["breach"].symbol, "Breach over several days"),
    "reversal": ("⇄", "Another group loses"),
    "gated": (LOOKS["gated"].symbol, "Held back"),
    "composition": (LOOKS["composition"].symbol, "Explained by chance"),
    "insufficient": (LOOKS["insufficient"].symbol, "Unsure"),
    "undefined": (LOOKS["undefined"].symbol, "No value"),
    "calm": (LOOKS["ok"].symbol, "Within limits"),
    "no_limits": (LOOKS["not_judged"].symbol, "Not judged"),
    "withheld": (LOOKS["not_judged"].symbol, "Kept back"),
    "refused": (LOOKS["refused"].symbol, "Refused"),
    "no_data": (LOOKS["no_data"].symbol, "No data"),
    "failed": (LOOKS["failed"].symbol, "Failed"),
}
"""The sign and the word of each state."""


def conclusions(connection: duckdb.DuckDBPyConnection, settings: Settings) -> list[Row]:
    """Rows of the table conclusions, oldest first, from the views of the copy in use."""
    names = Names.of(settings)
    batches = read_batches(connection, list(settings.thresholds))
    choices = {name: choice_of(batch) for name, batch in batches.items()}
    known = beside(connection, [choice.score for choice in choices.values() if choice.score])
    return [
        _row(batch, choices[name], known.get(name, {}), names) for name, batch in batches.items()
    ]


def _row(batch: Batch, choice: Choice, known: Mapping[str, Any], names: Names) -> Row:
    speaking = choice.score
    score = ScoreTexts(speaking, names, known.get("usual")) if speaking else None
    about = About(batch, choice, score, known)
    said = said_of(about)
    sign, word = _CHIPS[choice.state]
    if choice.state == "breach" and known.get("days", 0) > 1:
        word = f"Breach, {about.noun} {known['days']}"
    if choice.state == "reversal" and batch.counts["breach"]:
        sign, word = _CHIPS["breach"][0], "Breach, another group loses"
    if choice.state == "no_limits" and speaking and is_beyond_chance(speaking):
        word = "Not judged, beyond chance"
    row: dict[str, Any] = dict.fromkeys(column.name for column in CONCLUSIONS.columns)
    if speaking and score:
        copied = (*SERIES_KEY, "label", "value", "lower", "upper", "threshold_min", "threshold_max")
        row |= {name: speaking[name] for name in copied}
        row |= {
            "small": score.small,
            "loser": speaking["worst_group"],
            "winner": speaking["best_group"],
            "explain": _explain(batch.name, speaking),
        }
    alert = choice.alert or (speaking if speaking and speaking["status"] == "breach" else {})
    if alert.get("alert"):
        row |= {"alert": alert["alert"], "acknowledge": f"evenrank alerts ack {alert['alert']}"}
    return row | {
        "batch": batch.name,
        "state": choice.state,
        "sign": sign,
        "word": word,
        "note": _note(batch, choice.state),
        "sentence": said.sentence,
        "emphasis": said.emphasis,
        "second": said.second,
        "title": _title(sign, said.sentence, batch.name),
        "usual": known.get("usual"),
        "since": (choice.alert or speaking or {}).get("opened"),
        "worst_batch": known.get("worst_batch"),
        "worst_value": known.get("worst_value"),
        "facts": json.dumps(facts_of(about, names), ensure_ascii=False),
        "shown_batch": batch.shown,
    }


def _title(sign: str, sentence: str, batch: str) -> str:
    core = sentence.rstrip(".")
    named = batch_text(batch, beside=batch) in core
    return f"{sign} {core}" if named else f"{sign} {core}, {batch_text(batch)}"


def _explain(batch: str, score: Row) -> str:
    words = ["evenrank", "explain", "--batch", batch, "--score", score["label"]]
    if score["attribute"]:
        words += ["--attribute", score["attribute"]]
    return shlex.join(words)


def _note(batch: Batch, state: str) -> str:
    """How many scores were judged, and how."""
    if not batch.is_scored or state == "withheld":
        return ""
    counts = batch.counts
    if state == "no_limits":
        return "No limit is set, so nothing can be a breach."
    judged = sum(counts[name] for name in ("ok", "breach", "composition", "insufficient"))
    if state == "gated":
        return f"{counted(counts['gated'], 'score')} without a verdict"
    said = []
    if counts["breach"]:
        whose = "is beyond its limit" if counts["breach"] == 1 else "are beyond their limit"
        said.append(f"{counts['breach']:,} of {judged:,} judged scores {whose}")
    elif counts["ok"] == judged:
        said.append(f"All {judged:,} judged scores" if judged > 1 else "The only judged score")
    else:
        said.append(f"{counts['ok']:,} of {judged:,} judged scores are within their limit")
    if counts["insufficient"]:
        said.append(f"{counts['insufficient']:,} unsure")
    if counts["composition"]:
        said.append(f"{counts['composition']:,} explained by chance")
    if counts["undefined"]:
        said.append(f"{counts['undefined']:,} without a value")
    return ", ".join(said)
