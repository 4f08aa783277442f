"""Whether what is found of a running incident is the same one, from what the history holds.

Not here: the rules (``readings``), and what follows from them (``episodes``).
"""

from collections.abc import Callable, Mapping, Sequence
from math import isnan, nan

from pipeline.monitoring.episodes import Episode, Turns
from pipeline.monitoring.findings import Findings
from pipeline.monitoring.followed_scores import Night
from pipeline.monitoring.inputs import Groups, Matrix
from pipeline.monitoring.readings import (
    Reading,
    are_apart,
    is_clearly_worse,
    is_reversal,
    unfair_side,
)
from pipeline.monitoring.subjects import Series, Subject
from pipeline.settings.sections import Threshold
from schemas.columns import Row
from schemas.judged import JUDGED_OF, as_judged

OF_READINGS = (*JUDGED_OF, *JUDGED_OF.values(), "judged_groups")
"""Columns of fairness_history that readings are made of."""


class ReadTurns(Turns):
    """What scores of incidents say, as the history tells it.

    ``scores_of`` gives the scores of a batch, and ``groups_of`` the groups of some metrics in it.
    """

    def __init__(
        self,
        thresholds: Mapping[str, Threshold],
        matrix: Matrix,
        nights: Sequence[Night],
        scores_of: Callable[[str], Mapping[Series, Row]],
        groups_of: Callable[[str, tuple[str, ...]], Groups],
    ) -> None:
        self._thresholds, self._matrix = thresholds, matrix
        self._nights = {matrix.batches[night.row]: night for night in nights}
        self._column = {series: at for at, series in enumerate(matrix.series)}
        self._scores_of, self._groups_of = scores_of, groups_of

    def reading(self, night: Findings, subject: Subject, label: str | None) -> Reading | None:
        """Of a breach what it is judged by; nothing of gates, groups and nights."""
        series, row = subject.series, night.windows.get(subject)
        if subject.kind in ("flip", "shift", "improvement"):
            series = self._followed(night, subject, label)
        elif subject.kind not in ("breach", "window"):
            return None
        if series is not None and row is None:
            row = self._scores_of(night.batch).get(series)
        if row is None or series is None:
            return None
        if subject.kind in ("flip", "shift", "improvement"):
            return Reading.of(series.label, row, self._moved(night, subject, series))
        row, wanted = as_judged(row), self._limit(series.label)
        far = None if wanted is None else abs((row["value"] or 0.0) - wanted) / (abs(wanted) or 1.0)
        return Reading.of(series.label, row, far)

    def _moved(self, night: Findings, subject: Subject, series: Series) -> float | None:
        trends, moved = self._nights.get(night.batch), nan
        if trends is not None:
            side = trends.said.better if subject.kind == "improvement" else trends.worse
            moved = float(side.distance[self._column[series]])
        return None if isnan(moved) else abs(moved)

    def _limit(self, label: str) -> float | None:
        threshold = self._thresholds.get(label)
        if threshold is None:
            return None
        return threshold.max if threshold.min is None else threshold.min

    def _followed(self, night: Findings, subject: Subject, label: str | None) -> Series | None:
        if label is None:
            return night.scores[subject][0]
        here = (self._matrix.series[at] for at in self._matrix.parts[subject.part])
        return next((series for series in here if series.label == label), None)

    def is_another(self, episode: Episode, night: Findings, now: Reading | None) -> bool:
        """Whether another group loses, or the score got clearly worse."""
        if now is None or not episode.readings:
            return False
        before = list(episode.readings.values())
        subject = episode.subject
        if subject.kind in ("breach", "flip"):
            series = subject.series or self._followed(night, subject, now.label)

            def apart(one: str, other: str) -> bool:
                if series is None:
                    return False
                groups = self._groups_of(night.batch, (series.metric,))
                return are_apart(groups, series.values, one, other)

            if is_reversal(before, now, follows=episode.follows, apart=apart):
                return True
        if subject.kind in ("flip", "window", "improvement"):
            return False
        threshold = self._thresholds.get(now.label)
        side = unfair_side(now.label, threshold if subject.kind == "breach" else None)
        wanted = (
            self._limit(now.label) if subject.kind == "breach" else self._usual(night, subject, now)
        )
        return is_clearly_worse(before[0], now, wanted, side)

    def _usual(self, night: Findings, subject: Subject, now: Reading) -> float | None:
        """What was expected of a score that shifted."""
        series = self._followed(night, subject, now.label)
        trends = self._nights.get(night.batch)
        if series is None or trends is None or series not in night.scores[subject]:
            return None
        center = float(trends.expected.center[self._column[series]])
        return None if isnan(center) else center
