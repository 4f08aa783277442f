"""What a score says of groups, as a sentence.

Here: the words of a metric and of an aggregation, put together with names of groups and texts of
numbers that come as arguments.  Not here: which score speaks (``publish.conclusions``), and texts
about chance and evidence (``evidence``).
"""

from typing import NamedTuple

from metrics import GroupMetric, ScoreName


class Group(NamedTuple):
    """A group as it is stored, and as people call it."""

    value: str
    name: str


class Ends(NamedTuple):
    """The groups with the lowest and the highest value; None where nobody knows, or all agree."""

    low: Group | None
    high: Group | None


def opening(group: Group) -> str:
    """A group's name at the start of a sentence: a label gets a capital, a value stays itself.

    >>> opening(Group("F", "women")), opening(Group("iphone", "iphone"))
    ('Women', 'iphone')
    """
    return group.name if group.name == group.value else capital(group.name)


def capital(text: str) -> str:
    """``text`` with a capital letter at its start."""
    return text[:1].upper() + text[1:]


def ends_of(
    score: ScoreName, worst: Group | None, best: Group | None, *, top_is_good: bool
) -> Ends:
    """Which of the worst and the best group has the lowest value.

    A group is worst off with the lowest value, unless a high one is bad to have; where the top of a
    list is the bad outcome, it is the other way round.
    """
    metric = score.measure.metric
    better_high = metric.higher_is_better if isinstance(metric, GroupMetric) else True
    return Ends(worst, best) if better_high == top_is_good else Ends(best, worst)


def score_sentence(
    score: ScoreName, value: str, ends: Ends, *, still: bool = False, lead: str = ""
) -> str:
    """What a score says, without a full stop; ``value`` is the text of its value.

    ``still`` says so of the group that it begins with; ``lead`` is a word to begin with instead.

    >>> from metrics import parse_score
    >>> ends = Ends(Group("F", "women"), Group("M", "men"))
    >>> score_sentence(parse_score("EXP.MinMaxRatio"), "72%", ends)
    'Women got 72% of the exposure per item that men got'
    >>> score_sentence(parse_score("NDKL"), "0.350", ends)
    'The mix of groups on top differed by 0.350 from that of whole lists (0: not at all)'
    >>> score_sentence(parse_score("EXP.MinMaxRatio"), "100%", Ends(None, None))
    'The exposure ratio was 100%'
    """
    said, groups = score.said, ends._asdict()
    if any(f"{{{name}}}" in said and group is None for name, group in groups.items()):
        return capital(f"{lead} the {score.plain} was {value}".strip())
    names = {name: group.name for name, group in groups.items() if group is not None}
    for name, group in groups.items():
        if group is not None and (rest := said.removeprefix(f"{{{name}}} ")) != said:
            first = f"{lead} {group.name}" if lead else opening(group)
            return f"{first}{' still' if still else ''} {rest.format(value=value, **names)}"
    return capital(f"{lead} {said.format(value=value, **names)}".strip())


def score_title(score: ScoreName, attribute: str | None, part: str) -> str:
    """The plain name of a score with its attribute and, after a comma, the part of the batch.

    >>> from metrics import parse_score
    >>> score_title(parse_score("EXP.MinMaxRatio"), "gender", "all requests")
    'Exposure ratio of gender, all requests'
    """
    of = f" of {attribute_text(attribute)}" if attribute else ""
    return capital(f"{score.plain}{of}{f', {part}' if part else ''}")


def attribute_text(attribute: str) -> str:
    """An attribute, or an intersection of several, in words.

    >>> attribute_text("gender*region")
    'gender and region'
    """
    return " and ".join(attribute.split("*"))
