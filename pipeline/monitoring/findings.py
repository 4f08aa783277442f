"""What is wrong with a batch: breached thresholds, shifts, other losers, failed gates.

A threshold is breached by one score.  Scores of one attribute and slice move together, so shifts
and other losers are found for the attribute and slice, with the scores that show it.

Not here: groups that are gone (``missing_groups``), statistics (``trends``), and what becomes of a
finding batch after batch (``episodes``).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from metrics import WHOLE
from metrics.distributions import normal_cdf
from pipeline.monitoring.followed_scores import Night
from pipeline.monitoring.inputs import Groups, Integers, Matrix
from pipeline.monitoring.readings import are_apart
from pipeline.monitoring.subjects import Part, Series, Subject, is_piece
from pipeline.settings.sections import Trends
from pipeline.trends import Gated
from schemas.columns import Row

FLIP_SHARE = 0.8
"""Share of the baseline on which a group is worst off, to be the usual loser: with 14 batches and
two equal groups, chance alone gives it to one of them in 1 of 77 cases."""
_TELL = {
    "flip": ("breach", "missing"),
    "shift": ("breach", "flip", "missing"),
    "improvement": ("flip", "shift", "missing"),
}
"""Kinds that tell of an incident what a finding of another kind would tell again.  Without one of
its groups an attribute has other scores, and perhaps another loser."""


@dataclass(frozen=True)
class Usual:
    """What there usually is of a group that is missing: medians of queries and rows.

    ``last`` is the last batch that had it, ``held`` how many of the ``baseline`` batches up to that
    one had enough of it.
    """

    last: str
    queries: float
    rows: float
    held: int
    baseline: int


@dataclass
class Findings:
    """What one batch shows.

    ``found`` are subjects with something wrong, ``fine`` those that certainly have not.  What
    is in neither could not be told.  ``covered`` are found as well, but what they belong to has the
    same: they continue an episode and open none.  ``began`` is the batch in which a shift began,
    where that is an earlier one.

    Of shifts and flips, ``scores`` are those that show it, what says most first, and ``tested`` is
    how many could have; ``usual`` is the former loser of each flipped score.  ``missing`` says
    what there usually is of each group that is missing, and ``windows`` has the row of the shortest
    window that is a breach.  ``absence`` says why there are no scores.
    """

    batch: str
    found: set[Subject] = field(default_factory=set)
    fine: set[Subject] = field(default_factory=set)
    covered: set[Subject] = field(default_factory=set)
    began: dict[Subject, str] = field(default_factory=dict)
    scores: dict[Subject, tuple[Series, ...]] = field(default_factory=dict)
    tested: dict[Subject, int] = field(default_factory=dict)
    usual: dict[Series, str] = field(default_factory=dict)
    missing: dict[Subject, Usual] = field(default_factory=dict)
    windows: dict[Subject, Row] = field(default_factory=dict)
    absence: str | None = None


def gate_findings(into: Findings, said: Iterable[Gated]) -> None:
    """A subject for every gate and attribute that was tested."""
    for gate in said:
        subject = Subject.about("gate", Series(WHOLE, WHOLE, gate.attribute, gate.gate, None))
        (into.fine if gate.passed else into.found).add(subject)


def breach_findings(into: Findings, verdicts: Iterable[tuple[Series, str]]) -> None:
    """Breaches, score by score."""
    for series, verdict in verdicts:
        subject = Subject.about("breach", series)
        (into.fine if verdict == "ok" else into.found).add(subject)


def window_findings(
    into: Findings,
    judged: Mapping[Series, Sequence[Row]],
    breached: Callable[[str, str], Collection[Series]],
    releases: Sequence[str],
) -> None:
    """Scores that days together show to be breaches.

    ``judged`` are the rows of the windows that end with the batch, shortest first.  A score is fine
    where all its windows are ok.  What a night of the window told by itself, ``breached`` from one
    batch to another, is covered.  ``releases`` are the first batches of releases.
    """
    for series, rows in judged.items():
        subject = Subject.about("window", series)
        over = [row for row in rows if row["status"] == "breach"]
        if not over:
            # What one window cannot tell is not over because another one is ok.
            into.fine.update({subject} if all(row["status"] == "ok" for row in rows) else ())
            continue
        into.found.add(subject)
        first = over[0]["first_day"]
        within = [release for release in releases if first < release <= into.batch]
        into.windows[subject] = {**over[0], "released": within}
        if not {series, series.whole}.isdisjoint(breached(first, into.batch)):
            into.covered.add(subject)


def shift_findings(into: Findings, matrix: Matrix, night: Night, settings: Trends) -> None:
    """Discoveries of the night whose charts rise: a spike leaves the charts slowly.

    Rising means that the batch's own distance is above the slack of the CUSUM.  A shift began where
    charts say so, but with this batch if it is far out by itself.  An attribute of a slice is fine
    once none of its scores is a discovery, and together they say nothing even by themselves.
    Together is Bonferroni's: the smallest p-value times the number of scores is above the level.
    """
    _moved(into, matrix, night, "shift", settings)


def improvement_findings(into: Findings, matrix: Matrix, night: Night, settings: Trends) -> None:
    """Scores that are clearly fairer than usual, where none of the attribute and slice is worse."""
    _moved(into, matrix, night, "improvement", settings)


def _moved(into: Findings, matrix: Matrix, night: Night, kind: str, settings: Trends) -> None:
    side, news = night.worse, night.news
    found = news.found
    if kind == "improvement":
        side, news, found = night.said.better, night.gains, night.improved
    p, level = side.p_value, settings.level
    residual, known = side.deviate, ~np.isnan(p)
    found = found | (news.covered & (p <= level))
    for part, columns in matrix.parts.items():
        here = columns[known[columns]]
        if not len(here):
            continue
        subject = Subject(kind, part)
        into.tested[subject] = len(here)
        rising = here[found[here] & (residual[here] > settings.drift)]
        if len(rising):
            order = sorted(rising, key=lambda column: (p[column], -residual[column], column))
            into.found.add(subject)
            into.scores[subject] = tuple(matrix.series[column] for column in order)
            into.covered.update({subject} if news.covered[rising].all() else ())
            since = night.first + int(side.since[rising].max())
            if since < night.row and normal_cdf(-residual[rising].max()) * len(here) > level:
                into.began[subject] = matrix.batches[since]
        elif not found[here].any() and p[here].min() * len(here) > level:
            into.fine.add(subject)


def flip_findings(
    into: Findings,
    matrix: Matrix,
    night: Night,
    able: NDArray[np.bool_],
    groups_of: Callable[[tuple[str, ...]], Groups],
    settings: Trends,
) -> None:
    """Attributes of slices in which another group is worst off than usually, beyond doubt.

    The usual loser of a score is worst off on ``FLIP_SHARE`` of the baseline; it must differ from
    the new one beyond chance.  An attribute of a slice is fine where no score has another loser
    than usually.  ``groups_of`` gives the groups of some metrics in the batch.
    """
    today, known, same = _losers(matrix, night, able, settings)
    tested = (today >= 0) & (known.sum(axis=0) >= settings.least)
    differs = tested & (same <= (1 - FLIP_SHARE) * known.sum(axis=0))
    flipped = {
        column: usual
        for column in map(int, np.flatnonzero(differs))
        if (usual := _usual_loser(matrix, night, known, column)) is not None
    }
    metrics = tuple(sorted({matrix.series[column].metric for column in flipped}))
    groups = groups_of(metrics) if metrics else {}

    def is_certain(column: int) -> bool:
        values, loser = matrix.series[column].values, matrix.groups[today[column]]
        return are_apart(groups, values, flipped[column], loser)

    for part, columns in matrix.parts.items():
        subject = Subject("flip", part)
        here = [int(column) for column in columns if tested[column]]
        other = [column for column in here if column in flipped]
        into.tested[subject] = len(here)
        if here and not other:
            into.fine.add(subject)
        certain = [column for column in other if is_certain(column)]
        if certain:
            into.found.add(subject)
            into.scores[subject] = tuple(matrix.series[column] for column in certain)
            into.usual.update({matrix.series[column]: flipped[column] for column in certain})


def _losers(
    matrix: Matrix, night: Night, able: NDArray[np.bool_], settings: Trends
) -> tuple[Integers, NDArray[np.bool_], Integers]:
    """Tonight's losers, which earlier batches count, and in how many of these the loser is same."""
    today = matrix.worst[night.row]
    rows = slice(night.first, night.row)
    known = able[rows] & (matrix.worst[rows] >= 0)
    # Counted from the newest backwards, so that each series has its own last `window` batches.
    known &= np.cumsum(known[::-1], axis=0)[::-1] <= settings.window
    return today, known, (known & (matrix.worst[rows] == today)).sum(axis=0)


