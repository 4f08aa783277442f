"""The catalogue of metrics, as data and for a terminal: all of it derived from declarations.

Not here: the declarations (``metrics``), and the pages made of them (``docs.build``).
"""

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from metrics import (
    AGGREGATIONS,
    FAMILIES,
    METRICS,
    Family,
    GroupMetric,
    Metric,
    Parameter,
    Range,
    parse_measures,
)
from metrics.parameters import text_of


def catalogue(metrics: Sequence[Metric] = METRICS) -> dict[str, Any]:
    """Families, metrics and aggregations as data."""
    return {
        "families": [
            {"name": each.name, "title": each.title, "text": each.text} for each in FAMILIES
        ],
        "metrics": [_metric(metric) for metric in metrics],
        "aggregations": [
            {
                "name": each.name,
                "formula": each.formula,
                "fairest": each.fairest,
                "alarm": each.alarm,
            }
            for each in AGGREGATIONS
        ],
    }


def _metric(metric: Metric) -> dict[str, Any]:
    single = None if metric.per_group or metric.usual.ways else next(metric.usual.scores())
    return {
        "name": metric.name,
        "title": metric.title,
        "family": metric.family.name,
        "label": metric.usual.label,
        "formula": metric.formula,
        "per_group": metric.per_group,
        "by_groups": metric.grouped,
        "higher_is_better": metric.higher_is_better if isinstance(metric, GroupMetric) else None,
        "range": _range(metric.range),
        "fairest": single.fairest if single else None,
        "alarm": single.alarm if single else None,
        "scores": {
            score.label: {
                "range": _range(score.range),
                "fairest": score.fairest,
                "alarm": score.alarm,
            }
            for score in metric.usual.scores()
        },
        "cutoff": metric.cutoff,
        "needs_cutoff": metric.needs_cutoff,
        "columns": sorted(metric.columns),
        "parameters": {
            parameter.name: {
                "default": parameter.default,
                "choices": list(parameter.choices),
                "text": parameter.text,
                "columns": {text_of(choice): column for choice, column in parameter.needs},
            }
            for parameter in metric.parameters
        },
        "source": metric.source,
    }


def _range(of: Range) -> list[float | None]:
    low, high = (end if isfinite(end) else None for end in (of.low, of.high))
    return [low, high]


def columns_of(metric: Metric) -> list[str]:
    """Optional log columns that a metric needs, those of a choice with the choice in brackets."""
    choices: dict[tuple[str, str], list[str]] = {}
    for parameter in metric.parameters:
        for choice, column in parameter.needs:
            choices.setdefault((column, parameter.name), []).append(text_of(choice))
    chosen = [f"{column} ({name}={' or '.join(of)})" for (column, name), of in choices.items()]
    return [*sorted(metric.columns), *chosen]


def values_of(parameter: Parameter) -> str:
    """What a parameter may be, in words."""
    if parameter.choices:
        return " or ".join(map(text_of, parameter.choices))
    bounds = parameter.bounds.removeprefix("is ")
    return f"a whole number, {bounds}" if parameter.whole else bounds


def bad_side(metric: Metric) -> str:
    """The bad side of a metric, in a word or two."""
    if metric.usual.ways == AGGREGATIONS:
        return "by aggregation"
    return ", ".join(dict.fromkeys(score.alarm or "never" for score in metric.usual.scores()))


def chosen(names: Sequence[str]) -> list[Metric]:
    """The metrics that names, labels and families stand for, all without any.

    LabelError names what is nearest to a name that is none.
    """
    metric_by_name = {metric.name: metric for metric in METRICS}
    chosen_metrics: list[Metric] = []
    for name in names:
        chosen_metrics += (
            [metric_by_name[name]]
            if name in metric_by_name
            else [m.metric for m in parse_measures(name)]
        )
    return list(dict.fromkeys(chosen_metrics)) or list(METRICS)


def print_overview(out: Console) -> None:
    """A line per metric, family by family."""
    for family in FAMILIES:
        out.print(f"[bold]{family.name}[/]  {escape(family.title)}")
        out.print(Padding(_overview(family), (0, 0, 1, 2)))
    out.print(escape("evenrank metrics NAME ... tells more of metrics, labels and families."))


def _overview(family: Family) -> Table:
    table = Table(box=None, pad_edge=False, show_header=True)
    for name in ("label", "what", "range", "bad when", "needs"):
        table.add_column(name, overflow="fold", no_wrap=name in ("label", "range"))
    for metric in (each for each in METRICS if each.family is family):
        cells = (
            metric.usual.label,
            metric.title,
            str(metric.range),
            bad_side(metric),
            ", ".join(columns_of(metric)),
        )
        table.add_row(*map(escape, cells))
    return table


def print_details(out: Console, metrics: Sequence[Metric]) -> None:
    """All there is to know of some metrics."""
    for metric in metrics:
        out.print(f"[bold]{escape(metric.usual.label)}[/]  {escape(metric.title)}")
        facts = Table.grid(padding=(0, 2))
        facts.add_column(style="dim")
        facts.add_column(overflow="fold")
        for name, text in _facts(metric):
            facts.add_row(name, escape(text))
        out.print(Padding(facts, (0, 0, 1, 2)))


def _facts(metric: Metric) -> Iterator[tuple[str, str]]:
    yield ("of a group" if metric.per_group else "value"), metric.formula
    yield "range", str(metric.range)
    yield "family", metric.family.name
    columns = columns_of(metric)
    if columns:
        yield "needs", ", ".join(columns)
    if metric.cutoff:
        yield "cut-off", "needed" if metric.needs_cutoff else "possible"
    for parameter in metric.parameters:
        said = f"{parameter.text} ({values_of(parameter)}; default {text_of(parameter.default)})"
        yield parameter.name, said
    for score in metric.usual.scores():
        best = "" if score.fairest is None else f", best {score.fairest:g}"
        yield "score", f"{score.label} in {score.range}{best}, bad when {score.alarm or 'never'}"
    yield "source", metric.source
