"""Tables of what the history's batches say about each other: gates, trends, alerts, releases.

Not here: what one batch says by itself (``scores``).
"""

import pandera.pandas as pa

from schemas.columns import Column, Table
from schemas.scores import WINDOW_SCORES

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
        "metric that breaches, group that is missing, gate that failed, or first batch of a "
        "release; null for a shift, a flip or an improvement, which is of the attribute and slice "
        "as a whole",
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
        Column("baseline", "BIGINT", "batches that the expectation comes from, outliers left out"),
        Column("weekday", "BOOLEAN", "whether it is that of the day of the week"),
        Column(
            "residual",
            "DOUBLE",
            "distance in standard errors, positive when unfair: of the group named here against "
            "the others, or of a score without groups; never capped",
            nullable=True,
        ),
        Column("ewma", "DOUBLE", "moving average of the distances, standardised", nullable=True),
        Column("cusum", "DOUBLE", "cumulative sum of the distances; below 0 if improved", True),
        Column("p_value", "DOUBLE", "probability of charts like these if nothing moved", True),
        Column("p_adjusted", "DOUBLE", "the same, for the number of series tested", nullable=True),
        Column("family", "VARCHAR", "whole, slices, or covered by the whole batch's shift", True),
        Column("family_size", "BIGINT", "series tested together"),
        Column("chart", "VARCHAR", "chart that says most: " + ", ".join(CHART_NAMES), True),
        Column("since", "VARCHAR", "batch in which the shift began, if it is one", nullable=True),
        Column("shift", "BOOLEAN", "whether it is news: a discovery among all series tested"),
        Column(
            "improved", "BOOLEAN", "whether it is clearly fairer than usual: news the other way"
        ),
        Column(
            "level_before", "DOUBLE", "median before it began; null without shift or gain", True
        ),
        Column("level_now", "DOUBLE", "median since it began; null without shift or gain", True),
        Column(
            "outlier", "BOOLEAN", "whether it is far out and the batch before was not: see docs"
        ),
        Column(
            "group_value",
            "VARCHAR",
            "the group whose chart says most; of two the one that falls behind, or catches up if "
            "improved; null where the score has no groups",
            nullable=True,
        ),
        Column(
            "against",
            "DOUBLE",
            "its value over the mean of the other groups', or less it; null where they have none",
            nullable=True,
        ),
        Column("against_center", "DOUBLE", "what was expected of that", nullable=True),
        Column("is_ratio", "BOOLEAN", "whether it is over that mean, or less it", nullable=True),
    ),
    key=("batch", *SERIES_KEY),
)
KINDS = ("gate", "night", "missing", "release", "breach", "window", "flip", "shift", "improvement")
"""What an alert can be about, what decides about most first: a gate, a batch without scores, a
group without any row, a release that changed something, a threshold passed, one passed by several
days together, another group losing, a score moved, a score clearly fairer than usual."""
ALERT_ORDER = (
    "opened DESC, slice <> 'all', list_position(["
    + ", ".join(f"'{kind}'" for kind in KINDS)
    + "], kind), size DESC NULLS LAST, attribute NULLS FIRST, metric, alert"
)
"""Alerts in SQL: new before old, whole batches before slices, larger before smaller."""
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
        Column(
            "supersedes",
            "VARCHAR",
            "the alert in whose place it came: another group loses, or it got clearly worse",
            nullable=True,
        ),
        Column(
            "former_loser",
            "VARCHAR",
            "the group that was worst off until then, where it is another one now",
            nullable=True,
        ),
        Column(
            "reading_of",
            "VARCHAR",
            "the score that its readings are of; null where it is about no score",
            nullable=True,
        ),
        Column("worst_value", "DOUBLE", "that score at its worst; null for no value", True),
        Column("worst_batch", "VARCHAR", "the batch in which that was", nullable=True),
        Column("worst_loser", "VARCHAR", "the group that was worst off then", nullable=True),
        Column("size", "DOUBLE", "the largest distance of its batches: see alert_batches", True),
        Column("latest_value", "DOUBLE", "that score in the last batch it was seen in", True),
        Column("latest_loser", "VARCHAR", "the group that was worst off then", nullable=True),
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
    (
        ALERT,
        BATCH,
        TEXT,
        QUERY,
        Column("reading_of", "VARCHAR", "the score that was read; null where it is of none", True),
        Column("value", "DOUBLE", "that score; of a breach, the judged one", nullable=True),
        Column("lower", "DOUBLE", "lower end of its interval", nullable=True),
        Column("upper", "DOUBLE", "upper end of its interval", nullable=True),
        Column("loser", "VARCHAR", "the group that is worst off", nullable=True),
        Column(
            "distance",
            "DOUBLE",
            "how far the score is from its limit, as a share of that; of a shift, from what was "
            "expected, in standard errors",
            nullable=True,
        ),
    ),
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
RELEASE_CHANGES = Table(
    "release_changes",
    "What a release changed for a group of the whole batch, against the last batch before it.",
    (
        Column("batch", "VARCHAR", "first batch of the release"),
        Column("batch_before", "VARCHAR", "the last batch before it that no gate kept out"),
        Column("attribute", "VARCHAR", "attribute, as printed"),
        Column("metric", "VARCHAR", "metric with its parameters, as printed"),
        Column("group_value", "VARCHAR", "the group"),
        Column("value_before", "DOUBLE", "the group's value in batch_before"),
        Column("value_after", "DOUBLE", "the group's value in batch"),
        Column(
            "is_ratio",
            "BOOLEAN",
            "whether groups are compared by ratios, as the followed score does, or by differences",
        ),
        Column(
            "against_before", "DOUBLE", "that value over the mean of the other groups', or less it"
        ),
        Column("against_after", "DOUBLE", "the same in batch"),
        Column("change", "DOUBLE", "against_after less against_before"),
        Column(
            "lower",
            "DOUBLE",
            "lower end of the interval of the change, of the same queries; the intervals of all "
            "groups hold at once",
            nullable=True,
        ),
        Column("upper", "DOUBLE", "upper end of that interval", nullable=True),
        Column("changed", "BOOLEAN", "whether that is beyond chance"),
    ),
    key=("batch", "attribute", "metric", "group_value"),
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
    RELEASE_CHANGES,
    WINDOW_SCORES,
    CHANGE_POINTS,
)
"""Tables of the history that batches together fill."""
