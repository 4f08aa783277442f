"""What an alert says: what happened, how sure that is, since when, who loses, where to look.

Not here: what is found (``findings``), and how a text is laid out where it is shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from metrics import parse_score
from pipeline.formatting.evidence import (
    apart_texts,
    chance_text,
    few_text,
    slice_counts_text,
    thin_text,
)
from pipeline.formatting.numbers import number
from pipeline.formatting.sentences import capital
from pipeline.monitoring.episodes import Episode
from pipeline.monitoring.findings import Findings
from pipeline.monitoring.missing_groups import FEWEST_QUERIES
from pipeline.monitoring.readings import Reading, unfair_side, worst_of
from pipeline.monitoring.release_changes import changed_of
from pipeline.monitoring.shift_texts import shift_lines
from pipeline.monitoring.subjects import Part, Series, Subject, is_piece
from pipeline.privacy.suppression import SLICES
from pipeline.scores.score_texts import Names, ScoreTexts
from pipeline.scores.verdicts import Basis, too_little
from pipeline.settings.audit import Settings
from pipeline.trends import ABSOLUTE, Gated
from schemas.columns import Row, literal
from schemas.judged import as_judged, group_names
from schemas.monitoring import SERIES_KEY

_SLICES_NAMED = 3  # with their values: the first ones explain most, and more is no sentence
_SHARING_NAMED = 8  # by name only
_SCORES_NAMED = 5  # a line each: an alert fits on a screen
_BATCHES_SHOWN = 30  # a month of nights
_OF_TRENDS = (
    "v_trends",
    "batch, label, value, center, group_value, against, against_center, residual, p_adjusted",
)
_IF_FEW_JOIN = (
    "Rows that join nothing have no group. Write ids alike in the log and in the item table, or "
    "deliver the item table that belongs to the log, and run the batch again.",
    "If so few are meant to join, lower gate.joined in the settings.",
)


@dataclass(frozen=True)
class Said:
    """Everything about one batch that texts of alerts may mention.

    ``scores`` are rows of fairness_history by series, ``groups`` values of groups by series
    (without aggregation) and group, ``trends`` rows of trends by series, ``changes`` rows of
    release_changes.
    """

    findings: Findings
    scores: Mapping[Series, Row]
    groups: Mapping[tuple[Series, str], Row]
    trends: Mapping[Series, Row]
    gates: tuple[Gated, ...]
    changes: Sequence[Row]


def text_of(episode: Episode, said: Said, settings: Settings) -> str:
    """What there is to say about an episode in one of its batches, in several short lines."""
    subject = episode.subject
    since = (
        "Only this batch so far."
        if episode.opened == said.findings.batch
        else f"Seen since {episode.opened}."
    )
    if subject.kind == "gate":
        return "\n".join([*_gate_lines(subject, said), since])
    if subject.kind == "night":
        return "\n".join([*_night_lines(said.findings), since])
    if subject.kind == "release":
        return "\n".join([*_release_lines(subject.part, said), since])
    if subject.kind == "missing":
        lines = [*_missing_lines(subject, said), since, *_moved_along(subject.part, said)]
        return "\n".join([*lines, *sharing(subject, said.findings)])
    # Of several scores, the one that says most speaks for all.
    series = subject.series or said.findings.scores[subject][0]
    row, trend = said.scores[series], said.trends.get(series)
    if subject.kind == "breach":
        row = as_judged(row)
    lines = [*_head(subject, series, row, said, settings), *_size(row)]
    if subject.kind == "breach":
        lines += _rests_on(series, row, said, settings)
        lines += _moved_along(subject.part, said)
        lines += _release_lines(subject.part, said)
    else:
        lines += _others(subject, said, settings)
    lines += shift_lines(trend) if subject.kind in ("shift", "improvement") and trend else []
    lines += [
        *course(episode, said.findings.batch, settings),
        since,
        *_losers(series, row, said, settings),
    ]
    if _is_whole(series) and subject.kind != "improvement":
        lines += _most_lines(subject.kind, series, row, said, settings)
    return "\n".join([*lines, *sharing(subject, said.findings)])


def worst_reading(
    episode: Episode, settings: Settings, last: str | None = None
) -> tuple[str, Reading] | None:
    """The batch and the reading in which an episode's score was worst, up to batch ``last``."""
    if episode.label is None or episode.subject.kind in ("flip", "improvement"):
        return None
    is_breach = episode.subject.kind in ("breach", "window")
    threshold = settings.thresholds.get(episode.label) if is_breach else None
    readings = {
        batch: each for batch, each in episode.readings.items() if last is None or batch <= last
    }
    return worst_of(readings, episode.label, unfair_side(episode.label, threshold))


