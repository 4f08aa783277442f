"""The two sentences of a conclusion, by the state of the batch.

Not here: the facts beside them (``facts``), and which state it is (``choice``).
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pipeline.formatting.batches import batch_text, is_day
from pipeline.formatting.evidence import few_text
from pipeline.formatting.sentences import attribute_text, capital, opening
from pipeline.publish.conclusions.choice import Choice
from pipeline.publish.conclusions.reading import Batch
from pipeline.scores.score_texts import ScoreTexts
from pipeline.scores.verdicts import Cause
from schemas.columns import Row
from schemas.monitoring import MISSING_GROUP

_NOT_DONE = {"refused": "was refused", "no_data": "found no data", "failed": "failed"}
"""What became of an attempt that left the scores of an earlier one."""
_RULE = re.compile(r"  [a-z_]+: [0-9]")
"""A line of a message that says how many rows broke a rule."""
_RULES = 2
_RARE = 0.05
"""Chance that is called rare where no limit is set: that of the noise floor."""


class Said(NamedTuple):
    """The sentence and the one after it; ``emphasis`` is what the first one is about."""

    sentence: str
    second: str = ""
    emphasis: str | None = None


class About(NamedTuple):
    """What a sentence is made of; ``score`` is None where none speaks."""

    batch: Batch
    choice: Choice
    score: ScoreTexts | None
    beside: Mapping[str, Any]

    def day(self, batch: str) -> str:
        """Another batch in words."""
        return batch_text(batch, beside=self.batch.name)

    @property
    def noun(self) -> str:
        """What the batch is called."""
        return "day" if is_day(self.batch.name) else "batch"


def said_of(about: About) -> Said:
    """What there is to say."""
    if about.score is None and about.choice.state in _NEED_A_SCORE:
        said = Said("No score of groups has a value.", "The reasons stand with the scores.")
    else:
        said = _SENTENCES[about.choice.state](about)
    if about.batch.is_scored and about.batch.state in _NOT_DONE:
        last = f"The last attempt {_NOT_DONE[about.batch.state]}; this is of the one before."
        said = said._replace(second=_joined(said.second, last))
    return said


def _limits(score: ScoreTexts, noun: str) -> str:
    """The limit and what is usual: the begin of a sentence."""
    texts, said = score.texts, []
    if "limit" in texts:
        said.append(f"the limit is {texts['limit']}")
    if "usual" in texts:
        when = "on a usual day it is" if noun == "day" else "usually it is"
        said.append(f"{when} {texts['usual']}")
    return ", and ".join(said)


def _limits_sentence(score: ScoreTexts, noun: str) -> str:
    """The same as a sentence; without a limit, where the settings of then were not kept."""
    return f"{capital(_limits(score, noun))}." if _limits(score, noun) else ""


def _interval(score: ScoreTexts) -> str:
    texts = score.texts
    if "lower" not in texts or "upper" not in texts:
        return ""
    return f"between {texts['lower']} and {texts['upper']}"


def _scored(about: About) -> ScoreTexts:
    assert about.score is not None
    return about.score


def _new_breach(about: About) -> Said:
    score = _scored(about)
    if score.row["value"] is None:
        return Said(f"{score.title} has no value, which counts as a breach.", score.small)
    second = [_limits_sentence(score, about.noun)]
    if interval := _interval(score):
        second.append(f"Allowing for chance, it lies {interval}{_how_sure(score)}.")
    return Said(f"{score.sentence()}.", _joined(*second), score.texts["value"])


def _joined(*said: str) -> str:
    return " ".join(filter(None, said))


def _how_sure(score: ScoreTexts) -> str:
    """Whether the whole interval is beyond the limit: where points decide, it may not be."""
    least, most = score.row["threshold_min"], score.row["threshold_max"]
    if least is None and most is None:
        return ""
    sure = score.row["upper"] < least if least is not None else score.row["lower"] > most
    return ": clearly a breach" if sure else ", so it may be within"


def _breach(about: About) -> Said:
    score, beside = _scored(about), about.beside
    if score.row["value"] is None:
        return Said(f"{score.title} still has no value, which counts as a breach.", score.small)
    opened = score.row["opened"]
    said = []
    if opened and opened != about.batch.name:
        said.append(f"Since {about.day(opened)}")
        worst = score.text(beside.get("worst_value"))
        if beside.get("worst_batch") and worst != score.texts["value"]:
            said.append(
                f"the worst {about.noun} was {about.day(beside['worst_batch'])} with {worst}"
            )
    since = f"{'; '.join(said)}." if said else ""
    before = score.names.group(score.row["attribute"], beside.get("loser_before"))
    # Without an alert that is told of, nobody knows here whether it was so before.
    still = before is not None and before == score.loser
    former = "" if still or before is None else f"Before, it was {before.name} who got least."
    return Said(
        f"{score.sentence(still=still)}.",
        _joined(since, former, _limits_sentence(score, about.noun)),
        score.texts["value"],
    )


def _reversal(about: About) -> Said:
    score = _scored(about)
    former = score.names.group(score.row["attribute"], score.row.get("former_loser"))
    until = (
        f"Until then it was {former.name} who got least."
        if former
        else "Usually it is another group that gets least."
    )
    limit, status = score.texts.get("limit"), score.row["status"]
    within = ""
    if limit:
        within = {
            "breach": f"The limit is {limit}: a breach.",
            "ok": f"Within the limit of {limit}.",
        }.get(status, f"The limit is {limit}; which side it is on cannot be told.")
    if "value" not in score.texts:
        return Said(f"{score.title} has no value, and another group loses.", until)
    sentence = f"{score.sentence(lead='Now')}."
    return Said(sentence, _joined(until, within), score.texts["value"])


def _gated(about: About) -> Said:
    closed = [f"{capital(gate['text'])}." for gate in about.batch.gates if not gate["passed"]]
    rest = "The scores are shown without verdicts."
    return Said(
        f"The scores of this {about.noun} are not judged: its data look wrong.",
        " ".join([*closed[:2], rest]),
    )


def _composition(about: About) -> Said:
    score = _scored(about)
    against = score.row["against_chance"]
    second = "What groups differ in is not their order"
    if against is not None:
        second += f": beside the same lists in random order it is {score.text(against)}"
    return Said(
        f"{score.sentence()}, as in a random order of the same lists.",
        _joined(f"{second}.", _limits_sentence(score, about.noun), "No breach."),
        score.texts["value"],
    )


def _insufficient(about: About) -> Said:
    score = _scored(about)
    cause, _, name = (score.row["status_reason"] or "").partition(": ")
    group = score.names.group(score.row["attribute"], name or None)
    if cause == MISSING_GROUP and group:
        of = attribute_text(score.row["attribute"])
        return Said(
            f"Not one row of {group.name} came; usually there are some.",
            f"No score of {of} is judged: it would say nothing of them.",
        )
    if score.row["value"] is None:
        return Said(f"{score.title} has no value, so it is not judged.", _why_none(score))
    value, limits = score.texts["value"], _limits_sentence(score, about.noun)
    if cause == Cause.INTERVAL:
        within = f"Allowing for chance, it lies {_interval(score)}."
        return Said(
            f"{score.sentence()}, which may be within the limit.",
            _joined(within, limits, "Too few lists to tell."),
            value,
        )
    if cause == Cause.NOISE:
        return Said(
            f"{score.sentence()}, as chance alone often gives.",
            _joined(limits, "Too few lists to tell it from chance."),
            value,
        )
    few = f"{opening(group)}: {few_text(cause)}." if group else f"{capital(few_text(cause))}."
    return Said(f"{score.sentence()}, on too little data to judge.", _joined(few, limits), value)


def _why_none(score: ScoreTexts) -> str:
    return f"The reason: {score.row['reason']}." if score.row["reason"] else ""


def _undefined(about: About) -> Said:
    score = _scored(about)
    return Said("A score with a limit has no value.", f"{score.title}: {score.row['reason']}.")


def _calm(about: About) -> Said:
    score = _scored(about)
    second = "; ".join(filter(None, (score.sentence(), _limits(score, about.noun)))) + "."
    unsure = about.batch.counts["insufficient"]
    beyond = "No score is beyond its limit"
    return Said(f"{beyond}{', as far as can be told' if unsure else ''}.", second)


def _window(about: About) -> Said:
    alert = about.choice.alert or {}
    sentence = f"This {about.noun} alone is no breach, but several days together are."
    if alert["last_seen"] == about.batch.name:
        # The text of an alert is about the last batch in which it was seen.
        return Said(sentence, alert["text"].split("\n")[0])
    return Said(sentence, f"{alert['label']}, since {about.day(alert['opened'])}.")


def _no_limits(about: About) -> Said:
    score = _scored(about)
    said = [_limits_sentence(score, about.noun)]
    if interval := _interval(score):
        said.append(f"Allowing for chance, it lies {interval}.")
    if is_beyond_chance(score.row) and score.row["expected"] is not None:
        said.append(f"Chance alone gives {score.text(score.row['expected'])}.")
    said.append(
        "Whether that is good enough is for you to say: set a limit, and every coming "
        f"{about.noun} is judged by it."
    )
    return Said(f"{score.sentence()}.", _joined(*said), score.texts["value"])


def is_beyond_chance(row: Row) -> bool:
    """Whether chance alone is rarely as unfair as the score of a row."""
    return row["p_noise"] is not None and row["p_noise"] < _RARE


def _withheld(about: About) -> Said:
    return Said(
        f"The scores of this {about.noun} are kept back: they are about too few.",
        "The setting privacy.min_cell says how many are enough.",
    )


def _without_scores(sentence: str) -> Callable[[About], Said]:
    def say(about: About) -> Said:
        message, *more = about.batch.message.split("\n")
        rules = [line.strip().replace("_", " ") for line in more if _RULE.match(line)][:_RULES]
        said = [f"{capital(each).rstrip('.')}." for each in (message, "; ".join(rules)) if each]
        if about.batch.shown:
            said.append(f"The page shows {about.day(about.batch.shown)}.")
        day = batch_text(about.batch.name, beside=about.batch.name)
        return Said(sentence.format(day=day, noun=about.noun), " ".join(said))

    return say


_SENTENCES: Mapping[str, Callable[[About], Said]] = {
    "new_breach": _new_breach,
    "breach": _breach,
    "reversal": _reversal,
    "gated": _gated,
    "composition": _composition,
    "insufficient": _insufficient,
    "undefined": _undefined,
    "window": _window,
    "calm": _calm,
    "no_limits": _no_limits,
    "withheld": _withheld,
    "refused": _without_scores("This {noun} has no scores: its data broke the contract."),
    "no_data": _without_scores("No data came for {day}."),
    "failed": _without_scores("The run of {day} failed."),
}
_NEED_A_SCORE = {
    *("new_breach", "breach", "reversal", "composition"),
    *("insufficient", "undefined", "calm", "no_limits"),
}
