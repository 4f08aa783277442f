"""Years of history made out of one night that was audited, in SQL: no log is read for them."""

import random
from collections.abc import Sequence

import duckdb
from histories import believed
from stores import Rows, ranking

from pipeline.history.opening import open_history
from pipeline.settings.audit import Settings
from schemas.monitoring import SERIES_KEY

SELLERS, REGIONS = ("F", "M", "X"), ("north", "east", "south", "west", "abroad")
SLICES = {
    "device": [f"device {n}" for n in range(10)],
    "market": [f"market {n}" for n in range(10)],
    "channel": [f"channel {n}" for n in range(10)],
    "age": [f"{n}0s" for n in range(10)],
}
GAPS = {"missing": (200, 201, 431, 700, 1000), "no_data": (500, 501), "refused": (610,)}
"""Nights without scores, counted from the first, and what the manifest says of them."""
RELEASES = (90, 180, 300, 400, 520, 640, 760, 850, 940, 1040)
UNFAIR = (120, 121, 122, 480, 650, 651, 900, 1080)
"""Nights on which the first seller loses exposure in every slice."""


def years_lists() -> Rows:
    """Lists of one night: each value of each slice has some."""
    draw = random.Random(1)
    found: Rows = []
    for at in range(400):
        sellers = draw.choices(SELLERS, (4, 5, 1), k=10)
        regions = draw.choices(REGIONS, (5, 4, 3, 2, 1), k=10)
        rows = ranking(
            f"q{at}",
            sellers,
            relevance=[draw.randint(0, 4) / 4 for _ in sellers],
            click=[draw.randint(0, 1) for _ in sellers],
            region=regions,
            **{name: draw.choice(values) for name, values in SLICES.items()},
        )
        for row in rows:
            row["seller"] = row.pop("gender")
        found += rows
    return found


_RAN = "night.day + INTERVAL 28 HOUR"
_VALUE = """round(value * (
    1 - 0.03 * (sin(night.number / 60) + 1) / 2
    - 0.04 * (hash(night.number, slice, slice_value, attribute, metric) % 1000) / 1000
    - CASE WHEN night.unfair AND attribute = 'seller' AND {falls} THEN 0.35 ELSE 0 END), 4)"""
_FALLS = "aggregation = 'MinMaxRatio'"
_BAND = "round(value * 0.95, 3) AS lower, round(value * 1.04, 3) AS upper"
_FELL = "CASE WHEN metric IN ('NDKL', 'IAA') THEN value - center ELSE center - value END"
_STATUS = """CASE WHEN verdict NOT IN ('ok', 'breach') THEN verdict
    WHEN (metric = 'EXP' AND value < 0.8) OR (metric = 'ARP' AND value < 0.7)
    OR (metric = 'NDKL' AND value > 0.4) THEN 'breach' ELSE 'ok' END"""
_SAME = " AND ".join(f"scores.{name} IS NOT DISTINCT FROM series.{name}" for name in SERIES_KEY)
_SERIES = ", ".join(f"scores.{name}" for name in SERIES_KEY)


def fill_years(settings: Settings, nights: Sequence[str]) -> None:
    """Give each of ``nights`` but the last, which was audited, a result like that of the last.

    Scores move up and down over the year; some nights are missing, or unfair, or have a release.
    """
    with open_history(settings) as connection:
        connection.execute("USE history")
        connection.execute(
            "CREATE TEMP TABLE night AS SELECT number, nights[number] AS batch, "
            "nights[number]::DATE AS day, list_contains(?, number) AS unfair, "
            "CASE WHEN number = len(nights) THEN 'audited' "
            "WHEN list_contains(?, number) THEN 'missing' "
            "WHEN list_contains(?, number) THEN 'no_data' "
            "WHEN list_contains(?, number) THEN 'refused' ELSE 'done' END AS state "
            "FROM (SELECT ?::VARCHAR[] AS nights), range(1, len(nights) + 1) AS numbers(number)",
            [UNFAIR, *GAPS.values(), [*nights]],
        )
        for statement in _STATEMENTS:
            connection.execute(statement)
        _releases(connection, nights)
        connection.execute("USE memory")
        believed(connection, settings)