def course(episode: Episode, batch: str, settings: Settings) -> list[str]:
    """What an incident was before it became this one, and when it was at its worst."""
    lines = []
    if episode.supersedes is not None:
        former = _name(episode.subject.part.attribute, episode.former_loser, settings)
        turn = f"until then, it was {former} who got least"
        lines.append(
            f"In place of alert {episode.supersedes}: "
            f"{turn if episode.former_loser else 'it got clearly worse'}."
        )
    worst, now = worst_reading(episode, settings, batch), episode.readings.get(batch)
    if worst is not None and (now is None or worst[1].value != now.value):
        name = _name(episode.subject.part.attribute, worst[1].loser, settings)
        loser = f", {name} worst off" if worst[1].loser else ""
        lines.append(f"Worst so far in {worst[0]}: {measured(worst[1])}{loser}.")
    return lines


def _rests_on(series: Series, row: Row, said: Said, settings: Settings) -> list[str]:
    """What chance alone gives, who is not judged, and what slices say by themselves."""
    thin = group_names(row.get("thin_groups"))
    held = {name: said.groups.get((series.values, name)) for name in thin}
    bases = [_basis(name, each) for name, each in held.items() if each is not None]
    few = too_little(parse_score(series.label).measure, settings, bases)
    why = {name: few_text(cause.value, count) for name, (cause, count) in few.items()}
    lines = [chance_text({**row, "status": "breach"}), thin_text(row, why), _by_slice(series, said)]
    return [line for line in lines if line]


def _basis(name: str, row: Row) -> Basis:
    effective = row.get("effective_queries")
    lists, queries, rows, relevant = (
        row[each] or 0 for each in ("lists", "queries", "n", "relevant")
    )
    return Basis(name, lists, queries, rows, relevant, inf if effective is None else effective)


def _by_slice(series: Series, said: Said) -> str:
    """The verdicts of slices by themselves, and where they and the whole batch disagree."""
    # By the verdicts: statuses may still be those of gates as they were.
    verdicts = {key: {**row, "status": row["verdict"]} for key, row in said.scores.items()}
    whole = verdicts.get(series.whole)
    slices = [
        row
        for key, row in verdicts.items()
        if key.whole == series.whole
        and key != series.whole
        # Of a slice, what the other slices of its column say.
        and (_is_whole(series) or key.slice == series.slice)
    ]
    apart = [] if whole is None else list(apart_texts(whole, slices))
    counts = slice_counts_text(slices) if _is_whole(series) else ""
    told = "; ".join(filter(None, (counts, *apart)))
    return f"{SLICES}{told}." if told else ""


