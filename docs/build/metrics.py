"""Metrics, aggregations and reasons, from their declarations.

Not here: how the terminal lists them (``pipeline.terminal.catalogue``).
"""

from collections.abc import Sequence

import numpy as np

from docs.build.markdown import code, codes, grid
from metrics import AGGREGATIONS, FAMILIES, METRICS, Metric, Reason
from metrics.parameters import text_of
from pipeline.scores.verdicts import Cause
from pipeline.terminal.catalogue import bad_side, columns_of, values_of


def number(value: float | None) -> str:
    """A number in its shortest form, ``none`` where there is none."""
    return "none" if value is None else f"{value:g}"


def _best(metric: Metric) -> str:
    """The best value of each score that is not one of the seven aggregations."""
    if metric.usual.ways == AGGREGATIONS:
        return "groups equal"
    best = [number(score.fairest) for score in metric.usual.scores()]
    return ", ".join(dict.fromkeys(best))


def _cutoff(metric: Metric) -> str:
    return "needed" if metric.needs_cutoff else "yes" if metric.cutoff else ""


def metrics_overview() -> str:
    """One line per metric, a table per family."""
    return "\n\n".join(
        f"### {family.title}\n\n{family.text} In the settings: {code(family.name)}.\n\n"
        + _overview([metric for metric in METRICS if metric.family is family])
        for family in FAMILIES
    )


def _overview(metrics: Sequence[Metric]) -> str:
    return grid(
        ("metric", "what", "values", "range", "best", "bad when", "needs", "`@k`"),
        (
            (
                f"[{code(metric.usual.label)}](#{metric.name.lower()})",
                metric.title,
                "per group" if metric.per_group else "one",
                str(metric.range),
                _best(metric),
                bad_side(metric),
                codes(columns_of(metric)),
                _cutoff(metric),
            )
            for metric in metrics
        ),
    )


def metric_details() -> str:
    """A section per metric."""
    return "\n\n".join(_detail(metric) for metric in METRICS)


def _detail(metric: Metric) -> str:
    kind = "Value of a group" if metric.per_group else "One number"
    head = f"### {metric.name}\n\n{metric.title}. {kind}:\n\n```text\n{metric.formula}\n```\n"
    lines = [head]
    if metric.usual.ways != AGGREGATIONS:
        lines += [
            f"- {code(score.label)}: {code(score.aggregation.formula)}, in {score.range}."
            for score in metric.usual.scores()
            if score.aggregation
        ]
    if metric.parameters:
        lines.append(f"- Parameters: {codes(each.name for each in metric.parameters)}.")
    lines.append(f"- Source: {metric.source}.")
    return "\n".join(lines)


def parameters() -> str:
    """One line per parameter."""
    every = dict.fromkeys(each for metric in METRICS for each in metric.parameters)
    return grid(
        ("parameter", "values", "default", "meaning", "taken by"),
        (
            (
                code(parameter.name),
                values_of(parameter),
                code(text_of(parameter.default)),
                parameter.text,
                codes(metric.name for metric in METRICS if parameter in metric.parameters),
            )
            for parameter in sorted(every, key=lambda each: each.name)
        ),
    )


def aggregations() -> str:
    """One line per aggregation; when it is undefined is found by trying it."""
    tried = (np.zeros(2), np.array([0.0, 1.0]))
    return grid(
        ("aggregation", "formula", "fairest", "unfair when", "null when"),
        (
            (
                code(each.name),
                code(each.formula),
                number(each.fairest),
                each.alarm or "never",
                codes(dict.fromkeys(reason for v in tried if (reason := each.undefined(v)))),
            )
            for each in AGGREGATIONS
        ),
    )


def ranges() -> str:
    """Where every score can lie: metrics down, aggregations across."""
    grouped = [metric for metric in METRICS if metric.usual.ways == AGGREGATIONS]
    return grid(
        ("", "a group's value", *(each.name for each in AGGREGATIONS)),
        (
            (code(metric.name), str(metric.range), *(str(s.range) for s in metric.usual.scores()))
            for metric in grouped
        ),
    )


def reasons() -> str:
    """One line per reason of a null."""
    return grid(("reason", "meaning"), ((code(reason.value), reason.text) for reason in Reason))


def causes() -> str:
    """One line per cause of an insufficient verdict."""
    return grid(("status_reason", "meaning"), ((code(cause.value), cause.text) for cause in Cause))
