"""Which scores a person should see first, where there are more than a screen holds.

Here: the order, and what it leaves for later.  Not here: how rows are printed (``printing``), and
charts of them (``series``).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console

from metrics import WHOLE
from pipeline.formatting.looks import LOOKS, VERDICTS
from pipeline.formatting.numbers import counted
from pipeline.history.series import Row, label_of
from pipeline.monitoring.alerts import alerts
from pipeline.settings.audit import Settings
from pipeline.terminal.conclusions import print_conclusion
from pipeline.terminal.printing import HISTORY_COLUMNS, INTERVAL_COLUMNS, print_scores, printable
from schemas.judged import as_judged

SCREEN = 24
"""Rows that are shown as they come: with more of them, somebody has to choose."""
_JUDGED, _NEWS, _FAR, _OTHERS = 16, 8, 8, 12
_BY_CHANCE = 0.01
"""Chance alone is as unfair in one of 100 batches: far from chance.  At the usual 5 of 100, many
scores of a fair batch are, because a batch has many scores."""
_GRAVITY = [look.name for look in VERDICTS]

_COLUMNS = INTERVAL_COLUMNS
_JUDGED_COLUMNS = HISTORY_COLUMNS[1:]
"""Without the batch, which stands above."""

Key = tuple[str, str, str | None, str]


@dataclass(frozen=True)
class Section:
    """Rows that are shown for the same reason, and how many more there are for it."""

    title: str
    rows: Sequence[Row]
    more: int = 0


def key_of(row: Row) -> Key:
    """What names the score of a row in its batch."""
    return row["slice"], row["slice_value"], row["attribute"], label_of(row)


def metric_of(row: Row) -> tuple[object, ...]:
    """What names the metric of a row in its batch: what its aggregations have in common."""
    return row["slice"], row["slice_value"], row["attribute"], row["metric"]


def first_look(
    rows: Sequence[Row],
    settings: Settings,
    news: Collection[Key] = (),
    gravity: Callable[[Row], int] | None = None,
) -> list[Section]:
    """What to show of the scores of one batch: judged ones, then ``news``, then those far out.

    ``gravity`` is the place of a verdict, by default that of the row.  A metric of which nothing
    is judged or news is shown by the first of its scores.  Where nothing is to be said of any of
    them, these stand for all.
    """
    grave = gravity or (lambda row: gravity_of(row["status"]))
    judged = [row for row in rows if row["status"] != "not_judged"]
    judged.sort(
        key=lambda row: (
            grave(row),
            key_of(row) not in news,
            _in_slice(row),
            _room(row, settings),
        )
    )
    others = [row for row in rows if row["status"] == "not_judged"]
    moved = [row for row in others if key_of(row) in news]
    moved.sort(key=_in_slice)
    told = {metric_of(row) for row in (*judged, *moved)}
    rest = list(_first_of_metrics(row for row in others if metric_of(row) not in told))
    far = [row for row in rest if _far(row)]
    far.sort(key=lambda row: (_in_slice(row), -distance(row)))
    found = [
        _section(_judged_title(judged, news), judged, _JUDGED),
        _section("Not judged, but moved", moved, _NEWS),
        _section("Not judged, furthest from chance", far, _FAR),
    ]
    shown = [section for section in found if section.rows]
    return shown or [_section("The first of them", rest, _OTHERS)]


def gravity_of(status: str | None) -> int:
    """The place of a verdict, the gravest first; last of all where there is none."""
    return len(_GRAVITY) if status is None else _GRAVITY.index(status)


def news_of(settings: Settings, batch: str) -> set[Key]:
    """The scores about which an alert was opened in ``batch``."""
    return {
        (row["slice"], row["slice_value"], row["attribute"], row["reading_of"])
        for row in alerts(settings, batches=[batch])
        if row["opened"] == batch and row["reading_of"]
    }


def print_first_look(out: Console, settings: Settings, rows: Sequence[Row]) -> None:
    """Print what stands out among the scores of one batch, and how to see the others."""
    batch = rows[0]["batch"]
    out.print(printable(f"Batch {batch}"), style="bold")
    print_conclusion(out, settings, [batch])
    sections = first_look(rows, settings, news_of(settings, batch))
    for section in sections:
        judged = any(row["status"] != "not_judged" for row in section.rows)
        out.print()
        print_scores(out, section.rows, section.title, _JUDGED_COLUMNS if judged else _COLUMNS)
        if section.more:
            out.print(f"  and {section.more:,} more like these")
    print_left_out(out, len(rows) - sum(len(section.rows) for section in sections))


def print_left_out(out: Console, count: int) -> None:
    """Print how many scores were left out, and what shows them; nothing for none."""
    if count:
        out.print(f"\n{counted(count, 'more score')}: --all shows them, --format csv exports them.")


def distance(row: Row) -> float:
    """How far a score is to the unfair side of what chance gives, in parts of how far chance goes.

    Zero where that is not known.

    >>> distance({"value": 0.7, "expected": 1.0, "noise_limit": 0.9})
    3.0
    """
    judged = as_judged(row)
    value, expected, limit = judged["value"], judged["expected"], judged["noise_limit"]
    if value is None or expected is None or limit is None or expected == limit:
        return 0.0
    return round(float((expected - value) / (expected - limit)), 9)


def _judged_title(rows: Sequence[Row], news: Collection[Key]) -> str:
    """How many scores have each verdict, and how many of them are news."""
    counts = Counter(row["status"] for row in rows)
    said = [f"{counts[name]:,} {LOOKS[name].word}" for name in _GRAVITY if counts[name]]
    new = sum(key_of(row) in news for row in rows)
    return "Judged: " + ", ".join(said + ([f"{new:,} new"] if new else []))


def _section(title: str, rows: Sequence[Row], most: int) -> Section:
    return Section(title, rows[:most], max(0, len(rows) - most))


def _in_slice(row: Row) -> bool:
    return bool(row["slice"] != WHOLE)


def _room(row: Row, settings: Settings) -> float:
    """How far a score is within its threshold, in parts of it; below 0 beyond."""
    limit, value = settings.thresholds.get(label_of(row)), as_judged(row)["value"]
    if limit is None or value is None:
        return float("inf")
    end = limit.min if limit.min is not None else limit.max or 0.0
    room = value - end if limit.min is not None else end - value
    return float(room / (abs(end) or 1.0))


def _far(row: Row) -> bool:
    return row["p_noise"] is not None and row["p_noise"] <= _BY_CHANCE and distance(row) > 1


def _first_of_metrics(rows: Iterable[Row]) -> Iterator[Row]:
    seen: set[tuple[object, ...]] = set()
    for row in rows:
        if metric_of(row) not in seen:
            seen.add(metric_of(row))
            yield row
