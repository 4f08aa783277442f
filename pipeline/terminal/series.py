"""Scores over batches in a terminal: a line each, with what it is now and where it went wrong.

Not here: the values (``history.series``), and how one line is drawn (``formatting.sparks``).
"""

from collections.abc import Collection, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from metrics import WHOLE
from pipeline.errors import NoData
from pipeline.formatting.looks import GRAVEST, LOOKS, look_text, signs_for
from pipeline.formatting.numbers import number, part_text
from pipeline.formatting.sparks import Glyphs, columns, glyphs_for, spark
from pipeline.history.series import Course, Row, batches_of, courses, limit_text, watched
from pipeline.monitoring.alerts import markers
from pipeline.settings.audit import Settings
from pipeline.terminal.first_look import first_look, gravity_of, news_of, print_left_out
from pipeline.terminal.printing import harmless, printable
from pipeline.terminal.tables import chop, print_table, stack
from schemas.judged import as_judged

WIDEST = 31
"""Columns of a chart: a month of days."""
_SHOWN = 12
"""Series, a line or two each: they fit on one screen."""
_RELEASE = "|"
_STEPS = (
    chop("by", 28),
    stack("by", below="score"),
    stack("status", below="last"),
)
"""What is done to the columns, in this order, until lines fit."""


def print_watched(out: Console, settings: Settings, batches: Sequence[str]) -> None:
    """Print charts of the scores of whole batches with a threshold, over ``batches``.

    Some of these may have no scores: gaps.  Nothing where fewer than two are left since the first
    that has any: one column is no chart.
    """
    charted_batches, followed = watched(settings, batches)
    if len(charted_batches) < 2 or not followed:
        return
    out.print()
    print_courses(out, settings, charted_batches, followed[:_SHOWN])
    if len(followed) > _SHOWN:
        out.print(f"  and {len(followed) - _SHOWN:,} more; `evenrank history --trend` lists them")


def print_trends(
    out: Console, settings: Settings, rows: Sequence[Row], status: str | None, *, every: bool
) -> None:
    """Print a chart for each score that ``rows`` are about, or for those to see first.

    With a ``status``, of those scores that have it on the last of their batches.
    """
    batches = batches_of(settings, rows)
    found = [each for each in courses(rows, batches) if status in (None, each.last["status"])]
    if not found:
        raise NoData(f"no score is {status} at last")
    shown = found if every or len(found) <= _SHOWN else _first(settings, found)
    print_courses(out, settings, batches, shown)
    print_left_out(out, len(found) - len(shown))


def _first(settings: Settings, scores: Sequence[Course]) -> list[Course]:
    """Those to see first: judged ones, the gravest verdict of the period first, and so on."""
    course_of = {id(course.last): course for course in scores}

    def gravity(row: Row) -> int:
        return min(map(gravity_of, course_of[id(row)].statuses))

    news = news_of(settings, max(course.last["batch"] for course in scores))
    sections = first_look([course.last for course in scores], settings, news, gravity)
    return [course_of[id(row)] for section in sections for row in section.rows]


def print_course(out: Console, settings: Settings, rows: Sequence[Row]) -> None:
    """Print a chart above a table of ``rows``, if they are about one score on several batches."""
    batches = batches_of(settings, rows)
    found = courses(rows, batches)
    if len(found) == 1 and len(rows) > 1:
        print_courses(out, settings, batches, found)
        out.print()


def print_courses(
    out: Console, settings: Settings, batches: Sequence[str], scores: Sequence[Course]
) -> None:
    """Print a chart for each of ``scores`` over ``batches``; there is at least one of either.

    A chart reaches from the lowest to the highest of its values and its threshold.  Where batches
    are more than its columns, a column stands for several and shows the worst of them.
    """
    glyphs, signs = glyphs_for(out.encoding), signs_for(out.encoding)
    spans = list(columns(len(batches), WIDEST))
    released = {row["batch"] for row in markers(settings)}
    marks = [_marks(course, batches, spans, released, signs) for course in scores]
    parts = [part_text(course.last) for course in scores]
    alike = len(set(parts)) == 1
    by = [course.attribute or "-" for course in scores]
    if not alike:
        by = [f"{part}\n{name}" for part, name in zip(parts, by, strict=True)]
    cells = {
        "by": [Text(harmless(each)) for each in by],
        "score": [Text(course.label) for course in scores],
        "trend": [
            _chart(course, settings, spans, marks[at], glyphs, signs)
            for at, course in enumerate(scores)
        ],
        "last": [Text(_last(course, settings)) for course in scores],
        "status": [Text(_status(course, batches, signs)) for course in scores],
    }
    title = "Slices" if not alike else "Whole batches" if parts[0] == WHOLE else f"Slice {parts[0]}"
    out.print(printable(f"{title}, {_range(batches)}"), style="bold")
    for course, cell in zip(scores, cells["status"], strict=True):
        cell.stylize(LOOKS[course.last["status"]].style)
    print_table(out, cells, steps=_STEPS, loose=("by",))
    drawn = "".join(marks) + (glyphs.gap if any(None in each.values for each in scores) else "")
    if legend := _legend(drawn, len(batches), spans, glyphs, signs):
        out.print(legend, style="dim")


def _last(course: Course, settings: Settings) -> str:
    """The newest value, as judged, and below it the limit that it is held to."""
    value = as_judged(course.last)["value"]
    limit = limit_text(course.limit(settings))
    return "\n".join(filter(None, (number(value), limit)))


def _status(course: Course, batches: Sequence[str], signs: Mapping[str, str]) -> str:
    """The newest verdict, and below it of which batch that is, if later ones have none."""
    text, batch = look_text(course.last["status"], signs), course.last["batch"]
    return text if batch == batches[-1] else f"{text}\n{batch}"


def _range(batches: Sequence[str]) -> str:
    first, last = batches[0], batches[-1]
    return first if first == last else f"{first} to {last}"


def _marks(
    course: Course,
    batches: Sequence[str],
    spans: Sequence[slice],
    released: Collection[str],
    signs: Mapping[str, str],
) -> str:
    """A sign for each column: the gravest verdict in it, or that a release began."""

    def mark(span: slice) -> str:
        statuses = course.statuses[span]
        for status in GRAVEST:
            if status in statuses:
                return signs[status]
        return _RELEASE if any(batch in released for batch in batches[span]) else " "

    return "".join(map(mark, spans))


def _chart(
    course: Course,
    settings: Settings,
    spans: Sequence[slice],
    marks: str,
    glyphs: Glyphs,
    signs: Mapping[str, str],
) -> Text:
    """The chart in colour, and below it the marks, if there are any."""
    values = [course.worst(course.values[span]) for span in spans]
    line = spark(values, *course.extent(settings), glyphs)
    styles = {signs[status]: LOOKS[status].style for status in GRAVEST}
    above = zip(line, marks, strict=True)
    below = zip("\n" + marks, " " + marks, strict=True) if marks.strip() else ()
    return Text.assemble(*((sign, styles.get(mark, "")) for sign, mark in (*above, *below)))


def _legend(
    drawn: str, count: int, spans: Sequence[slice], glyphs: Glyphs, signs: Mapping[str, str]
) -> str:
    """What the signs of a chart mean, of those that were drawn."""
    meanings = {signs[status]: LOOKS[status].word for status in GRAVEST}
    meanings |= {_RELEASE: "release", glyphs.gap: "no value"}
    said = [f"{sign} {meaning}" for sign, meaning in meanings.items() if sign in drawn]
    if len(spans) < count:
        said.append(f"a column: the worst of {spans[0].stop} batches")
    return "   ".join(said)
