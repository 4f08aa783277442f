"""The views of the published copy: a contract with every dashboard, in versions.

A view is declared once: its columns with type and meaning, and its query.  The statements that
make it, the comments in the copy and the documentation follow from that.

Not here: tables that only the copy has (``copy``).
"""

from schemas.columns import Column, Table, literal
from schemas.copy import (
    ABOUT,
    CONCLUSIONS,
    DUE_AT,
    SCORE_CATALOGUE,
    THRESHOLD_MAX,
    THRESHOLD_MIN,
    TIMES,
    WORST_LISTS,
)
from schemas.history import BATCH_STATUSES, BATCHES, HISTORY
from schemas.judged import JUDGED_OF
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
from schemas.overviews import FRESHNESS, METRICS, RELEASE_SCORES
from schemas.scores import LABEL, STATUSES, WINDOW_SCORES
from schemas.usual import USUAL
from schemas.view import (
    JUDGED_SQL,
    LABELLED,
    NOW,
    RELEASE,
    SCORE_KEY,
    View,
    of,
    perhaps,
    same,
)

VIEWS_VERSION = 4
"""Goes up when a column or a row of a view changes its meaning, its name or its type, or goes."""


_SCORES, _GROUPS = HISTORY
_KEY = ("batch", *SERIES_KEY)


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


def _count(name: str) -> Column:
    return Column(name, "BIGINT", f"current scores with status {name}")


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


