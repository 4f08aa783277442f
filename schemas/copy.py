"""Tables that the published copy has beside those of the history: what its views need to know.

Not here: the views (``views``), and filling the tables (``pipeline.publish``).
"""

from schemas.columns import Column, Table
from schemas.monitoring import BATCH, SERIES_KEY
from schemas.scores import FAIRNESS_HISTORY
from schemas.tables import ATTRIBUTE

DUE_AT = Column("due_at", "TIMESTAMP", "when its scores begin to be late (UTC)")
EXPECTED_BATCHES = Table(
    "expected_batches",
    "Days that the schedule expects, to come ones too.",
    (BATCH, DUE_AT),
    key=("batch",),
)
TIMES = (
    Column(
        "batch_start",
        "TIMESTAMP",
        "start of the day or hour that the batch is named after (UTC); null for other names",
        nullable=True,
    ),
    Column("batch_end", "TIMESTAMP", "its end (UTC)", nullable=True),
    Column("day", "DATE", "the day that the batch is; null for hours and other names", True),
)
BATCH_TIMES = Table(
    "batch_times",
    "When the days and hours are that batches are named after.",
    (BATCH, *TIMES),
    key=("batch",),
)
THRESHOLD_MIN = Column(
    "threshold_min", "DOUBLE", "least acceptable value, as it was then; null without", True
)
THRESHOLD_MAX = Column(
    "threshold_max", "DOUBLE", "greatest acceptable value, as it was then; null without", True
)
THRESHOLDS = Table(
    "thresholds",
    "What scores were judged by: one row per settings, slice column, attribute and score.",
    (
        Column("config_hash", "VARCHAR", "digest of the settings that numbers depend on"),
        Column("slice", "VARCHAR", "slice column, or 'all' for the whole batch"),
        Column("attribute", "VARCHAR", "attribute; null for metrics without groups", nullable=True),
        Column("metric", "VARCHAR", "metric with its parameters, as printed: AWRF(p=0.1)"),
        Column("aggregation", "VARCHAR", "aggregation or reading; null where there is none", True),
        THRESHOLD_MIN,
        THRESHOLD_MAX,
    ),
    key=("config_hash", "slice", "attribute", "metric", "aggregation"),
)
SCORE_CATALOGUE = Table(
    "score_catalogue",
    "A score that the history holds or the settings compute: what it is, in numbers and words.",
    (
        Column("label", "VARCHAR", "metric and aggregation as printed: EXP.MinMaxRatio"),
        Column("metric", "VARCHAR", "metric with its parameters, as printed: AWRF(p=0.1)"),
        Column("aggregation", "VARCHAR", "aggregation or reading; null where there is none", True),
        Column("family", "VARCHAR", "the family that its metric is of", nullable=True),
        Column("title", "VARCHAR", "title of its metric, as in the literature", nullable=True),
        Column("plain", "VARCHAR", "its name in everyday words: exposure ratio", nullable=True),
        Column(
            "sentence",
            "VARCHAR",
            "what it says of a {value}, and of the groups with the {low} and the {high} end",
            nullable=True,
        ),
        Column("unit", "VARCHAR", "how a value reads in the sentence: percent, times ...", True),
        Column("formula", "VARCHAR", "its formula; V is the value of a group", nullable=True),
        Column("range_low", "DOUBLE", "least value it can have; null without an end", True),
        Column("range_high", "DOUBLE", "greatest value it can have; null without an end", True),
        Column("fairest", "DOUBLE", "value of a perfect ranking; null where there is none", True),
        Column(
            "direction",
            "VARCHAR",
            "the unfair side, low or high; null where neither is",
            nullable=True,
        ),
        Column("source", "VARCHAR", "where its metric comes from", nullable=True),
        Column("needs", "VARCHAR", "log columns it cannot do without; null for none", True),
    ),
    key=("label",),
)
WORST_LISTS = Table(
    "worst_lists",
    "Entries of the lists, batch by batch, in which a group lacks most exposure.",
    (
        BATCH,
        ATTRIBUTE,
        Column("place", "BIGINT", "place of the list, 1 = worst"),
        Column("list_id", "VARCHAR", "the list, as stored"),
        Column("losing_group", "VARCHAR", "group that lacks most exposure in the list"),
        Column(
            "shortfall",
            "DOUBLE",
            "exposure that it lacks: its share of the list's rows times the list's exposure, minus "
            "its own; where the top is the bad outcome, what it has too much",
        ),
        Column("length", "BIGINT", "rows of the list"),
        Column("rank", "BIGINT", "rank, 1 = top"),
        Column("item_id", "VARCHAR", "the item shown, as stored"),
        Column("group_value", "VARCHAR", "group of the item"),
        Column("relevance", "DOUBLE", "its relevance; null where unknown", nullable=True),
        Column("click", "DOUBLE", "its clicks; null where unknown", nullable=True),
        Column("query_id", "VARCHAR", "the query of the list, as stored; the list without one"),
        Column("slices", "VARCHAR", "the list's value of each slice column, as a JSON object"),
    ),
    key=("batch", "attribute", "place", "item_id"),
)
_SCORE_COLUMNS = {
    column.name: column for column in FAIRNESS_HISTORY.columns if column.name in SERIES_KEY
}
CONCLUSIONS = Table(
    "conclusions",
    "What a batch comes to: one row per batch that was attempted.",
    (
        BATCH,
        Column(
            "state",
            "VARCHAR",
            "new_breach, breach, reversal, gated, window, composition, "
            "insufficient, undefined, calm, no_limits, withheld, refused, no_data, failed; in the "
            "view missing, too",
        ),
        Column("sign", "VARCHAR", "the sign of the state"),
        Column("word", "VARCHAR", "the state in a word or two"),
        Column("note", "VARCHAR", "how many scores were judged, and how"),
        Column("sentence", "VARCHAR", "the verdict in one sentence"),
        Column("emphasis", "VARCHAR", "the number in it that matters", nullable=True),
        Column("second", "VARCHAR", "the limit, what is usual, what chance may do"),
        Column("small", "VARCHAR", "the score that speaks, as small print", nullable=True),
        Column("title", "VARCHAR", "the sentence with its sign and its day, for a subject line"),
        *(
            Column(name, "VARCHAR", f"{_SCORE_COLUMNS[name].text}, of the score that speaks", True)
            for name in SERIES_KEY
        ),
        Column("label", "VARCHAR", "that score as printed: EXP.MinMaxRatio", nullable=True),
        Column("value", "DOUBLE", "its judged value", nullable=True),
        Column("lower", "DOUBLE", "lower end of its interval", nullable=True),
        Column("upper", "DOUBLE", "upper end of it", nullable=True),
        THRESHOLD_MIN,
        THRESHOLD_MAX,
        Column("usual", "DOUBLE", "median of the batches before, up to 28", nullable=True),
        Column("loser", "VARCHAR", "the group that is worst off", nullable=True),
        Column("winner", "VARCHAR", "the group that is best off", nullable=True),
        Column("since", "VARCHAR", "first batch of the breach", nullable=True),
        Column("worst_batch", "VARCHAR", "its worst batch so far", nullable=True),
        Column("worst_value", "DOUBLE", "the value in that", nullable=True),
        Column("alert", "VARCHAR", "the alert that is about it", nullable=True),
        Column("explain", "VARCHAR", "the command that says why", nullable=True),
        Column("acknowledge", "VARCHAR", "the command that acknowledges the alert", nullable=True),
        Column(
            "facts",
            "VARCHAR",
            "a JSON array of name, text and more: since when, where worst, "
            "what else, whether the data are sound",
        ),
        Column("shown_batch", "VARCHAR", "the newest batch with scores, up to this one", True),
    ),
    key=("batch",),
)
LISTED_BATCHES = Table(
    "listed_batches",
    "Batches whose file was searched for the worst lists, and what these were made of.",
    (
        BATCH,
        Column("input_hash", "VARCHAR", "digest of the delivered files"),
        Column("file_hash", "VARCHAR", "digest of the batch file"),
        Column(
            "made_by",
            "VARCHAR",
            "digest of the settings and rules that decide on them",
        ),
    ),
    key=("batch",),
)
ABOUT = Table(
    "about",
    "How the copy came to be: one row.",
    (
        Column("views_version", "INTEGER", "version of the views; see docs/tables.md"),
        Column("code_version", "VARCHAR", "version of the code that wrote the copy"),
        Column("published_at", "TIMESTAMP", "when it was written (UTC)"),
        Column("timezone", "VARCHAR", "time zone of the days"),
        Column("schedule_end", "VARCHAR", "last expected day; null where days go on", True),
        Column("deadline_hours", "BIGINT", "hours after the end of a day until it is due"),
        Column("schedule", "VARCHAR", "the settings that say which days are expected, as JSON"),
        Column("settings", "VARCHAR", "the other settings that the copy follows, as JSON"),
    ),
    key=("published_at",),
)
COPY_TABLES = (
    EXPECTED_BATCHES,
    BATCH_TIMES,
    THRESHOLDS,
    SCORE_CATALOGUE,
    WORST_LISTS,
    LISTED_BATCHES,
    CONCLUSIONS,
    ABOUT,
)
"""Everything that the copy holds beside tables of the history."""
