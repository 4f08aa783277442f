"""Proposed limits as lines of the settings, with the reasons as comments: all of it can be copied.

Not here: where the limits come from (``history.suggestions``).
"""

from collections.abc import Sequence
from textwrap import wrap

from rich.console import Console

from pipeline.formatting.numbers import counted, number
from pipeline.history.suggestions import (
    FIRST,
    HEAD,
    Suggestion,
    limit_yaml,
    loosest,
    ranked_attributes,
)
from pipeline.settings.labels import JOIN
from pipeline.terminal.printing import harmless


def print_suggestions(
    out: Console, found: Sequence[Suggestion], *, every: bool = False, thresholds: bool = False
) -> None:
    """Print proposals for the scores to begin with, or ``every`` one.

    ``thresholds``: the settings have some already.
    """
    width = min(out.width, 100)

    def say(text: str, indent: str = "") -> None:
        for line in wrap(harmless(text), width - len(indent) - 2, break_long_words=False):
            out.print(f"{indent}# {line}", style="dim", markup=False, soft_wrap=True)

    by_label: dict[str, list[Suggestion]] = {}
    for each in found:
        by_label.setdefault(each.label, []).append(each)
    first = {label for label, (one, *_) in by_label.items() if one.label.split(".")[0] in FIRST}
    shown = [label for label in by_label if every or label in (first or {*list(by_label)[:1]})]
    say("Proposals, no pass marks: what is fair enough is for you to say.")
    say(f"How far attributes usually are from chance: {_ranking(found)}.")
    if thresholds:
        say("Put the lines below the thresholds that your settings have already.")
    begun = False
    without: list[Suggestion] = []
    for label in shown:
        members = _alone(by_label[label])
        without += [each for each in members if each.limit_value is None]
        known = [each for each in members if each.limit_value is not None]
        if (chosen := loosest(known)) is None:
            continue
        if not begun:
            out.print(HEAD.strip())
            begun = True
        for each in known:
            own = "" if each.limit_value == chosen.limit_value else f" ({each.limit_value:g} alone)"
            say(f"{each.attribute}{own}: {each.reason}", "  ")
        lines = limit_yaml(chosen, [each.attribute for each in known])
        for line in lines.removeprefix(HEAD).splitlines():
            out.print(harmless(line), markup=False, soft_wrap=True)
    for each in without:
        say(f"{each.label} of {each.attribute}: {each.reason}")
    if more := len(by_label) - len(shown):
        say(f"{counted(more, 'more score')}: --all proposes limits for them too.")


def _alone(found: Sequence[Suggestion]) -> list[Suggestion]:
    """Those of single attributes; intersections have smaller groups, and looser limits."""
    return [each for each in found if JOIN not in each.attribute] or list(found)


def _ranking(found: Sequence[Suggestion]) -> str:
    """The attributes, with how far their scores usually are from chance."""
    said = [
        f"{name} {'not known' if far is None else number(far)}"
        for name, far in ranked_attributes(found).items()
    ]
    return f"{', '.join(said)}; 1 is as far as chance goes in 5 of 100 batches"