_DONE = "(FROM night WHERE state = 'done') AS night"
_STATEMENTS = (
    f"""INSERT INTO fairness_history BY NAME
    SELECT * REPLACE ({_STATUS} AS status, {_STATUS} AS verdict, {_BAND}) FROM (
        SELECT one.* REPLACE (night.batch AS batch, {_VALUE.format(falls=_FALLS)} AS value,
            {_RAN} AS computed_at,
            round(expected, 3) AS expected, round(noise_limit, 3) AS noise_limit)
        FROM fairness_history AS one, {_DONE})""",
    f"""INSERT INTO group_history BY NAME
    SELECT * REPLACE ({_BAND}) FROM (
        SELECT one.* REPLACE (night.batch AS batch,
            {_VALUE.format(falls="group_value = 'F'")} AS value, {_RAN} AS computed_at)
        FROM group_history AS one, {_DONE})""",
    f"""INSERT INTO batches BY NAME
    SELECT one.* REPLACE (night.batch AS batch, state AS status, {_RAN} AS started_at,
        {_RAN} + INTERVAL 2 MINUTE AS finished_at,
        CASE state WHEN 'no_data' THEN 'no file' WHEN 'refused' THEN '9 rows refused' END
            AS message, (state = 'done')::INTEGER AS revision)
    FROM batches AS one, night WHERE state NOT IN ('missing', 'audited')""",
    f"INSERT INTO assessments BY NAME SELECT batch, {_RAN} AS assessed_at FROM {_DONE}",
    "CREATE TEMP TABLE series AS SELECT * EXCLUDE (batch, value) FROM trends",
    "DELETE FROM trends",
    f"""INSERT INTO trends BY NAME
    WITH followed AS (
        SELECT batch, {_SERIES}, scores.value, family, family_size,
            avg(scores.value) OVER before AS center, count(*) OVER before AS baseline
        FROM fairness_history AS scores JOIN series ON {_SAME}
        WHERE scores.value IS NOT NULL
        WINDOW before AS (PARTITION BY {_SERIES} ORDER BY batch
            ROWS BETWEEN 56 PRECEDING AND 1 PRECEDING)),
    judged AS (
        SELECT *, 0.01 AS spread, round(({_FELL}) / 0.01, 3) AS residual FROM followed)
    SELECT * EXCLUDE (unfair), residual / 2 AS ewma, greatest(residual, 0) AS cusum,
        false AS weekday, false AS improved, false AS outlier, 0.5 AS p_value,
        CASE WHEN unfair THEN 0.001 ELSE 1 END AS p_adjusted,
        'ewma' AS chart, unfair AND residual > 5 AS shift,
        CASE WHEN unfair AND residual > 5 THEN batch END AS since
    FROM (SELECT judged.*, unfair FROM judged JOIN night USING (batch))""",
    """INSERT INTO alerts BY NAME
    SELECT 'made ' || batch || slice_value AS alert, 'breach' AS kind, slice, slice_value,
        attribute, metric, aggregation, 'resolved' AS state, batch AS opened, batch AS last_seen,
        (batch::DATE + 1)::VARCHAR AS resolved, 1 AS batches, true AS silent,
        'EXP.MinMaxRatio of seller: ' || value AS text, 'SELECT 1' AS query
    FROM fairness_history JOIN night USING (batch)
    WHERE status = 'breach' AND unfair AND metric = 'EXP'""",
    "INSERT INTO alert_batches BY NAME "
    "SELECT alert, opened AS batch, text, query FROM alerts WHERE alert LIKE 'made %'",
)


def _releases(connection: duckdb.DuckDBPyConnection, nights: Sequence[str]) -> None:
    for number, at in enumerate(RELEASES, start=1):
        connection.execute(
            "INSERT INTO markers BY NAME SELECT ? AS batch, ? AS text, 'mark' AS source, "
            "TIMESTAMP '2025-12-31' AS created_at",
            [nights[at], f"ranker v{number}"],
        )
