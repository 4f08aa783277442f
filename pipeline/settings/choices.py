"""What the settings choose among metrics and scores, worked out.

Here: questions that combine settings with the catalogue.  Not here: checks of what a file says
(``audit``, ``labels``).
"""

from collections.abc import Sequence

from metrics import FAIRNESS, Measure, Metric, ScoreName, parse_measures, parse_score
from pipeline.settings.audit import Settings


def followed_scores(settings: Settings) -> dict[str, ScoreName]:
    """Scores that are followed over time, by label.

    What ``trends.scores`` names; by default the first score of each measure that has an unfair
    side, and every score with a threshold.
    """
    if settings.trends.scores is not None:
        return {label: parse_score(label) for label in settings.trends.scores}
    first = (
        next((score for score in measure.scores() if score.alarm), None)
        for measure in settings.measures
    )
    judged = map(parse_score, settings.thresholds)
    return {score.label: score for score in (*first, *judged) if score is not None}


def measures_for(
    labels: Sequence[str] = (),
    *,
    k: int | None = None,
    p: float | None = None,
    decay: float | None = None,
    denominator: str | None = None,
) -> tuple[Measure, ...]:
    """The measures that labels and families name, or the fairness metrics, parameters filled in.

    A parameter is given to every metric that takes it and does not say it in its own label.
    LabelError on a label or value that does not exist.
    """
    by_option = {"p": p, "decay": decay, "denominator": denominator}
    parameters = {name: value for name, value in by_option.items() if value is not None}

    def filled(metric: Metric, own: Measure) -> Measure:
        takes = {parameter.name: parameter.default for parameter in metric.parameters}
        given = {
            name: parameters[name] if name in parameters and value == takes[name] else value
            for name, value in own.parameters
        }
        return metric.at(own.k or (k if metric.cutoff else None), **given)

    named = [each for label in labels or (FAIRNESS.name,) for each in parse_measures(label, k)]
    return tuple(dict.fromkeys(filled(each.metric, each) for each in named))
