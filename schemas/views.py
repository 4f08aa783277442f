"""The views of the published copy: a contract with every dashboard, in versions.

A view is declared once: its columns with type and meaning, and its query.  The statements that
make it, the comments in the copy and the documentation follow from that.

Not here: tables that only the copy has (``copy``).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from schemas.columns import Column, Table, literal, quoted
from schemas.copy import ABOUT, CONCLUSIONS, DUE_AT, THRESHOLD_MAX, THRESHOLD_MIN, WORST_LISTS
from schemas.history import BATCH_STATUSES, BATCHES, HISTORY
from schemas.judged import JUDGED_OF, judged_sql
from schemas.monitoring import (
    ALERT_ORDER,
    ALERTS,
    CHANGE_POINTS,
    GATES,
    MARKERS,
    RELEASE_CHANGES,
    SERIES_KEY,
    TRENDS,
)
from schemas.scores import LABEL, STATUSES, WINDOW_SCORES

VIEWS_VERSION = 4
"""Goes up when a column or a row of a view changes its meaning, its name or its type, or goes."""


@dataclass(frozen=True)
class View(Table):
    """A view: what one row is, its columns in order, ``query`` to take them from, and ``order``.

    ``key`` are the columns that name a row.
    """

    query: str = ""
    order: str = ""

    def create(self, database: str, name: str | None = None) -> str:
        """CREATE VIEW for a ``database`` that is in use: a query that named it would be tied to it.

        The tables and views that it reads are there before it.
        """
        order = f" ORDER BY {self.order}" if self.order else ""
        return (
            f"CREATE VIEW {quoted(name or self.name)} AS "
            f"SELECT {self.column_list} FROM ({self.query}){order}"
        )

    def comments(self, database: str, name: str | None = None) -> Iterable[str]:
        """Statements that put the descriptions into the database itself."""
        first, *others = super().comments(database, name)
        yield first.replace("COMMENT ON TABLE", "COMMENT ON VIEW", 1)
        yield from others


_SCORES, _GROUPS = HISTORY
_KEY = ("batch", *SERIES_KEY)
_LABEL = Column("label", "VARCHAR", "metric and aggregation as printed: EXP.MinMaxRatio")
_RELEASE = Column("release", "VARCHAR", "what was marked last, at or before the batch", True)
_SCORE_KEY = (*_SCORES.columns[:6], _LABEL)
"""The columns that name a score, in every view that is about scores."""


def _told(table: Table) -> tuple[Column, ...]:
    """The columns of a score, with those of judged groups filled: nobody has to look at two."""
    return tuple(
        Column(
            each.name,
            each.type,
            f"{each.text}; of all groups where nothing is told of those" if named else each.text,
            each.nullable,
        )
        for each in table.columns
        for named in [each.name in JUDGED_OF.values()]
    )


_TOLD = _told(_SCORES)
_JUDGED_SQL = ", ".join(f"{sql} AS {of}" for of, sql in judged_sql().items())


def _of(table: Table, *names: str) -> tuple[Column, ...]:
    known = {column.name: column for column in table.columns}
    return tuple(known[name] for name in names)


def _perhaps(*columns: Column) -> tuple[Column, ...]:
    """The same columns, null in rows that have nothing to say there."""
    return tuple(Column(each.name, each.type, each.text, nullable=True) for each in columns)


def _same(one: str, other: str, names: Iterable[str]) -> str:
    """SQL: two rows agree in ``names``, nulls included."""
    return " AND ".join(
        f"{one}.{name} {'=' if name == 'batch' else 'IS NOT DISTINCT FROM'} {other}.{name}"
        for name in names
    )


def _count(name: str) -> Column:
    return Column(name, "BIGINT", f"current scores with status {name}")


_NOW = "make_timestamp(epoch_us(now()))"
"""The time in UTC, in any time zone of the reader and without a library of time zones."""
_RELEASES = (
    "SELECT batch, string_agg(text, '; ' ORDER BY source, text) AS release "
    "FROM markers GROUP BY batch"
)


def _released(batches: str) -> str:
    """SQL of ``batches``, each with its release and whether that begins with it."""
    return (
        f"SELECT named.batch, release, marked.batch IS NOT DISTINCT FROM named.batch AS starts "
        f"FROM (SELECT batch FROM {batches}) AS named "
        f"ASOF LEFT JOIN ({_RELEASES}) AS marked ON named.batch >= marked.batch"
    )


_HISTORY = View(
    "v_history",
    "Every current score, with the limits it was judged by.",
    (*_TOLD, _LABEL, _RELEASE, THRESHOLD_MIN, THRESHOLD_MAX),
    key=_KEY,
    query="SELECT scores.*, release, threshold_min, threshold_max "
    f"FROM (SELECT * REPLACE ({_JUDGED_SQL}), {LABEL} AS label FROM fairness_history) AS scores "
    f"LEFT JOIN ({_released('batches')}) AS released ON released.batch = scores.batch "
    "LEFT JOIN thresholds ON "
    + _same("thresholds", "scores", ("config_hash", "slice", *SERIES_KEY[2:])),
)
_COVERAGE = View(
    "v_coverage",
    "A batch that is due, or that is there.",
    (
        BATCHES.columns[0],
        Column("expected", "BOOLEAN", "whether the schedule expects it"),
        *_perhaps(DUE_AT),
        Column(
            "state",
            "VARCHAR",
            f"status of the last attempt ({', '.join(BATCH_STATUSES)}), or missing: none was made",
        ),
        Column("scored", "BOOLEAN", "whether it has scores, perhaps of an earlier attempt"),
        Column("revision", "INTEGER", "revision of these scores, 0 for none"),
        *_of(BATCHES, "message"),
        *_perhaps(*_of(BATCHES, "finished_at")),
    ),
    key=("batch",),
    query="SELECT batch, due_at IS NOT NULL AS expected, due_at, "
    "coalesce(status, 'missing') AS state, coalesce(revision, 0) > 0 AS scored, "
    "coalesce(revision, 0) AS revision, message, finished_at "
    "FROM expected_batches FULL JOIN batches USING (batch) "
    f"WHERE due_at <= {_NOW} OR status IS NOT NULL",
    order="batch",
)
_STATES = ("done", *BATCH_STATUSES[1:], "missing", "absent")
_TRENDS = ("center", "spread", "baseline", "residual", "ewma", "cusum")
_NEWS = (
    *("p_adjusted", "shift", "since", "improved", "level_before", "level_now", "outlier"),
    *("group_value", "against", "against_center", "is_ratio"),
)
_VALUES = ("value", "reason", "lower", "upper", "expected", "noise_limit", "p_noise")
_CHANCE = ("against_chance", "against_chance_lower", "against_chance_upper")
_LIMITS = ("threshold_min", "threshold_max", "status", "status_reason", "verdict")
_JUDGED = (*JUDGED_OF.values(), "judged_groups", "thin_groups")
_POWER = ("assured", "detectable", "lists_needed")
_LOSERS = ("worst_group", "best_group", "lists")
_SCORED = (*_VALUES, *_CHANCE, *_LIMITS, *_JUDGED, *_POWER, *_LOSERS)
_SERIES = ", ".join(SERIES_KEY)
_AXIS = f"(SELECT *, row_number() OVER (ORDER BY batch) AS turn FROM {_COVERAGE.name})"
_FOLLOWING = (
    f"SELECT {_SERIES}, label, turn, coalesce("
    f"lead(turn) OVER (PARTITION BY {_SERIES} ORDER BY turn), "
    f"(SELECT count(*) + 1 FROM {_COVERAGE.name})) AS following "
    f"FROM (SELECT *, {LABEL} AS label FROM fairness_history) JOIN {_AXIS} USING (batch)"
)
"""The place of each score in the row of batches, and that of the next score of its series."""
_GAPS = (
    f"SELECT axis.batch, {_SERIES}, label, "
    "CASE WHEN scored THEN 'absent' ELSE state END AS state "
    f"FROM (SELECT *, unnest(range(turn + 1, following)) AS missed FROM ({_FOLLOWING}) "
    f"WHERE following > turn + 1) AS gaps JOIN {_AXIS} AS axis ON axis.turn = missed"
)
_TREND = View(
    "v_trend",
    "One score in one batch, or the gap where it has none, from its first batch on.",
    (
        *_SCORE_KEY,
        Column(
            "state",
            "VARCHAR",
            "done: there is a row in the history; absent: the batch was scored without this "
            "score; else why there is none: missing, no_data, refused or failed",
        ),
        *_perhaps(*_of(_HISTORY, *_SCORED)),
        _RELEASE,
        Column("release_starts", "BOOLEAN", "whether a release begins with this very batch"),
        *_perhaps(*_of(TRENDS, *_TRENDS, *_NEWS)),
    ),
    key=_KEY,
    query="SELECT scores.*, released.release, starts AS release_starts, "
    f"{', '.join(f'trends.{name}' for name in (*_TRENDS, *_NEWS))} "
    f"FROM (SELECT batch, {_SERIES}, label, 'done' AS state, {', '.join(_SCORED)} "
    f"FROM v_history UNION ALL BY NAME {_GAPS}) AS scores "
    f"LEFT JOIN ({_released(_COVERAGE.name)}) AS released ON released.batch = scores.batch "
    f"LEFT JOIN trends ON {_same('trends', 'scores', _KEY)}",
)
_CHANGES = View(
    "v_changes",
    "A followed score of a batch against its baseline; the largest first, batch by batch.",
    (
        *_SCORE_KEY,
        *_of(TRENDS, "value"),
        Column("center", "DOUBLE", "what was expected"),
        *_of(TRENDS, "spread"),
        Column("change", "DOUBLE", "value minus what was expected"),
        *_of(TRENDS, "residual"),
        Column("worse", "BOOLEAN", "whether it moved to the unfair side", nullable=True),
        Column("previous", "DOUBLE", "value in the last batch before that has one", nullable=True),
        *_of(TRENDS, "baseline", *_NEWS),
        *_of(_SCORES, "status", "worst_group"),
    ),
    key=_KEY,
    query="SELECT moved.*, value - center AS change, residual > 0 AS worse, status, worst_group "
    f"FROM (SELECT *, {LABEL} AS label, "
    f"lag(value) OVER (PARTITION BY {_SERIES} ORDER BY batch) AS previous FROM trends) AS moved "
    f"JOIN (SELECT batch, {_SERIES}, status, worst_group FROM fairness_history) AS scores ON "
    f"{_same('scores', 'moved', _KEY)} WHERE center IS NOT NULL",
    order=f"batch DESC, abs(residual) DESC, {_SERIES}",
)
_BATCHES = View(
    "v_batches",
    "The last attempt at a batch, with counts of its current scores.",
    (
        *BATCHES.columns,
        Column("scores", "BIGINT", "current scores"),
        *map(_count, STATUSES),
        _RELEASE,
    ),
    key=("batch",),
    query="SELECT batches.*, release, "
    + ", ".join(f"coalesce({name}, 0) AS {name}" for name in ("scores", *STATUSES))
    + " FROM batches LEFT JOIN (SELECT batch, count(*) AS scores, "
    + ", ".join(f"count(*) FILTER (status = {literal(name)}) AS {name}" for name in STATUSES)
    + " FROM fairness_history GROUP BY batch) AS counted USING (batch) "
    f"LEFT JOIN ({_released('batches')}) AS released USING (batch)",
    order="batch",
)
_ABOUT = View(
    "v_about",
    "The copy itself: one row.",
    (
        *_of(ABOUT, "views_version", "code_version", "published_at"),
        Column("newest_batch", "VARCHAR", "newest batch that has scores", nullable=True),
        *_of(ABOUT, "timezone", "schedule_end"),
        Column("next_due_at", "TIMESTAMP", "when the next expected batch is due (UTC)", True),
        Column("generation", "VARCHAR", "digest of what the history was told to hold", True),
    ),
    key=("published_at",),
    query="SELECT *, (SELECT max(batch) FROM fairness_history) AS newest_batch, "
    f"(SELECT min(due_at) FROM expected_batches WHERE due_at > {_NOW}) AS next_due_at, "
    "(SELECT hash FROM ledger_head) AS generation FROM about",
)
_ALERT_LABEL = Column(
    "label",
    "VARCHAR",
    "the score, the group that is missing, or the gate; null for others",
    nullable=True,
)
VIEWS: tuple[View, ...] = (
    _HISTORY,
    View(
        "v_latest",
        "A score of the newest batch that has any.",
        _HISTORY.columns,
        key=_KEY,
        query="FROM v_history WHERE batch = (SELECT max(batch) FROM fairness_history)",
    ),
    View(
        "v_breaches",
        "A score that breaches its threshold.",
        _HISTORY.columns,
        key=_KEY,
        query="FROM v_history WHERE status = 'breach'",
    ),
    _COVERAGE,
    _TREND,
    View(
        "v_groups",
        "The value of a group behind the scores.",
        _GROUPS.columns,
        key=_GROUPS.key,
        query=f"FROM {_GROUPS.name}",
    ),
    _CHANGES,
    View(
        "v_lists",
        "An entry of one of the worst lists of the newest batch, the first 50 ranks of ten.",
        WORST_LISTS.columns,
        key=WORST_LISTS.key,
        query=f"FROM {WORST_LISTS.name}",
        order="attribute, place, rank, item_id",
    ),
    _BATCHES,
    View(
        "v_alerts",
        "An alert: open ones first; new before old, whole before slices, larger before smaller.",
        (*ALERTS.columns, _ALERT_LABEL),
        key=ALERTS.key,
        query=f"SELECT *, {LABEL} AS label FROM alerts",
        order=f"state <> 'open', {ALERT_ORDER}",
    ),
    View(
        "v_gates",
        "What a gate says about a batch.",
        GATES.columns,
        key=GATES.key,
        query="FROM gates",
    ),
    View(
        "v_markers",
        "A release, the newest first.",
        MARKERS.columns,
        key=MARKERS.key,
        query="FROM markers",
        order="batch DESC, source, text",
    ),
    View(
        "v_release_changes",
        "What a release changed for a group: before and after, with an interval.",
        (*RELEASE_CHANGES.columns, _RELEASE),
        key=RELEASE_CHANGES.key,
        query="SELECT release_changes.*, release FROM release_changes "
        f"LEFT JOIN ({_released('batches')}) AS released USING (batch)",
        order="batch DESC, attribute, metric, group_value",
    ),
    View(
        "v_windows",
        "A score of the last days together, from their counts added up.",
        (
            *_told(WINDOW_SCORES),
            _LABEL,
            Column(
                "releases",
                "VARCHAR",
                "first batches of the releases that began within it, with commas between",
                nullable=True,
            ),
        ),
        key=WINDOW_SCORES.key,
        query=f"SELECT * REPLACE ({_JUDGED_SQL}), {LABEL} AS label, "
        "(SELECT string_agg(DISTINCT markers.batch, ', ' ORDER BY markers.batch) FROM markers "
        "WHERE markers.batch > first_day AND markers.batch <= window_scores.batch) AS releases "
        "FROM window_scores",
        order="batch DESC, days, slice, slice_value, attribute, label",
    ),
    View(
        "v_change_points",
        "A change of level of a score of whole batches.",
        (*CHANGE_POINTS.columns, _LABEL),
        key=CHANGE_POINTS.key,
        query=f"SELECT *, {LABEL} AS label FROM change_points",
    ),
    View(
        "v_trends",
        "A followed score against the batches before it, as queries of alerts read it; v_trend is "
        "for everybody else.",
        (*TRENDS.columns, _LABEL),
        key=TRENDS.key,
        query=f"SELECT *, {LABEL} AS label FROM trends",
    ),
    View(
        "v_conclusions",
        "What a batch comes to, in sentences: every batch that is due or that is there.",
        CONCLUSIONS.columns,
        key=CONCLUSIONS.key,
        query="FROM conclusions UNION ALL BY NAME SELECT batch, 'missing' AS state, '○' AS sign, "
        "'Missing' AS word, '' AS note, 'Nobody has run ' || batch || '.' AS sentence, "
        "'`evenrank run --batch ' || batch || '` audits it, once its logs are there.' AS second, "
        "'○ Nobody has run ' || batch AS title, '[]' AS facts, "
        "(SELECT max(batch) FROM fairness_history WHERE batch < v_coverage.batch) AS shown_batch "
        "FROM v_coverage WHERE state = 'missing'",
        order="batch DESC",
    ),
    _ABOUT,
)
"""In an order in which each can be made: what a view reads comes before it."""