_TIMED = "LEFT JOIN batch_times ON batch_times.batch = {}.batch"
_SIDED = "LEFT JOIN score_catalogue ON score_catalogue.label = {}.label"
_SIDE = of(SCORE_CATALOGUE, "direction", "fairest")
_MARGIN = Column(
    "margin",
    "DOUBLE",
    "how far the judged score is within its limit, in its own units; negative beyond it, null "
    "without one",
    nullable=True,
)
_MARGIN_SQL = "least(judged_value - threshold_min, threshold_max - judged_value)"
_HISTORY = View(
    "v_history",
    "Every current score, with the limits it was judged by.",
    (*_TOLD, LABELLED, RELEASE, THRESHOLD_MIN, THRESHOLD_MAX, *TIMES, *_SIDE, _MARGIN),
    key=_KEY,
    query="SELECT scores.*, release, threshold_min, threshold_max, "
    f"batch_start, batch_end, day, direction, fairest, {_MARGIN_SQL} AS margin "
    f"FROM (SELECT * REPLACE ({JUDGED_SQL}), {LABEL} AS label FROM fairness_history) AS scores "
    f"LEFT JOIN ({_released('batches')}) AS released ON released.batch = scores.batch "
    "LEFT JOIN thresholds ON "
    + same("thresholds", "scores", ("config_hash", "slice", *SERIES_KEY[2:]))
    + f" {_TIMED.format('scores')} {_SIDED.format('scores')}",
)
_COVERAGE = View(
    "v_coverage",
    "A batch that is due, or that is there.",
    (
        BATCHES.columns[0],
        Column("expected", "BOOLEAN", "whether the schedule expects it"),
        *perhaps(DUE_AT),
        Column(
            "state",
            "VARCHAR",
            f"status of the last attempt ({', '.join(BATCH_STATUSES)}), or missing: none was made",
        ),
        Column("scored", "BOOLEAN", "whether it has scores, perhaps of an earlier attempt"),
        Column("revision", "INTEGER", "revision of these scores, 0 for none"),
        *of(BATCHES, "message"),
        *perhaps(*of(BATCHES, "finished_at")),
        *TIMES,
    ),
    key=("batch",),
    query="SELECT batch, due_at IS NOT NULL AS expected, due_at, "
    "coalesce(status, 'missing') AS state, coalesce(revision, 0) > 0 AS scored, "
    "coalesce(revision, 0) AS revision, message, finished_at, batch_start, batch_end, day "
    "FROM expected_batches FULL JOIN batches USING (batch) LEFT JOIN batch_times USING (batch) "
    f"WHERE due_at <= {NOW} OR status IS NOT NULL",
    order="batch",
)
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
        *SCORE_KEY,
        Column(
            "state",
            "VARCHAR",
            "done: there is a row in the history; absent: the batch was scored without this "
            "score; else why there is none: missing, no_data, refused or failed",
        ),
        *perhaps(*of(_HISTORY, *_SCORED)),
        RELEASE,
        Column("release_starts", "BOOLEAN", "whether a release begins with this very batch"),
        *perhaps(*of(TRENDS, *_TRENDS, *_NEWS)),
        *TIMES,
        *_SIDE,
        _MARGIN,
    ),
    key=_KEY,
    query="SELECT scores.*, released.release, starts AS release_starts, "
    "batch_start, batch_end, day, direction, fairest, "
    f"{', '.join(f'trends.{name}' for name in (*_TRENDS, *_NEWS))} "
    f"FROM (SELECT batch, {_SERIES}, label, 'done' AS state, {', '.join(_SCORED)}, margin "
    f"FROM v_history UNION ALL BY NAME {_GAPS}) AS scores "
    f"LEFT JOIN ({_released(_COVERAGE.name)}) AS released ON released.batch = scores.batch "
    f"LEFT JOIN trends ON {same('trends', 'scores', _KEY)} "
    f"{_TIMED.format('scores')} {_SIDED.format('scores')}",
)
_CHANGES = View(
    "v_changes",
    "A followed score of a batch against its baseline; the largest first, batch by batch.",
    (
        *SCORE_KEY,
        *of(TRENDS, "value"),
        Column("center", "DOUBLE", "what was expected"),
        *of(TRENDS, "spread"),
        Column("change", "DOUBLE", "value minus what was expected"),
        *of(TRENDS, "residual"),
        Column("worse", "BOOLEAN", "whether it moved to the unfair side", nullable=True),
        Column("previous", "DOUBLE", "value in the last batch before that has one", nullable=True),
        *of(TRENDS, "baseline", *_NEWS),
        *of(_SCORES, "status", "worst_group"),
    ),
    key=_KEY,
    query="SELECT moved.*, value - center AS change, residual > 0 AS worse, status, worst_group "
    f"FROM (SELECT *, {LABEL} AS label, "
    f"lag(value) OVER (PARTITION BY {_SERIES} ORDER BY batch) AS previous FROM trends) AS moved "
    f"JOIN (SELECT batch, {_SERIES}, status, worst_group FROM fairness_history) AS scores ON "
    f"{same('scores', 'moved', _KEY)} WHERE center IS NOT NULL",
    order=f"batch DESC, abs(residual) DESC, {_SERIES}",
)
_BATCHES = View(
    "v_batches",
    "The last attempt at a batch, with counts of its current scores.",
    (
        *BATCHES.columns,
        Column("scores", "BIGINT", "current scores"),
        *map(_count, STATUSES),
        RELEASE,
        *TIMES,
    ),
    key=("batch",),
    query="SELECT batches.*, release, batch_start, batch_end, day, "
    + ", ".join(f"coalesce({name}, 0) AS {name}" for name in ("scores", *STATUSES))
    + " FROM batches LEFT JOIN (SELECT batch, count(*) AS scores, "
    + ", ".join(f"count(*) FILTER (status = {literal(name)}) AS {name}" for name in STATUSES)
    + " FROM fairness_history GROUP BY batch) AS counted USING (batch) "
    f"LEFT JOIN ({_released('batches')}) AS released USING (batch) "
    "LEFT JOIN batch_times USING (batch)",
    order="batch",
)
_ABOUT = View(
    "v_about",
    "The copy itself: one row.",
    (
        *of(ABOUT, "views_version", "code_version", "published_at"),
        Column("newest_batch", "VARCHAR", "newest batch that has scores", nullable=True),
        *of(ABOUT, "timezone", "schedule_end"),
        Column("next_due_at", "TIMESTAMP", "when the next expected batch is due (UTC)", True),
        Column("generation", "VARCHAR", "digest of what the history was told to hold", True),
        Column(
            "newest_end",
            "TIMESTAMP",
            "when the newest day, or hour, with scores ended (UTC)",
            nullable=True,
        ),
    ),
    key=("published_at",),
    query="SELECT *, (SELECT max(batch) FROM fairness_history) AS newest_batch, "
    f"(SELECT min(due_at) FROM expected_batches WHERE due_at > {NOW}) AS next_due_at, "
    "(SELECT hash FROM ledger_head) AS generation, "
    "(SELECT max(batch_end) FROM batches JOIN batch_times USING (batch) WHERE revision > 0) "
    "AS newest_end FROM about",
)
_ALERT_LABEL = Column(
    "label",
    "VARCHAR",
    "the score, the group that is missing, or the gate; null for others",
    nullable=True,
)
_NOW_ALLOWED = (
    Column(
        "threshold_min",
        "DOUBLE",
        "least acceptable value of reading_of by the settings of the newest batch; null without",
        nullable=True,
    ),
    Column("threshold_max", "DOUBLE", "greatest acceptable value by the same", nullable=True),
)
_LIMITS_NOW = (
    f"SELECT slice, attribute, {LABEL} AS reading_of, threshold_min, threshold_max FROM thresholds "
    "WHERE config_hash = (SELECT arg_max(config_hash, batch) FROM batches WHERE revision > 0)"
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
    USUAL,
    METRICS,
    View(
        "v_groups",
        "The value of a group behind the scores.",
        (*_GROUPS.columns, *TIMES),
        key=_GROUPS.key,
        query=f"FROM {_GROUPS.name} LEFT JOIN batch_times USING (batch)",
    ),
    _CHANGES,
    View(
        "v_lists",
        "An entry of one of the worst lists of a batch, the first 50 ranks of ten; newest first.",
        WORST_LISTS.columns,
        key=WORST_LISTS.key,
        query=f"FROM {WORST_LISTS.name}",
        order="batch DESC, attribute, place, rank, item_id",
    ),
    _BATCHES,
    View(
        "v_alerts",
        "An alert: open ones first; new before old, whole before slices, larger before smaller.",
        (
            *ALERTS.columns,
            _ALERT_LABEL,
            Column("latest_batch", "VARCHAR", "the batch of latest_value: last_seen"),
            *_NOW_ALLOWED,
            *of(SCORE_CATALOGUE, "plain", "direction"),
        ),
        key=ALERTS.key,
        query="SELECT alerts.*, last_seen AS latest_batch, plain, direction, "
        f"threshold_min, threshold_max FROM (SELECT *, {LABEL} AS label FROM alerts) AS alerts "
        "LEFT JOIN (SELECT label AS reading_of, plain, direction FROM score_catalogue) "
        f"USING (reading_of) LEFT JOIN ({_LIMITS_NOW}) AS limits "
        f"ON {same('limits', 'alerts', ('reading_of', 'slice', 'attribute'))}",
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
        (*MARKERS.columns, *TIMES),
        key=MARKERS.key,
        query="FROM markers LEFT JOIN batch_times USING (batch)",
        order="batch DESC, source, text",
    ),
    View(
        "v_release_changes",
        "What a release changed for a group: before and after, with an interval.",
        (*RELEASE_CHANGES.columns, RELEASE),
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
            LABELLED,
            Column(
                "releases",
                "VARCHAR",
                "first batches of the releases that began within it, with commas between",
                nullable=True,
            ),
        ),
        key=WINDOW_SCORES.key,
        query=f"SELECT * REPLACE ({JUDGED_SQL}), {LABEL} AS label, "
        "(SELECT string_agg(DISTINCT markers.batch, ', ' ORDER BY markers.batch) FROM markers "
        "WHERE markers.batch > first_day AND markers.batch <= window_scores.batch) AS releases "
        "FROM window_scores",
        order="batch DESC, days, slice, slice_value, attribute, label",
    ),
    View(
        "v_change_points",
        "A change of level of a score of whole batches.",
        (*CHANGE_POINTS.columns, LABELLED),
        key=CHANGE_POINTS.key,
        query=f"SELECT *, {LABEL} AS label FROM change_points",
    ),
    View(
        "v_trends",
        "A followed score against the batches before it, as queries of alerts read it; v_trend is "
        "for everybody else.",
        (*TRENDS.columns, LABELLED),
        key=TRENDS.key,
        query=f"SELECT *, {LABEL} AS label FROM trends",
    ),
    View(
        "v_conclusions",
        "What a batch comes to, in sentences: every batch that is due or that is there.",
        (*CONCLUSIONS.columns, *TIMES),
        key=CONCLUSIONS.key,
        query="FROM (FROM conclusions UNION ALL BY NAME SELECT batch, 'missing' AS state, "
        "'○' AS sign, 'Missing' AS word, '' AS note, "
        "'Nobody has run ' || batch || '.' AS sentence, "
        "'`evenrank run --batch ' || batch || '` audits it, once its logs are there.' AS second, "
        "'○ Nobody has run ' || batch AS title, '[]' AS facts, "
        "(SELECT max(batch) FROM batches WHERE revision > 0 AND batch < v_coverage.batch) "
        "AS shown_batch "
        "FROM v_coverage WHERE state = 'missing') LEFT JOIN batch_times USING (batch)",
        order="batch DESC",
    ),
    RELEASE_SCORES,
    FRESHNESS,
    _ABOUT,
)
"""In an order in which each can be made: what a view reads comes before it."""
