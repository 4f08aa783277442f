"""Scores over batches: which batches there should be, and what each score was on them.

Not here: statistics (``trends``), and how a series is drawn (``terminal.series``, ``publish``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from metrics import WHOLE, LabelError, parse_score
from pipeline.history.manifest import manifest
from pipeline.history.queries import labelled
from pipeline.settings.audit import Settings
from pipeline.settings.batch_keys import days
from pipeline.settings.choices import followed_scores
from pipeline.settings.sections import Threshold

MONTH = 30
"""Batches that a glance goes back: four weeks and a little, in less than half a line."""
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Course:
    """One score on a number of batches: ``rows`` of fairness_history, None where there is none."""

    slice: str
    slice_value: str
    attribute: str | None
    label: str
    rows: tuple[Row | None, ...]

    @property
    def values(self) -> list[float | None]:
        """The score on each batch; None where there is no row, or no value."""
        return [None if row is None else row["value"] for row in self.rows]

    @property
    def statuses(self) -> list[str | None]:
        """The verdict on each batch; None where there is no row."""
        return [None if row is None else row["status"] for row in self.rows]

    @property
    def last(self) -> Row:
        """The row of the newest batch that has one."""
        return next(row for row in reversed(self.rows) if row is not None)

    @property
    def judged(self) -> bool:
        """Whether a threshold holds for the score, gates aside."""
        return any(row.get("verdict", row["status"]) != "not_judged" for row in self.rows if row)

    def limit(self, settings: Settings) -> Threshold | None:
        """The threshold that it is judged by now."""
        return settings.thresholds.get(self.label) if self.judged else None

    def extent(self, settings: Settings) -> tuple[float, float]:
        """From the lowest to the highest of its values and its threshold: what a chart shows."""
        limit = self.limit(settings)
        known = [value for value in self.values if value is not None]
        known += [end for end in (limit.min, limit.max) if end is not None] if limit else []
        return min(known, default=0.0), max(known, default=0.0)

    def worst(self, values: Sequence[float | None]) -> float | None:
        """Of some of its values the one furthest to the unfair side; the highest without one."""
        defined = [value for value in values if value is not None]
        try:
            unfair_low = parse_score(self.label).alarm == "low"
        except LabelError:
            # An old history may hold a score that is declared no more.
            unfair_low = False
        return (min if unfair_low else max)(defined, default=None)


def limit_text(limit: Threshold | None) -> str:
    """A threshold in a few signs, nothing for none."""
    if limit is None:
        return ""
    return f">={limit.min:g}" if limit.min is not None else f"<={limit.max:g}"


def expected(settings: Settings, first: str, last: str) -> list[str]:
    """Every day of the schedule from one batch to another; none where these are no days."""
    start, end = _day(first), _day(last)
    if start is None or end is None:
        return []
    schedule = settings.schedule
    return days(max(start, schedule.start), min(end, schedule.end or end))


def _day(batch: str) -> date | None:
    """The day that a batch is named by; 20260105 is none, though it can be read as one."""
    try:
        day = date.fromisoformat(batch)
    except ValueError:
        return None
    return day if day.isoformat() == batch else None


def month_before(settings: Settings, last: str, count: int = MONTH) -> list[str]:
    """The last ``count`` days of the schedule up to ``last``; none where that is no day."""
    return expected(settings, settings.schedule.start.isoformat(), last)[-count:]


def batches_of(settings: Settings, rows: Sequence[Row]) -> list[str]:
    """The batches that some rows are about, with days between them that are missing, in order."""
    there = {row["batch"] for row in rows}
    return sorted(there.union(expected(settings, min(there), max(there))))


def courses(rows: Iterable[Row], batches: Sequence[str]) -> list[Course]:
    """The scores that ``rows`` are about, each over all of ``batches``, in order of appearance."""
    place = {batch: at for at, batch in enumerate(batches)}
    rows_by_score: dict[tuple[Any, ...], list[Row | None]] = {}
    for row in rows:
        if row["batch"] in place:
            key = (row["slice"], row["slice_value"], row["attribute"], label_of(row))
            rows_by_score.setdefault(key, [None] * len(batches))[place[row["batch"]]] = row
    return [
        Course(part, value, attribute, label, tuple(each))
        for (part, value, attribute, label), each in rows_by_score.items()
    ]


def label_of(row: Row) -> str:
    """The score that a row of the history is about, as printed."""
    return ".".join(filter(None, (row["metric"], row["aggregation"])))


def watched(settings: Settings, batches: Sequence[str]) -> tuple[list[str], list[Course]]:
    """Scores of whole batches with a threshold, and those of ``batches`` since the first of them.

    Scores that are followed, where there is no threshold at all.  Those with a breach come first.
    """
    labels = list(settings.thresholds or followed_scores(settings))
    rows = labelled(
        settings,
        "slice = ? AND list_contains(?, label) AND list_contains(?, batch)",
        [WHOLE, labels, list(batches)],
    )
    kept = since_first(rows, batches)
    found = [each for each in courses(rows, kept) if each.judged or not settings.thresholds]
    return kept, sorted(found, key=lambda course: "breach" not in course.statuses)


def since_first(rows: Iterable[Row], batches: Iterable[str]) -> list[str]:
    """Those of ``batches`` that do not lie before the first that ``rows`` are about, in order."""
    first = min((row["batch"] for row in rows), default="")
    return sorted(batch for batch in batches if batch >= first)


def last_month(settings: Settings, last: str | None = None) -> list[str]:
    """The last batches up to ``last``, by default the newest: those expected and those there are.

    No more than a month of them; none without a history.
    """
    there = [batch for batch, row in manifest(settings).items() if row.revision]
    last = max(there, default=None) if last is None else last
    if last is None:
        return []
    before = [batch for batch in there if batch <= last]
    return sorted({*before, *month_before(settings, last)})[-MONTH:]
