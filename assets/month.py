"""The last month of scores, as the page of an asset shows it: a line for each score.

What came before the run is read from the published copy, where no lock is ever met.

Not here: the picture itself (``pipeline.publish.month_picture``).
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import dagster as dg
import duckdb

from assets.describe import LEFT_OUT, at_limit
from metrics import WHOLE
from pipeline.errors import AuditError
from pipeline.formatting.looks import LOOKS
from pipeline.formatting.numbers import interval_text, number
from pipeline.formatting.sparks import BLOCKS, spark
from pipeline.history.series import Course, courses, month_before, since_first
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of
from pipeline.store.sessions import attach, working
from schemas.columns import Row
from schemas.judged import JUDGED_OF, as_judged

DAYS = 31
"""Batches that a month has at most."""
_COPY = "copy"
_COLUMNS = (
    *("batch", "slice", "slice_value", "attribute", "metric", "aggregation"),
    *("value", "reason", "lower", "upper", "status", *JUDGED_OF.values(), "judged_groups"),
)


def past_rows(settings: Settings, last: str, found: Mapping[str, Sequence[Row]]) -> list[Row]:
    """Plotted scores of whole batches in the month up to ``last``, oldest batch first.

    Of batches in ``found`` those rows, of others what is published; nothing of these where there is
    no copy that can be read.
    """
    days = month_before(settings, last, DAYS)
    before = [day for day in days if day not in found]
    rows = _published(
        settings,
        f"SELECT {', '.join(_COLUMNS)} FROM v_history WHERE slice = ? AND list_contains(?, batch) "
        "AND (aggregation IS NULL OR NOT list_contains(?, aggregation))",
        [WHOLE, before, sorted(LEFT_OUT)],
    )
    rows += [
        row
        for day in (*days, *({last} - set(days)))
        for row in found.get(day, ())
        if row["slice"] == WHOLE and row["aggregation"] not in LEFT_OUT
    ]
    return sorted(rows, key=lambda row: str(row["batch"]))


def _published(settings: Settings, query: str, values: Sequence[Any]) -> list[Row]:
    """Rows of a query on the published copy; none where there is no copy that can be read."""
    store = store_of(settings)
    if not store.dashboard.exists():
        return []
    try:
        with working(settings, [store.root]) as connection:
            attach(connection, store.dashboard, _COPY, read_only=True)
            connection.execute(f"USE {_COPY}")
            return list(connection.sql(query, params=values).to_arrow_table().to_pylist())
    except (AuditError, duckdb.Error):
        # A picture of the past is no reason to fail; the next publication writes a new copy.
        return []


def verdict_chart(settings: Settings, last: str) -> dict[str, dg.MarkdownMetadataValue]:
    """Metadata that shows how many scores have which verdict in the month up to ``last``.

    None where nothing of it was judged.
    """
    # What draws takes its time to load, and the code location is loaded more often than it draws.
    from pipeline.publish.month_picture import verdict_picture, verdict_words

    counted = _published(
        settings,
        "SELECT batch, status, count(*) AS scores FROM v_history "
        "WHERE status <> 'not_judged' AND list_contains(?, batch) GROUP BY ALL ORDER BY ALL",
        [month_before(settings, last, DAYS)],
    )
    if not counted:
        return {}
    days = since_first(counted, month_before(settings, last, DAYS))
    picture = b64encode(verdict_picture(days, counted)).decode("ascii")
    text = f"![{verdict_words(days, counted)}](data:image/jpeg;base64,{picture})"
    return {"last_month": dg.MetadataValue.md(text)}


def last_month(
    settings: Settings, last: str, rows: Iterable[Row]
) -> dict[str, dg.MarkdownMetadataValue]:
    """Metadata that shows the scores of ``rows`` as charts of a line, up to the batch ``last``.

    Batches before the first that has any are left out; others without a value are gaps.
    """
    rows = list(rows)
    days = since_first(rows, {*month_before(settings, last, DAYS), last})
    found = [course for course in courses(rows, days) if course.rows[-1] is not None]
    if not found:
        return {}
    head = f"{days[0]} to {days[-1]}; `{BLOCKS.gap}` is no value"
    return {"last_month": dg.MetadataValue.md("\n".join([head, "", *_items(settings, found)]))}


def _items(settings: Settings, found: Sequence[Course]) -> Iterator[str]:
    """A list item for each score: in the narrow column that Dagster has for it, tables are cut."""
    for course in found:
        row, limit = as_judged(course.last), course.limit(settings)
        look = LOOKS[row["status"]]
        name = _literal(" ".join(filter(None, (course.attribute, course.label))))
        value = "no value" if row["value"] is None else number(row["value"])
        interval = interval_text(row["lower"], row["upper"])
        wanted = f"; wanted: at {at_limit(limit)}" if limit else ""
        yield f"- {name}\\"
        yield f"  `{spark(course.values, *course.extent(settings))}`\\"
        yield f"  {look.symbol} {look.word}, {value}{f' ({interval})' if interval else ''}{wanted}"


def _literal(text: str) -> str:
    """``text`` as Markdown that shows it and nothing else: every sign of its own is escaped."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text)
