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
            "SELECT batch, state, scored, message, finished_at FROM v_coverage "
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

    def labels(self) -> list[Row]:
        """Scores by label: whether any was judged or told in an alert, in how many attributes."""
        return self._rows(
            "SELECT label, any_value(metric) AS metric, bool_or(status <> 'not_judged' "
            "OR label IN (SELECT reading_of FROM v_alerts WHERE reading_of IS NOT NULL)) AS judged,"
            " count(DISTINCT coalesce(attribute, '')) AS series FROM v_history "
            "GROUP BY label ORDER BY judged DESC, label"
        )

    def group_series(self) -> int:
        """How many series of groups of the whole batch there are."""
        (row,) = self._rows(
            "SELECT count(*) AS n FROM (SELECT DISTINCT attribute, metric, group_value "
            f"FROM v_groups WHERE slice = '{WHOLE}')"
        )
        return int(row["n"])

    def scores(self, labels: Sequence[str], whole: str, parts: str) -> list[Row]:
        """Scores with these labels, in batches from the first asked for on.

        The value is that of all groups, as everywhere in trends; verdicts are about the judged one.
        """
        return self._rows(
            "SELECT batch, slice, slice_value, attribute, metric, label, value, lower, upper, "
            "judged_value, judged_lower, judged_upper, judged_worst_group AS worst_group, status, "
            "status_reason, reason, assured, threshold_min, threshold_max "
            "FROM v_history WHERE list_contains(?, label) AND batch >= CASE "
            f"WHEN slice = '{WHOLE}' THEN ? ELSE ? END "
            "ORDER BY attribute IS NULL, attribute, label, slice, slice_value, batch",
            labels,
            whole,
            parts,
        )

    def groups(self, whole: str, parts: str) -> list[Row]:
        """Values of groups, in batches from the first asked for on."""
        return self._rows(
            "SELECT batch, slice, slice_value, attribute, metric, group_value, value, lower, "
            "upper, n, reason FROM v_groups "
            f"WHERE batch >= CASE WHEN slice = '{WHOLE}' THEN ? ELSE ? END "
            "ORDER BY attribute, metric, group_value, slice, slice_value, batch",
            whole,
            parts,
        )

    def windows(self, labels: Sequence[str]) -> list[Row]:
        """Scores of whole batches over the last days together, of the newest batch that has any."""
        return self._rows(
            "SELECT days, first_day, batch, attribute, label, judged_value, judged_lower, "
            "judged_upper, judged_worst_group AS worst_group, status FROM v_windows "
            f"WHERE slice = '{WHOLE}' AND list_contains(?, label) "
            "AND batch = (SELECT max(batch) FROM v_windows) "
            "AND status <> 'not_judged' ORDER BY days, attribute, label",
            labels,
        )

    def conclusions(self) -> list[Row]:
        """What is concluded of every batch."""
        return self._rows(
            "SELECT * EXCLUDE (batch_start, batch_end, day) FROM v_conclusions ORDER BY batch"
        )

    def of_whole_batches(self, labels: Sequence[str]) -> list[Row]:
        """Scores of whole batches that no gate kept out, of which limits are proposed."""
        return self._rows(
            f"FROM v_history WHERE slice = '{WHOLE}' AND attribute IS NOT NULL "
            "AND list_contains(?, label) "
            "AND batch NOT IN (SELECT batch FROM v_gates WHERE NOT passed)",
            labels,
        )

    def gated(self) -> list[str]:
        """Batches that a gate kept out."""
        return [
            row["batch"]
            for row in self._rows("SELECT DISTINCT batch FROM v_gates WHERE NOT passed")
        ]

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
        """Entries of the worst lists, batch by batch."""
        return self._rows("FROM v_lists ORDER BY batch, attribute, place, rank")


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