def query_of(episode: Episode, said: Said) -> str:
    """A query of the published copy that shows the scores over their last batches."""
    kind, part, series = episode.subject
    limit = _BATCHES_SHOWN
    wanted = [*zip(SERIES_KEY, episode.subject.key, strict=True)]
    if kind == "gate":
        wanted = [("gate", series.metric if series else None), ("attribute", part.attribute)]
    where = " AND ".join(f"{name} {_is(value)}" for name, value in wanted)
    if kind == "night":
        return (
            "SELECT batch, state, message\nFROM v_coverage\nWHERE NOT scored\n"
            f"ORDER BY batch DESC\nLIMIT {limit}"
        )
    if kind == "release":
        return f"FROM v_release_changes\nWHERE batch {_is(episode.subject.key[3])}"
    if kind == "missing":
        return _query_of_groups(part, literal(episode.subject.key[3] or ""))
    if series is None:
        scores = said.findings.scores[episode.subject][:_SCORES_NAMED]
        where = " AND ".join(f"{name} {_is(value)}" for name, value in part._asdict().items())
        where += f"\nAND label IN ({', '.join(literal(each.label) for each in scores)})"
        limit *= len(scores)
    table, columns = {
        "gate": ("v_gates", "batch, value, usual, allowed, passed, text"),
        "breach": (
            "v_history",
            "batch, judged_value, judged_lower, judged_upper, status, judged_worst_group, "
            "judged_best_group",
        ),
        "window": (
            "v_windows",
            "batch, days, judged_value, judged_lower, judged_upper, status, judged_worst_group, "
            "days_used",
        ),
        "flip": ("v_history", "batch, label, value, lower, upper, worst_group, best_group"),
        "shift": _OF_TRENDS,
        "improvement": _OF_TRENDS,
    }[kind]
    order = "batch DESC" if series else "batch DESC, label"
    order += ", days" if kind == "window" else ""
    return f"SELECT {columns}\nFROM {table}\nWHERE {where}\nORDER BY {order}\nLIMIT {limit}"


def _query_of_groups(part: Part, group: str) -> str:
    """A query of the groups that the last batches have, and of the rows of one of them."""
    return (
        f"SELECT batch, coalesce(max(n) FILTER (group_value = {group}), 0) AS rows_of_it,\n"
        "  list(DISTINCT group_value ORDER BY group_value) AS groups_there\n"
        f"FROM v_groups\nWHERE slice {_is(part.slice)} AND attribute {_is(part.attribute)}\n"
        f"GROUP BY batch\nORDER BY batch DESC\nLIMIT {_BATCHES_SHOWN}"
    )


def _is(value: str | None) -> str:
    return "IS NULL" if value is None else f"= {literal(value)}"


def measured(reading: Reading) -> str:
    """A reading and its interval."""
    value = "none" if reading.value is None else number(reading.value)
    return value + _between({"lower": reading.lower, "upper": reading.upper})


def about(subject: Subject) -> str:
    """The attribute and slice of a subject, after the name of a score."""
    of = f" of {subject.part.attribute}" if subject.part.attribute else ""
    return f"{of}, {subject.part.place}"


def valued(row: Row) -> str:
    """A score, or why it has no value, and its interval."""
    value = f"none ({row['reason']})" if row.get("value") is None else number(row["value"])
    return value + _between(row)


def _between(row: Row) -> str:
    if row["lower"] is None or row["upper"] is None:
        return ""
    return f" [{number(row['lower'])}, {number(row['upper'])}]"


def _is_whole(series: Series) -> bool:
    return series.part.is_whole


def _head(subject: Subject, series: Series, row: Row, said: Said, settings: Settings) -> list[str]:
    """What the score says, and below it the same as small print."""
    score = score_texts(series, row, settings)
    small = f"{score.small} ({series.label})."
    if subject.kind == "breach":
        return [f"{capital(said_of(score))}; {limit_text(score)}.", small]
    more = len(said.findings.scores[subject]) - 1
    now = f"{said_of(score)}{_usual(subject.kind, series, row, said, settings)}"
    return [f"{now}{f'; {more} more' if more else ''}.", small]


def score_texts(series: Series, row: Row, settings: Settings) -> ScoreTexts:
    """A score in words, with the limit that it is held to now."""
    names = dict(zip(SERIES_KEY, series, strict=True))
    return ScoreTexts.as_limited_now({**row, **names, "label": series.label}, settings)


def said_of(score: ScoreTexts) -> str:
    """The sentence of a score, or why it has no value; without a full stop."""
    if score.row["value"] is None:
        return f"{score.title} has no value ({score.row['reason']})"
    return score.sentence()


def limit_text(score: ScoreTexts) -> str:
    """The limit; where settings have changed since, and ask for less, only that it was beyond."""
    threshold, value = score.limit, score.row["value"]
    if threshold is None:
        return "that was beyond its limit"
    least = score.row["threshold_min"] is not None
    within = value is not None and (value >= threshold if least else value <= threshold)
    return "that was beyond its limit" if within else f"the limit is {score.texts['limit']}"


