"""Tables of what the history's batches say about each other: gates, trends, alerts, releases.

Not here: what one batch says by itself (``scores``).
"""

import pandera.pandas as pa

from schemas.columns import Column, Table

BATCH = Column("batch", "VARCHAR", "the partition, a day by default")
ALERT = Column("alert", "VARCHAR", "the alert, twelve hex digits")
TEXT = Column("text", "VARCHAR", "what was found, in several short lines")
QUERY = Column("query", "VARCHAR", "SQL on the published copy that looks further")
NOTE = Column("note", "VARCHAR", "what somebody said about it", nullable=True)

SERIES = (
    Column("slice", "VARCHAR", "slice column, or 'all' for the whole batch"),
    Column("slice_value", "VARCHAR", "value of the slice column, or 'all'"),
    Column("attribute", "VARCHAR", "attribute; null for metrics without groups", nullable=True),
    Column("metric", "VARCHAR", "metric with its parameters, as printed; for a gate, its name"),
    Column("aggregation", "VARCHAR", "aggregation or reading; null where there is none", True),
)
"""What names a series: one score of one slice and attribute, batch after batch."""
SERIES_KEY = tuple(column.name for column in SERIES)
_ABOUT = (
    *SERIES[:3],
    Column(
        "metric",
        "VARCHAR",
        "metric that breaches, group that is missing, or gate that failed; null for a shift or a "
        "flip, which is of the attribute and slice as a whole",
        nullable=True,
    ),
    SERIES[4],
)
"""What an alert is about."""

