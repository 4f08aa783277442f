"""What every score is, in numbers and words: the table score_catalogue.

Not here: the declarations it is made of (``metrics``).
"""

from collections.abc import Iterable, Iterator
from math import isfinite

import duckdb

from metrics import ScoreName, parse_score
from pipeline.settings.audit import Settings
from schemas.columns import Row
from schemas.copy import SCORE_CATALOGUE
from schemas.scores import LABEL


def score_catalogue(connection: duckdb.DuckDBPyConnection, settings: Settings) -> list[Row]:
    """Rows of the table score_catalogue: scores that the settings compute, then all others.

    Of a score that this version does not know, only its names are said.
    """
    computed = [score for measure in settings.measures for score in measure.scores()]
    rows = {score.label: _row(score) for score in computed}
    for label, metric, aggregation in connection.execute(
        f"SELECT DISTINCT {LABEL} AS label, metric, aggregation FROM history.fairness_history "
        "ORDER BY label"
    ).fetchall():
        if label not in rows:
            names = {"label": label, "metric": metric, "aggregation": aggregation}
            rows[label] = {**dict.fromkeys(SCORE_CATALOGUE.names), **names, **_known(label)}
    return list(rows.values())


def _known(label: str) -> Row:
    try:
        return _row(parse_score(label))
    except ValueError:
        return {}


def _row(score: ScoreName) -> Row:
    measure, metric = score.measure, score.measure.metric
    return {
        "label": score.label,
        "metric": measure.label,
        "aggregation": score.aggregation.name if score.aggregation else None,
        "family": metric.family.name,
        "title": metric.title,
        "plain": score.plain,
        "sentence": score.said,
        "unit": score.unit,
        "formula": ", ".join(_formulas(score)),
        "range_low": _finite(score.range.low),
        "range_high": _finite(score.range.high),
        "fairest": score.fairest,
        "direction": score.alarm,
        "source": metric.source,
        "needs": _joined(measure.columns),
    }


def _formulas(score: ScoreName) -> Iterator[str]:
    """The formula of the score, then that of the value V of a group."""
    metric = score.measure.metric
    if score.aggregation:
        yield score.aggregation.formula
    if metric.per_group:
        yield f"V = {metric.formula}"
    elif not score.aggregation:
        yield metric.formula


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _joined(names: Iterable[str]) -> str | None:
    return ", ".join(sorted(names)) or None