def _usual(kind: str, series: Series, row: Row, said: Said, settings: Settings) -> str:
    if kind in ("shift", "improvement"):
        score = score_texts(series, row, settings)
        return f", usually {score.text(said.trends[series]['center'])}"
    return f"; usually {_name(series.attribute, said.findings.usual[series], settings)} got least"


def _name(attribute: str | None, group: str | None, settings: Settings) -> str:
    named = Names.of(settings).group(attribute, group)
    return named.name if named else "nobody"


def _size(row: Row) -> list[str]:
    queries = "" if row["queries"] is None else f"{row['queries']:,} queries, "
    return [f"From {queries}{row['lists']:,} lists, {row['rows']:,} rows."]


def _others(subject: Subject, said: Said, settings: Settings) -> list[str]:
    """The other scores that shifted or flipped, most significant first."""
    scores = said.findings.scores[subject]
    lines = [
        f"Also {each.label}: {valued(said.scores[each])}"
        f"{_usual(subject.kind, each, said.scores[each], said, settings)}."
        for each in scores[1:_SCORES_NAMED]
    ]
    if len(scores) > _SCORES_NAMED:
        lines.append(f"And {len(scores) - _SCORES_NAMED} more.")
    verb = {
        "shift": "shifted",
        "flip": "have another loser than usually",
        "improvement": "are fairer than usually",
    }[subject.kind]
    return [*lines, f"In all, {_of_followed(subject, said)} {verb}."]


def _moved_along(part: Part, said: Said) -> list[str]:
    """What else moved where a score breaches, and has no alert of its own for that."""
    lines = []
    for kind, verb in (("shift", "shifted"), ("flip", "have another loser than usually")):
        subject = Subject(kind, part)
        if subject in said.findings.found:
            lines.append(f"With it, {_of_followed(subject, said)} {verb}.")
    return lines


def _of_followed(subject: Subject, said: Said) -> str:
    about = f" of {subject.part.attribute}" if subject.part.attribute else " without groups"
    shown, told = len(said.findings.scores[subject]), said.findings.tested[subject]
    return f"{shown} of {told} followed scores{about}"


def _losers(series: Series, row: Row, said: Said, settings: Settings) -> list[str]:
    parts = []
    for word, group in (("Worst off", row["worst_group"]), ("best off", row["best_group"])):
        found = said.groups.get((series.values, group)) if group else None
        if found is None:
            continue
        value = "" if found["value"] is None else f" {valued(found)}"
        name = _name(series.attribute, group, settings)
        parts.append(f"{word}: {name}{value} ({found['n']:,} rows)")
    return [f"{'; '.join(parts)}."] if parts else []


def _reference(kind: str, series: Series, said: Said, settings: Settings) -> float | None:
    """What a series is compared with: the value that is wanted, or its own usual one."""
    if kind == "breach":
        threshold = settings.thresholds.get(series.label)
        if threshold is None:
            return None
        return threshold.max if threshold.min is None else threshold.min
    trend = said.trends.get(series)
    return trend["center"] if trend else None


def _most_lines(kind: str, series: Series, row: Row, said: Said, settings: Settings) -> list[str]:
    """Slices that contribute most: by share of rows times distance to the unfair side."""
    unfair = 1 if parse_score(series.label).alarm == "high" else -1
    weights, values = {}, {}
    for key, row_of_slice in said.scores.items():
        each = as_judged(row_of_slice) if kind == "breach" else row_of_slice
        reference = _reference(kind, key, said, settings)
        if key == series or key.whole != series or each["value"] is None or reference is None:
            continue
        weights[key] = each["rows"] * unfair * (each["value"] - reference)
        values[key] = each["value"]
    heaviest = sorted(weights, key=lambda key: (-weights[key], key.slice, key.slice_value))
    named = ", ".join(
        f"{key.part.place} {number(values[key])} "
        f"({said.scores[key]['rows'] / row['rows']:.0%} of rows)"
        for key in heaviest[:_SLICES_NAMED]
        if weights[key] > 0
    )
    return [f"Slices that contribute most: {named}."] if named else []


