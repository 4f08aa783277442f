"""The view that says what is usual of a score: robustly, so that one bad day does not move it.

Trends have an expectation of their own, which alerts go by (``pipeline.trends``): a mean without
outliers, with a standard error.  This one is for people, and needs nothing but the scores.

Not here: other views (``views``).
"""

from schemas.columns import Column
from schemas.copy import TIMES
from schemas.monitoring import SERIES_KEY
from schemas.scores import LABEL
from schemas.view import JUDGED_SQL, SCORE_KEY, View

BEFORE = 28
"""Scored batches that are looked back on: four weeks, so that each day of the week counts alike."""
LEAST = 7
"""Fewer before it say nothing of what is usual: a week of days, each day of the week once."""
FAR = 3 * 1.4826
"""Median absolute deviations to either side: three standard deviations, were they normal."""
_ROUNDING = 1e-9

_SERIES = ", ".join(SERIES_KEY)
SCORED_BATCHES = (
    "SELECT *, count(*) FILTER (NOT gated) OVER (PARTITION BY release_batch ORDER BY batch "
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS turn FROM ("
    "SELECT scored.batch, marked.batch AS release_batch, "
    "scored.batch IN (SELECT batch FROM gates WHERE NOT passed) AS gated "
    "FROM (SELECT batch FROM batches WHERE revision > 0) AS scored "
    "ASOF LEFT JOIN (SELECT DISTINCT batch FROM markers) AS marked "
    "ON scored.batch >= marked.batch)"
)
"""Scored batches, their release and whether a gate kept them out, and how many of the same release
came before each that no gate did."""
_PAIRS = (
    f"WITH scored AS ({SCORED_BATCHES}) "
    "SELECT one.batch, other.batch AS read, one.batch = other.batch AS own "
    "FROM scored AS one JOIN scored AS other "
    "ON one.release_batch IS NOT DISTINCT FROM other.release_batch "
    "AND (one.batch = other.batch OR (NOT other.gated AND other.turn < one.turn "
    f"AND other.turn >= one.turn - {BEFORE}))"
)
"""Each scored batch with itself, and with those that say what is usual."""
_READ = (
    f"SELECT pairs.batch, {_SERIES}, "
    "max(judged_value) FILTER (own) AS value, "
    "max(judged_upper - judged_lower) FILTER (own) AS width, "
    "count(judged_value) FILTER (NOT own) AS usual_count, "
    "median(judged_value) FILTER (NOT own) AS middle, "
    "mad(judged_value) FILTER (NOT own) AS deviation "
    f"FROM ({_PAIRS}) AS pairs "
    f"JOIN (SELECT batch, {_SERIES}, {JUDGED_SQL} FROM fairness_history) AS scores "
    "ON scores.batch = pairs.read "
    f"GROUP BY pairs.batch, {_SERIES} HAVING bool_or(own)"
)
_BANDED = (
    f"SELECT *, {LABEL} AS label, CASE WHEN usual_count >= {LEAST} THEN middle END AS usual, "
    f"greatest({FAR!r} * deviation, width / 2) AS reach FROM ({_READ})"
)
USUAL = View(
    "v_usual",
    "A score and what is usual of it: the median of the batches before it.",
    (
        *SCORE_KEY,
        Column("value", "DOUBLE", "the score, of the judged groups where these differ", True),
        Column(
            "usual",
            "DOUBLE",
            f"median of the same in up to {BEFORE} scored batches before it, gated ones and those "
            f"before the last release left out; null with fewer than {LEAST} values",
            nullable=True,
        ),
        Column("usual_count", "BIGINT", "values that this is the median of, or would be"),
        Column(
            "usual_low",
            "DOUBLE",
            "usual less 3 x 1.4826 median absolute deviations, or less half the width of the "
            "score's interval if that is more; no less than the score can be",
            nullable=True,
        ),
        Column("usual_high", "DOUBLE", "the same above it", nullable=True),
        Column(
            "moved_beyond",
            "BOOLEAN",
            "whether the value lies outside; null where nobody knows",
            nullable=True,
        ),
        *TIMES,
    ),
    key=("batch", *SERIES_KEY),
    # greatest() and least() pass nulls over, which is right for a range without an end only.
    query="SELECT read.*, batch_start, batch_end, day, "
    "CASE WHEN usual IS NOT NULL THEN greatest(usual - reach, range_low) END AS usual_low, "
    "CASE WHEN usual IS NOT NULL THEN least(usual + reach, range_high) END AS usual_high, "
    f"abs(value - usual) > reach + {_ROUNDING!r} * abs(usual) AS moved_beyond "
    f"FROM ({_BANDED}) AS read LEFT JOIN score_catalogue USING (label) "
    "LEFT JOIN batch_times USING (batch)",
)
