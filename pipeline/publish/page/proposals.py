"""Limits to begin with, on the page of an audit that has none: lines to copy, and the reason.

Not here: where the limits come from (``history.suggestions``).
"""

from collections.abc import Sequence
from typing import Any

from metrics import FAIRNESS
from pipeline.formatting.sentences import attribute_text
from pipeline.history.suggestions import (
    FIRST,
    HEAD,
    Suggestion,
    limit_yaml,
    loosest,
    ranked_attributes,
    suggested,
)
from pipeline.publish.page.reading import Copy
from pipeline.settings.audit import Settings
from pipeline.settings.choices import followed_scores
from pipeline.settings.labels import JOIN


def proposals(copy: Copy, settings: Settings) -> dict[str, Any] | None:
    """Lines of the settings, their reasons, and attributes by distance from chance; None without.

    Only where no limit is set: then there is nothing else to do first.
    """
    if settings.thresholds:
        return None
    scores = {
        label: score
        for label, score in followed_scores(settings).items()
        if score.measure.metric.family is FAIRNESS
    }
    found = suggested(copy.of_whole_batches(list(scores)), scores)
    by_label: dict[str, list[Suggestion]] = {}
    for each in found:
        if each.limit_value is not None and JOIN not in each.attribute:
            by_label.setdefault(each.label, []).append(each)
    first = [label for label in by_label if scores[label].measure.metric.name in FIRST]
    parts = [part for label in first or [*by_label][:1] if (part := _limit(by_label[label]))]
    if not parts:
        return None
    distances = ranked_attributes(found)
    far = [attribute_text(name) for name, distance in distances.items() if distance is not None]
    return {
        "yaml": HEAD + "".join(yaml.removeprefix(HEAD) for yaml, _ in parts),
        "reasons": [reason for _, reason in parts],
        "attributes": far,
    }


def _limit(found: Sequence[Suggestion]) -> tuple[str, str] | None:
    chosen = loosest(found)
    if chosen is None:
        return None
    lines = limit_yaml(chosen, [each.attribute for each in found])
    which = f", by {chosen.attribute}, which asks for most room" if len(found) > 1 else ""
    return lines, f"{chosen.label}{which}: {chosen.reason}"
