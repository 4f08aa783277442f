"""Views that look at the history as a whole: what scores are, releases compared, how fresh it is.

Not here: views with a row per score and batch (``views``, ``usual``).
"""

from schemas.columns import Column
from schemas.copy import ABOUT, SCORE_CATALOGUE
from schemas.monitoring import SERIES, SERIES_KEY
from schemas.usual import SCORED_BATCHES
from schemas.view import LABELLED, NOW, View, of

_SERIES = ", ".join(SERIES_KEY)
METRICS = View(
    "v_metrics",
    "A score that the history holds or the settings compute: what it is, in numbers and words.",
    SCORE_CATALOGUE.columns,
    key=SCORE_CATALOGUE.key,
    query=f"FROM {SCORE_CATALOGUE.name}",
    order="family, label",
)

_UNFAIR = "CASE direction WHEN 'low' THEN judged_value WHEN 'high' THEN -judged_value END"
_WORST = "arg_min({}, {{'unfair': unfair, 'batch': batch}}) FILTER (unfair IS NOT NULL)"
_JUDGED = "status IN ('ok', 'breach', 'composition', 'insufficient')"
_OF_RELEASES = (
    f"SELECT release_batch, any_value(release) AS release, {_SERIES}, label, "
    "min(batch) AS first_batch, max(batch) AS last_batch, count(judged_value) AS batches, "
    "median(judged_value) AS value, any_value(direction) AS direction, "
    f"{_WORST.format('judged_value')} AS worst_value, {_WORST.format('batch')} AS worst_batch, "
    "count(*) FILTER (status = 'breach') AS breaches, "
    f"count(*) FILTER (status = 'ok') / nullif(count(*) FILTER ({_JUDGED}), 0) AS ok_share "
    f"FROM (SELECT *, {_UNFAIR} AS unfair FROM v_history "
    f"JOIN (SELECT batch, release_batch FROM ({SCORED_BATCHES}) WHERE NOT gated) USING (batch)) "
    f"GROUP BY release_batch, {_SERIES}, label"
)
RELEASE_SCORES = View(
    "v_release_scores",
    "A score in the batches of a release, beside the release before it; gated ones left out.",
    (
        Column(
            "release_batch",
            "VARCHAR",
            "batch that the release begins with; null for batches before the first",
            nullable=True,
        ),
        Column("release", "VARCHAR", "what was marked there", nullable=True),
        *SERIES,
        LABELLED,
        Column("first_batch", "VARCHAR", "first batch of the release that has the score"),
        Column("last_batch", "VARCHAR", "last batch of the release that has the score"),
        Column("batches", "BIGINT", "batches of the release in which it has a value"),
        Column("value", "DOUBLE", "median of the judged score in these", nullable=True),
        *of(SCORE_CATALOGUE, "direction"),
        Column("worst_value", "DOUBLE", "the most unfair of them; null without a side", True),
        Column("worst_batch", "VARCHAR", "the first batch in which it was that", nullable=True),
        Column("breaches", "BIGINT", "batches in which it was a breach"),
        Column(
            "ok_share", "DOUBLE", "share of ok among batches with a verdict; null without", True
        ),
        Column("previous_value", "DOUBLE", "median in the release before", nullable=True),
        Column("difference", "DOUBLE", "value less previous_value", nullable=True),
        Column("worse", "BOOLEAN", "whether it moved to the unfair side", nullable=True),
    ),
    key=("release_batch", *SERIES_KEY),
    query="SELECT *, value - previous_value AS difference, "
    "CASE direction WHEN 'low' THEN value < previous_value "
    "WHEN 'high' THEN value > previous_value END AS worse "
    "FROM (SELECT *, lag(value) OVER "
    f"(PARTITION BY {_SERIES} ORDER BY release_batch NULLS FIRST) AS previous_value "
    f"FROM ({_OF_RELEASES}))",
    order=f"release_batch DESC NULLS LAST, {_SERIES}",
)

_LATE = (
    "v_coverage WHERE expected AND NOT scored "
    "AND batch_end > coalesce(newest_end, TIMESTAMP '1970-01-01')"
)
_TIMED = "batches JOIN batch_times USING (batch) WHERE revision > 0"
_NEWEST = (
    f"SELECT (SELECT arg_max(batch, batch_end) FROM {_TIMED}) AS newest_batch, "
    f"(SELECT max(batch_end) FROM {_TIMED}) AS newest_end, "
    "(SELECT count(*) FROM batches WHERE revision > 0) AS scored, schedule_end, deadline_hours "
    "FROM about"
)
FRESHNESS = View(
    "v_freshness",
    "Whether scores are as new as they should be, now: one row.",
    (
        Column("newest_batch", "VARCHAR", "newest day, or hour, with scores; null without", True),
        Column("newest_end", "TIMESTAMP", "when it ended (UTC)", nullable=True),
        Column("hours_since", "DOUBLE", "hours since then, at the time of the query", True),
        Column("late", "BIGINT", "later days that are expected and due, and have no scores"),
        Column("late_since", "TIMESTAMP", "when the first of them was due (UTC)", nullable=True),
        *of(ABOUT, "schedule_end"),
        Column(
            "state",
            "VARCHAR",
            "overdue: a day is late, or days that went on past schedule_end have stopped; ended: "
            "the newest day is old, and none is expected after it; unscheduled: no batch is named "
            "after a day, or none is expected yet; else fresh",
        ),
    ),
    key=("state",),
    query="SELECT *, CASE WHEN newest_end IS NULL AND scored > 0 THEN 'unscheduled' "
    "WHEN late > 0 THEN 'overdue' "
    f"WHEN newest_end IS NULL OR {NOW} <= newest_end + to_hours(24 + deadline_hours) THEN 'fresh' "
    "WHEN schedule_end IS NULL THEN 'unscheduled' "
    "WHEN left(newest_batch, 10) > schedule_end THEN 'overdue' ELSE 'ended' END AS state "
    "FROM (SELECT *, "
    f"date_diff('second', newest_end, {NOW}) / 3600 AS hours_since, "
    f"(SELECT count(*) FROM {_LATE}) AS late, (SELECT min(due_at) FROM {_LATE}) AS late_since "
    f"FROM ({_NEWEST}))",
)
