"""Limits that the history and chance leave room for, with the reason for each: proposals, no more.

Nobody can compute what is fair enough.  What can be said is where a limit would only be noise: a
limit that chance alone passes, or an ordinary batch, says nothing when it is passed.  So each
proposal is the strictest limit, in two digits, that leaves room for

- what chance alone does: the noise limit, which it passes in 5 of 100 batches;
- ordinary batches: the median less (or and) three robust standard deviations, 1.4826 times the
  median distance from it, which a few bad batches do not move;
- the batches there were: at most one in twenty lies beyond it.

With fewer than seven batches nobody knows what is ordinary.  Then a ratio of groups gets the
convention of four fifths, called by that name, if chance leaves room for it.

Not here: thresholds that are set (``settings``), and how proposals are printed (``terminal``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from math import inf, isfinite
from statistics import median

import yaml

from metrics import FAIRNESS, WHOLE, ScoreName
from pipeline.formatting.numbers import counted, number
from pipeline.history.manifest import manifest
from pipeline.history.queries import labelled
from pipeline.history.series import Row, label_of
from pipeline.settings.audit import Settings
from pipeline.settings.choices import followed_scores
from schemas.judged import as_judged

FIRST = ("EXP", "ARP")
"""Metrics to begin with: who is seen how much, and who stands above whom.  Every further limit is
one more that chance passes some day."""
HEAD = "thresholds:\n"
"""The first of the lines that ``limit_yaml`` gives."""
LEAST = 7
"""Batches from which on a limit can be taken from them."""
MOST = 28
"""Batches that count: the newest ones."""
FOUR_FIFTHS = 0.8
"""A convention of hiring in the United States (29 CFR 1607.4 D), where selection rates below four
fifths of the highest one are looked into.  Not a law, and not about rankings."""
_REACH = 3 * 1.4826
_CONVENTION = f"four fifths ({FOUR_FIFTHS}), a convention and not a law"
_BEYOND = 20  # one batch in so many may lie beyond a limit


@dataclass(frozen=True)
class Suggestion:
    """A limit for one score of one attribute, of whole batches; no ``limit_value`` where none can
    be proposed, which the ``reason`` explains.

    ``distance``: how far the score usually is from what chance gives, to the unfair side, in parts
    of how far chance goes; None where that is not known.
    """

    label: str
    attribute: str
    limit_side: str
    limit_value: float | None
    reason: str
    distance: float | None
    slices: tuple[str, ...] = (WHOLE,)

    @property
    def yaml(self) -> str | None:
        """The lines that set this limit, by itself; None without one."""
        if self.limit_value is None:
            return None
        return limit_yaml(self, [self.attribute])


def limit_yaml(suggestion: Suggestion, attributes: Sequence[str]) -> str:
    """The lines of the settings that set a limit for some attributes."""
    limit = {
        suggestion.limit_side: suggestion.limit_value,
        "attributes": list(attributes),
        "slices": list(suggestion.slices),
    }
    text = yaml.safe_dump(
        {"thresholds": {suggestion.label: limit}},
        default_flow_style=None,
        sort_keys=False,
        allow_unicode=True,
        width=inf,
    )
    return str(text)


def loosest(found: Iterable[Suggestion]) -> Suggestion | None:
    """Of proposals for one score the one that leaves room for all of them; None without a limit.

    A score has one limit for all the attributes it is set for.
    """
    known = [each for each in found if each.limit_value is not None]
    if not known:
        return None
    low = known[0].limit_side == "min"
    return (min if low else max)(known, key=lambda each: each.limit_value or 0.0)


def suggestions(settings: Settings) -> list[Suggestion]:
    """Proposals for the fairness scores that have no threshold yet, of whole batches.

    Of each metric the first score with an unfair side; attributes that are usually furthest from
    chance come first.
    """
    scores = {
        label: score
        for label, score in followed_scores(settings).items()
        if label not in settings.thresholds and score.measure.metric.family is FAIRNESS
    }
    gated = {batch for batch, row in manifest(settings).items() if row.gated}
    rows = labelled(
        settings,
        "slice = ? AND attribute IS NOT NULL AND list_contains(?, label) "
        "AND NOT list_contains(?, batch)",
        [WHOLE, list(scores), sorted(gated)],
    )
    return suggested(rows, scores)


def suggested(rows: Iterable[Row], scores: Mapping[str, ScoreName]) -> list[Suggestion]:
    """Proposals from ``rows`` of fairness_history, which are of whole batches and of ``scores``."""
    rows_by_series: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(map(as_judged, rows), key=lambda row: row["batch"]):
        rows_by_series.setdefault((label_of(row), row["attribute"]), []).append(row)
    found = [
        _suggestion(scores[label], attribute, series[-MOST:])
        for (label, attribute), series in rows_by_series.items()
    ]
    furthest = list(ranked_attributes(found))
    order = list(scores)
    return sorted(found, key=lambda each: (furthest.index(each.attribute), order.index(each.label)))


def ranked_attributes(found: Iterable[Suggestion]) -> dict[str, float | None]:
    """How far the scores of each attribute usually are from chance, the furthest one first."""
    distances: dict[str, list[float]] = {}
    for each in found:
        known = distances.setdefault(each.attribute, [])
        known += [] if each.distance is None else [each.distance]
    middle = {name: median(known) if known else None for name, known in distances.items()}
    far = {name: -inf if value is None else value for name, value in middle.items()}
    return {name: middle[name] for name in sorted(middle, key=lambda name: (-far[name], name))}


def _suggestion(score: ScoreName, attribute: str, rows: Sequence[Row]) -> Suggestion:
    low = score.alarm == "low"
    known = [row for row in rows if row["value"] is not None]
    limits = [row["noise_limit"] for row in known if row["noise_limit"] is not None]
    chance = median(limits) if limits else None
    value, reason = (
        _from_history(score, known, chance)
        if len(known) >= LEAST
        else _from_convention(score, known, chance)
    )
    distances = [each for row in known if (each := _distance(row)) is not None]
    return Suggestion(
        score.label,
        attribute,
        "min" if low else "max",
        value,
        reason,
        median(distances) if distances else None,
    )


def _from_history(
    score: ScoreName, rows: Sequence[Row], chance: float | None
) -> tuple[float | None, str]:
    """The strictest limit that leaves room for chance and ordinary batches, and why."""
    low = score.alarm == "low"
    # On one scale, on which more is less fair.
    side = -1.0 if low else 1.0
    worst_first = sorted(rows, key=lambda row: -side * row["value"])
    values = [row["value"] for row in rows]
    usual = median(values)
    ordinary = usual + side * _REACH * median(abs(value - usual) for value in values)
    spared = len(rows) // _BEYOND
    there_were = worst_first[spared]["value"]
    candidates = [each for each in (ordinary, there_were, chance) if each is not None]
    bound = _outwards(max(candidates, key=lambda each: side * each), low=low)
    beyond = [row["batch"] for row in rows if side * row["value"] > side * bound]
    said = [
        f"In {counted(len(rows), 'batch')} usually {number(usual)}, ordinary ones "
        f"{'down' if low else 'up'} to {number(ordinary)}, the {'lowest' if low else 'highest'} "
        f"{number(worst_first[0]['value'])} ({worst_first[0]['batch']}).",
        *_by_chance(chance),
    ]
    if not (isfinite(bound) and _tells(score, bound)):
        return None, " ".join([*said, "That leaves no limit that would say anything."])
    held = f"{bound:g} leaves room for {'both' if chance is not None else 'that'}"
    said.append(f"{held}; {_beyond_text(beyond)}.")
    if convention := _beside_convention(score, bound, rows):
        said.append(convention)
    return bound, " ".join(said)


def _from_convention(
    score: ScoreName, rows: Sequence[Row], chance: float | None
) -> tuple[float | None, str]:
    """Four fifths where chance leaves room for it, while there are too few batches."""
    said = f"Not enough batches yet to take a limit from: {len(rows)} of {LEAST}."
    if not _is_ratio(score) or chance is None or chance <= FOUR_FIFTHS:
        return None, " ".join([said, *_by_chance(chance)])
    convention = f"Until then many begin with {_CONVENTION}, for which chance leaves room."
    return FOUR_FIFTHS, " ".join([said, convention, *_by_chance(chance)])


def _beside_convention(score: ScoreName, bound: float, rows: Sequence[Row]) -> str:
    """How a limit compares with the convention; nothing where there is none."""
    if not _is_ratio(score):
        return ""
    below = sum(row["value"] < FOUR_FIFTHS for row in rows)
    if bound < FOUR_FIFTHS:
        said = f"would be stricter: {below} of the {len(rows)} batches lie below it"
    else:
        said = "would be looser" if bound > FOUR_FIFTHS else "is the same"
    return f"{_CONVENTION[0].upper()}{_CONVENTION[1:]}, {said}."


def _by_chance(chance: float | None) -> list[str]:
    """What chance alone does, as a sentence; none where that is not known."""
    return [] if chance is None else [f"Chance alone passes {number(chance)} in 5 of 100 batches."]


def _beyond_text(beyond: Sequence[str]) -> str:
    if not beyond:
        return "none of these batches lies beyond it"
    if len(beyond) == 1:
        return f"1 batch lies beyond it ({beyond[0]})"
    return f"{len(beyond)} batches lie beyond it, the last one {beyond[-1]}"


def _tells(score: ScoreName, bound: float) -> bool:
    """Whether a score can lie beyond a limit at all."""
    return bound > score.range.low if score.alarm == "low" else bound < score.range.high


def _is_ratio(score: ScoreName) -> bool:
    """Whether the score is the worst group's part of the best group's."""
    way = score.aggregation
    return way is not None and way.name == "MinMaxRatio" and score.fairest == 1.0


def _distance(row: Row) -> float | None:
    value, expected, limit = row["value"], row["expected"], row["noise_limit"]
    if expected is None or limit is None or expected == limit:
        return None
    return float((expected - value) / (expected - limit))


def _outwards(value: float, *, low: bool) -> float:
    """``value`` in two digits, none of it cut off on the unfair side.

    >>> _outwards(0.9347, low=True), _outwards(0.0123, low=False), _outwards(0.9, low=True)
    (0.93, 0.013, 0.9)
    """
    if not isfinite(value):
        return -inf if low else inf
    rounding = ROUND_FLOOR if low else ROUND_CEILING
    return float(Context(prec=2, rounding=rounding).create_decimal(repr(value)))