ASSESSMENTS = Table(
    "assessments",
    "Batches that were assessed: whether their gates, trends and alerts are up to date.",
    (BATCH, Column("assessed_at", "TIMESTAMP", "when (UTC); null where it is due again", True)),
    key=("batch",),
)
GATES = Table(
    "gates",
    "Whether a batch is whole, and enough like those before it, to be judged, gate by gate.",
    (
        BATCH,
        Column(
            "gate", "VARCHAR", "joined, volume, list_length, group_mix, unknown_share or labels"
        ),
        Column("attribute", "VARCHAR", "attribute; null for gates about rows", nullable=True),
        Column("value", "DOUBLE", "what the batch has"),
        Column(
            "usual", "DOUBLE", "the median of the batches before it; 1 for joined, which needs none"
        ),
        Column("distance", "DOUBLE", "how far the two are apart, as the gate measures it"),
        Column("allowed", "DOUBLE", "distance up to which the gate is passed"),
        Column("passed", "BOOLEAN", "whether it is"),
        Column("text", "VARCHAR", "the same in a sentence"),
        Column("baseline", "BIGINT", "batches before it that were compared"),
    ),
    key=("batch", "gate", "attribute"),
)
CHART_NAMES = ("shewhart", "ewma", "cusum")
TRENDS = Table(
    "trends",
    "One followed score in one batch, against those before it.",
    (
        BATCH,
        *SERIES,
        Column("value", "DOUBLE", "the score"),
        Column("center", "DOUBLE", "what was expected; null without a baseline", nullable=True),
        Column("spread", "DOUBLE", "standard error of what was expected", nullable=True),
        Column("baseline", "BIGINT", "batches that the expectation comes from"),
        Column("weekday", "BOOLEAN", "whether it is that of the day of the week"),
        Column("residual", "DOUBLE", "distance in standard errors, positive when unfair", True),
        Column("ewma", "DOUBLE", "moving average of the distances, standardised", nullable=True),
        Column("cusum", "DOUBLE", "cumulative sum of the distances", nullable=True),
        Column("p_value", "DOUBLE", "probability of charts like these if nothing moved", True),
        Column("p_adjusted", "DOUBLE", "the same, for the number of series tested", nullable=True),
        Column("family", "VARCHAR", "whole, slices, or covered by the whole batch's shift", True),
        Column("family_size", "BIGINT", "series tested together"),
        Column("chart", "VARCHAR", "chart that says most: " + ", ".join(CHART_NAMES), True),
        Column("since", "VARCHAR", "batch in which the shift began, if it is one", nullable=True),
        Column("shift", "BOOLEAN", "whether it is news: a discovery among all series tested"),
    ),
    key=("batch", *SERIES_KEY),
)
KINDS = ("breach", "shift", "flip", "missing", "gate")
"""What an alert can be about: a threshold passed, a score moved, another group losing, a group
without any row, a gate."""
MISSING_GROUP = "missing_group"
"""The status_reason of what would be ok if a group were not missing; the group follows."""
STATES = ("open", "resolved", "withdrawn")
ALERTS = Table(
    "alerts",
    "One alert per episode: from the batch that opened it to the one that resolved it.",
    (
        ALERT,
        Column("kind", "VARCHAR", ", ".join(KINDS), checks=(pa.Check.isin(KINDS),)),
        *_ABOUT,
        Column(
            "state",
            "VARCHAR",
            "open; resolved; withdrawn: no longer found since batches were computed again",
            checks=(pa.Check.isin(STATES),),
        ),
        Column("opened", "VARCHAR", "first batch in which it was seen"),
        Column("last_seen", "VARCHAR", "last batch in which it was seen"),
        Column("resolved", "VARCHAR", "first later batch that was fine", nullable=True),
        Column("batches", "BIGINT", "batches in which it was seen"),
        Column("acknowledged_at", "TIMESTAMP", "when somebody acknowledged it (UTC)", True),
        Column("acknowledged_by", "VARCHAR", "who did", nullable=True),
        NOTE,
        Column("snoozed_until", "TIMESTAMP", "neither listed nor sent before (UTC)", nullable=True),
        Column("silent", "BOOLEAN", "found where nobody was to be notified: never sent"),
        Column("notified_at", "TIMESTAMP", "when it was sent (UTC)", nullable=True),
        TEXT,
        QUERY,
    ),
    key=("alert",),
)
ALERT_BATCHES = Table(
    "alert_batches",
    "The batches in which an alert was seen, and what it said there.",
    (ALERT, BATCH, TEXT, QUERY),
    key=("alert", "batch"),
)
ACTIONS = ("ack", "snooze", "undo")
ALERT_ACTIONS = Table(
    "alert_actions",
    "What people did about alerts; rows are only ever added.",
    (
        Column("acted_at", "TIMESTAMP", "when (UTC)"),
        ALERT,
        Column("action", "VARCHAR", ", ".join(ACTIONS), checks=(pa.Check.isin(ACTIONS),)),
        Column("snoozed_until", "TIMESTAMP", "end of a snooze (UTC)", nullable=True),
        Column("who", "VARCHAR", "who did it"),
        NOTE,
    ),
    key=("acted_at", "alert"),
)
SOURCES = ("mark", "log")
MARKERS = Table(
    "markers",
    "Releases: from this batch on, scores are compared with this batch and later ones only.",
    (
        Column("batch", "VARCHAR", "first batch of the release"),
        Column("text", "VARCHAR", "what changed"),
        Column(
            "source",
            "VARCHAR",
            "mark: somebody said so; log: the log's model_version changed",
            checks=(pa.Check.isin(SOURCES),),
        ),
        Column("created_at", "TIMESTAMP", "when it was noted (UTC)"),
    ),
    key=("batch", "text", "source"),
)
CHANGE_POINTS = Table(
    "change_points",
    "Where a score of whole batches changed its level, seen from the newest batch.",
    (
        *SERIES,
        Column("batch", "VARCHAR", "first batch of the new level"),
        Column("level_before", "DOUBLE", "mean of the segment before it"),
        Column("level_after", "DOUBLE", "mean of the segment from it on"),
    ),
    key=(*SERIES_KEY, "batch"),
)
ASSESSED = (
    ASSESSMENTS,
    GATES,
    TRENDS,
    ALERTS,
    ALERT_BATCHES,
    ALERT_ACTIONS,
    MARKERS,
    CHANGE_POINTS,
)
"""Tables of the history that batches together fill."""
