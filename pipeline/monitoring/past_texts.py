"""What an alert says once it is over: what was, for how long, and what came then.

Not here: what alerts say while they are open (``alert_texts``).
"""

from pipeline.monitoring.alert_texts import about, measured, worst_reading
from pipeline.monitoring.episodes import Episode
from pipeline.monitoring.readings import Reading
from pipeline.monitoring.subjects import Part
from pipeline.scores.score_texts import Names, ScoreTexts
from pipeline.scores.verdicts import beyond
from pipeline.settings.audit import Settings
from schemas.columns import Row


def past_text(episode: Episode, heir: Episode | None, settings: Settings) -> str:
    """What there is to say of an episode that is over; ``heir`` is the one that took its place."""
    batches = len(episode.seen)
    span = (
        f"in {episode.opened} only"
        if batches == 1
        else f"in {batches} batches, {episode.opened} to {episode.last_seen}"
    )
    then = f"It was over in {episode.resolved}."
    if heir is not None:
        now = heir.readings[heir.opened]
        what = f"{now.loser} was worst off instead" if heir.former_loser else "it got clearly worse"
        then = f"In {episode.resolved} {what}: alert {heir.alert}."
    return "\n".join([*_what_was(episode, settings), f"Seen {span}.", then])


def _what_was(episode: Episode, settings: Settings) -> list[str]:
    kind, part, _ = episode.subject
    *_, name, _ = episode.subject.key
    if kind == "missing":
        return [f"Group {name} of {part.attribute} had no row in the whole batch."]
    if kind == "release":
        return [f"The release of {name} changed scores of {part.attribute} beyond chance."]
    if kind == "night":
        many = len(episode.seen) > 1
        nights = f"{episode.opened} to {episode.last_seen}" if many else episode.opened
        return [f"{nights}: there were no scores, so that nobody knows whether it was fair."]
    if kind == "gate":
        on = f" on {part.attribute}" if part.attribute else ""
        return [f"Gate {name}{on} was closed, so that no score of the batch was judged."]
    worst = worst_reading(episode, settings) or next(iter(episode.readings.items()), None)
    if worst is None:
        return [f"{about(episode.subject)}: a {kind}."]
    batch, reading = worst
    told_once = kind in ("flip", "improvement")
    most = " at its worst" if len(episode.seen) > 1 and not told_once else ""
    loser = f", with {_name(part, reading.loser, settings)} worst off" if reading.loser else ""
    when = f"the days up to {batch}" if kind == "window" else batch
    score = ScoreTexts({**_nothing(part), "label": reading.label}, Names.of(settings))
    said = f"{score.title}, was {measured(reading)}{most} ({when}){loser}"
    lines = [f"{said}{_wanted(episode, reading, settings)} ({reading.label})."]
    latest = episode.readings.get(episode.last_seen)
    if latest is not None and episode.last_seen != batch:
        loser = f", with {_name(part, latest.loser, settings)} worst off" if latest.loser else ""
        lines.append(f"When last seen ({episode.last_seen}), it was {measured(latest)}{loser}.")
    return lines


def _nothing(part: Part) -> Row:
    return {**dict.fromkeys(("value", "lower", "upper")), **part._asdict()}


def _name(part: Part, group: str, settings: Settings) -> str:
    return Names.of(settings).labels.group(part.attribute or "", group)


def _wanted(episode: Episode, reading: Reading, settings: Settings) -> str:
    threshold, value = settings.thresholds.get(reading.label), reading.value
    if episode.subject.kind == "flip":
        return ", unlike usually"
    if episode.subject.kind == "shift":
        return "; it had shifted"
    if episode.subject.kind == "improvement":
        return "; it had become fairer than usual"
    if threshold is None or not (value is None or beyond(threshold, value)):
        # Settings have changed since, and want it no more.
        return "; that was beyond its limit"
    limit = threshold.min if threshold.max is None else threshold.max
    return f"; the limit was {limit:g}"