def sharing(subject: Subject, findings: Findings) -> list[str]:
    """Slices and intersections that have the same, and no alert of their own for it."""
    kind, part, _ = subject
    shared = [
        other.part
        for other in findings.covered
        if other.kind == kind and other.part.within(part) and _is_same(other, subject)
    ]
    names = [
        each.place
        if each.attribute == part.attribute
        else f"{each.attribute}{'' if each[:2] == part[:2] else ' of ' + each.place}"
        for each in sorted({*shared}, key=lambda each: (each.attribute != part.attribute, each))
    ]
    if not names:
        return []
    more = f" and {len(names) - _SHARING_NAMED} more" if len(names) > _SHARING_NAMED else ""
    return [f"The same in {', '.join(names[:_SHARING_NAMED])}{more}."]


def _is_same(other: Subject, subject: Subject) -> bool:
    """Whether what is found of a slice or an intersection is the same score, or group."""
    if subject.kind == "missing":
        return is_piece(other, subject)
    if subject.series is None:
        return True
    return other.series is not None and other.series.whole == subject.series


def _missing_lines(subject: Subject, said: Said) -> list[str]:
    usual, (*_, attribute, group, _) = said.findings.missing[subject], subject.key
    return [
        f"Group {group} of {attribute} is missing: no row in the whole batch, usually "
        f"{usual.rows:,.0f} rows in {usual.queries:,.0f} queries.",
        f"Last there in {usual.last}; in {usual.held} of the {usual.baseline} batches up to that "
        f"one, at least {FEWEST_QUERIES} queries held it.",
        f"So no score of {attribute} is ok: it would say nothing of {group}.",
        f"Look at what is delivered: the rows of {group} in the logs, and the values of "
        f"{attribute} in the item table or the logs.",
        f"If there is no {group} from now on, mark a release with the first batch without it.",
    ]


NO_SCORES = {
    "missing": "nobody ran it",
    "no_data": "no rows were delivered",
    "refused": "what was delivered was refused",
    "failed": "its run failed",
}
"""Why a batch has no scores, by what became of the last attempt at it."""


def _night_lines(night: Findings) -> list[str]:
    return [
        f"{night.batch} has no scores: {NO_SCORES[night.absence or 'missing']}.",
        "What was shown on it is not audited, and nobody can say whether it was fair.",
        f"`evenrank run --batch {night.batch}` audits it, once its logs are there.",
    ]


def _release_lines(part: Part, said: Said) -> list[str]:
    """What a release that begins with the batch changed for the groups of an attribute."""
    rows = changed_of(said.changes, part)
    if not rows:
        return []
    said_of = [_changed(row) for row in rows]
    about = f"The release of {said.findings.batch} changed {part.attribute} beyond chance"
    lines = [
        f"{about}: {said_of[0]}.",
        *(f"Also {each}." for each in said_of[1:_SCORES_NAMED]),
        f"Compared with {rows[0]['batch_before']}, by the queries of both.",
    ]
    if len(rows) > _SCORES_NAMED:
        lines.insert(-1, f"And {len(rows) - _SCORES_NAMED} more.")
    return lines


def _changed(row: Row) -> str:
    then, now = (number(row[name]) for name in ("against_before", "against_after"))
    means = "times that of the others" if row["is_ratio"] else "more than the others"
    change = f"{row['change']:+.3g}{_between(row)}"
    return f"{row['metric']} of {row['group_value']} was {then} {means}, now {now} ({change})"


def _gate_lines(subject: Subject, said: Said) -> list[str]:
    gate = next(
        each
        for each in said.gates
        if subject.series == Series(*subject.part, each.gate, None)
        and subject.part.attribute == each.attribute
    )
    return [
        f"Gate {gate.gate}: {gate.text}.",
        "So no score of the batch is judged.",
        *(
            _IF_FEW_JOIN
            if gate.gate in ABSOLUTE
            else ["If batches are meant to be like this from now on, mark a release."]
        ),
    ]