def _usual_loser(matrix: Matrix, night: Night, known: NDArray[np.bool_], column: int) -> str | None:
    worst = matrix.worst[night.first : night.row, column][known[:, column]]
    codes, times = np.unique(worst, return_counts=True)
    most = int(times.argmax())
    return matrix.groups[codes[most]] if times[most] >= FLIP_SHARE * len(worst) else None


def tells(kind: str, part: Part, subject: Subject) -> bool:
    """Whether an alert of a kind about a part tells of ``subject``, a shift or a flip, as well.

    What is stronger does, in the same attribute and slice: a breach, and of a shift also a flip.
    So does what is stronger or alike in anything that the attribute and slice is a piece of: the
    whole batch, or one of the attributes of an intersection.
    """
    stronger = kind in _TELL[subject.kind]
    if part == subject.part:
        return stronger
    return (stronger or kind == subject.kind) and subject.part.within(part)


def cover(into: Findings) -> None:
    """Note which findings tell again what another one of the batch tells.

    A breach of a slice, in one batch or in a window, is covered by that of the same score in the
    whole batch, and a missing group of an intersection by a missing group that it is a piece of.
    """
    about = {(subject.kind, subject.part) for subject in into.found}
    for subject in into.found:
        if subject.kind in _TELL:
            covered = any(tells(kind, part, subject) for kind, part in about)
        elif subject.kind == "missing":
            covered = any(is_piece(subject, other) for other in into.missing)
        else:
            whole = None if subject.part.is_whole or not subject.series else subject.series.whole
            covered = whole is not None and Subject.about(subject.kind, whole) in into.found
        into.covered.update({subject} if covered else ())
