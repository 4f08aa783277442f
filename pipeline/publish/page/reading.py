"""What the page selects from the published copy: contract views only, one question each.

Not here: how much of it (``extent``), and what is made of it (``document``).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb

from metrics import WHOLE
from pipeline.errors import AuditError, NoData
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of
from pipeline.store.sessions import attach, first_line, session
from schemas.monitoring import ALERT_ORDER

Row = Mapping[str, Any]
_COPY = "copy"


class Copy:
    """A published copy that is open for reading."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection

    def _rows(self, query: str, *values: Any) -> list[Row]:
        found = self.connection.sql(query, params=list(values)).to_arrow_table()
        return [dict(row) for row in found.to_pylist()]

    def about(self) -> dict[str, Any]:
        """Versions of code and views, the time of publishing, which state of the history it is."""
        (row,) = self._rows("FROM v_about")
        return {name: _plain(value) for name, value in row.items()}

    def coverage(self) -> list[Row]:
        """Every batch from the first that was attempted on: which are there, and which are not."""
        return self._rows(
            "SELECT batch, state, scored, message FROM v_coverage "
            "WHERE batch >= (SELECT min(batch) FROM v_coverage WHERE state <> 'missing') "
            "ORDER BY batch"
        )

    def missing_before(self) -> int:
        """How many batches were expected before the first that was attempted."""
        (row,) = self._rows(
            "SELECT count(*) AS n FROM v_coverage "
            "WHERE batch < (SELECT min(batch) FROM v_coverage WHERE state <> 'missing')"
        )
        return int(row["n"])

    def due_after(self, batch: str | None, most: int) -> list[Row]:
        """The first batches that are expected after one, with the time by which they are due."""
        return self._rows(
            "SELECT batch, due_at FROM expected_batches WHERE batch > coalesce(?, '') "
            "ORDER BY batch LIMIT ?",
            batch,
            most,
        )

    def slices(self, since: str) -> list[tuple[str, str]]:
        """Slices of the batches from one on beside the whole, those with most lists first."""
        rows = self._rows(
            "SELECT slice, slice_value, max(lists) AS lists FROM v_history "
            f"WHERE batch >= ? AND slice <> '{WHOLE}' "
            "GROUP BY ALL ORDER BY lists DESC, slice, slice_value",
            since,
        )
        return [(row["slice"], row["slice_value"]) for row in rows]

    def latest(self) -> list[Row]:
        """Scores of the newest batch, as judged: whole, and those of slices with a threshold."""
        return self._rows(
            "SELECT label, attribute, slice, slice_value, judged_value AS value, status, "
            "judged_worst_group AS worst_group "
            f"FROM v_latest WHERE slice = '{WHOLE}' OR status <> 'not_judged' "
            "ORDER BY slice <> 'all', slice, slice_value, attribute, label"
        )

    def labels(self) -> list[Row]:
        """Scores of whole batches by label: whether any was judged, and in how many attributes."""
        return self._rows(
            "SELECT label, bool_or(status <> 'not_judged') AS judged, "
            "count(DISTINCT coalesce(attribute, '')) AS series FROM v_history "
            f"WHERE slice = '{WHOLE}' GROUP BY label ORDER BY judged DESC, label"
        )

    def group_series(self) -> int:
        """How many series of groups of the whole batch there are."""
        (row,) = self._rows(
            "SELECT count(*) AS n FROM (SELECT DISTINCT attribute, metric, group_value "
            f"FROM v_groups WHERE slice = '{WHOLE}')"
        )
        return int(row["n"])

    def scores(
        self, main: Sequence[str], *, whole: tuple[str, str], parts: tuple[str, str]
    ) -> list[Row]:
        """Scores, in batches from the first asked for on: for ``main`` labels, and for others.

        The value is that of all groups, as everywhere in trends; verdicts are about the judged one.
        """
        return self._rows(
            "SELECT batch, slice, slice_value, attribute, metric, label, value, lower, upper, "
            "judged_value, judged_lower, judged_upper, judged_worst_group AS worst_group, "
            "noise_limit, status, status_reason, reason, threshold_min, threshold_max "
            "FROM v_history WHERE batch >= CASE "
            f"WHEN slice = '{WHOLE}' THEN CASE WHEN list_contains(?, label) THEN ? ELSE ? END "
            "WHEN list_contains(?, label) THEN ? ELSE ? END "
            "ORDER BY attribute IS NULL, attribute, label, slice, slice_value, batch",
            main,
            *whole,
            main,
            *parts,
        )

    def judged(self, batch: str | None) -> list[Row]:
        """What the scores of a batch with a verdict rest on."""
        return self._rows(
            "SELECT slice, slice_value, attribute, metric, aggregation, label, status, "
            "status_reason, value, lower, upper, judged_value, judged_lower, judged_upper, "
            "judged_worst_group, judged_best_group, judged_groups, thin_groups, expected, p_noise, "
            "against_chance, against_chance_lower, against_chance_upper, assured, detectable, "
            "lists_needed, lists FROM v_history WHERE batch = ? "
            "AND status IN ('ok', 'breach', 'composition', 'insufficient')",
            batch,
        )

    def groups(self, whole: str, parts: str) -> list[Row]:
        """Values of groups, in batches from the first asked for on."""
        return self._rows(
            "SELECT batch, slice, slice_value, attribute, metric, group_value, value, lower, "
            "upper, n FROM v_groups "
            f"WHERE batch >= CASE WHEN slice = '{WHOLE}' THEN ? ELSE ? END "
            "ORDER BY attribute, metric, group_value, slice, slice_value, batch",
            whole,
            parts,
        )

    def changes(self, since: str, most: int) -> list[Row]:
        """The largest changes of each batch, against what the batches before it let expect."""
        return self._rows(
            "SELECT batch, slice, slice_value, attribute, metric, label, value, center, residual, "
            "worse, shift, since FROM v_changes WHERE batch >= ? "
            "QUALIFY row_number() OVER (PARTITION BY batch ORDER BY abs(residual) DESC, "
            "slice, slice_value, attribute, label) <= ? "
            "ORDER BY batch DESC, abs(residual) DESC, slice, slice_value, attribute, label",
            since,
            most,
        )

    def batches(self) -> list[Row]:
        """The manifest, with how many scores of each verdict a batch has."""
        return self._rows("FROM v_batches ORDER BY batch")

    def markers(self) -> list[Row]:
        """Releases, oldest first; those of one batch in one text."""
        return self._rows(
            "SELECT batch, string_agg(text, '; ' ORDER BY source, text) AS text FROM v_markers "
            "GROUP BY batch ORDER BY batch"
        )

    def alerts(self, since: str, most: int) -> list[Row]:
        """Open alerts, and those seen from a batch on; open ones first, then the newest."""
        return self._rows(
            "FROM v_alerts WHERE state = 'open' OR (state = 'resolved' AND last_seen >= ?) "
            f"ORDER BY state <> 'open', acknowledged_at IS NOT NULL, {ALERT_ORDER} LIMIT ?",
            since,
            most,
        )

    def lists(self) -> list[Row]:
        """Entries of the worst lists of the newest batch."""
        return self._rows(
            "FROM v_lists WHERE batch = (SELECT newest_batch FROM v_about) "
            "ORDER BY attribute, place, rank"
        )


@contextmanager
def opened_copy(settings: Settings) -> Iterator[Copy]:
    """The published copy; NoData where there is none, AuditError where it cannot be read."""
    store = store_of(settings)
    if not store.dashboard.exists():
        raise NoData("nothing is published yet; run a batch first")
    with session(settings, [store.root]) as connection:
        attach(connection, store.dashboard, _COPY, read_only=True)
        connection.execute(f"USE {_COPY}")
        try:
            yield Copy(connection)
        except duckdb.Error as error:
            raise AuditError(
                f"{store.dashboard}: is not what this version reads ({first_line(error)}); "
                "`evenrank publish` writes it anew"
            ) from None


def _plain(value: Any) -> Any:
    return value.isoformat() + "Z" if hasattr(value, "isoformat") else value
