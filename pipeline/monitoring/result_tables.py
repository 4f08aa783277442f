"""What an assessment found, as rows of the history's tables.

Not here: what the tables are (``schemas.monitoring``), and writing them (``differences``).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import duckdb
import numpy as np
import pyarrow

from pipeline.monitoring.actions import COLUMNS
from pipeline.monitoring.alert_texts import Said, query_of, text_of, worst_reading
from pipeline.monitoring.assessment import Found
from pipeline.monitoring.episodes import Episode, overlap
from pipeline.monitoring.findings import Findings
from pipeline.monitoring.followed_scores import eligible
from pipeline.monitoring.inputs import read_groups, read_matrix, read_scores
from pipeline.monitoring.past_texts import past_text
from pipeline.monitoring.previous import Stored
from pipeline.monitoring.readings import NO_READING
from pipeline.monitoring.subjects import Series, Subject
from pipeline.monitoring.trend_rows import trend_rows
from pipeline.monitoring.window_texts import window_text
from pipeline.settings.audit import Settings
from pipeline.trends import change_points
from schemas.columns import Row, Table
from schemas.monitoring import ALERT_BATCHES, ALERTS, CHANGE_POINTS, SERIES_KEY, TRENDS

CHANGE_POINT_BATCHES = 400
"""Batches over which change points are looked for: a year of nights, and a month."""
_WITHDRAWN = "No longer found since batches were computed again.\nIt said:\n"


def as_table(table: Table, rows: Sequence[Row]) -> pyarrow.Table:
    """Rows in the Arrow types of ``table``."""
    return pyarrow.Table.from_pylist(list(rows), schema=table.arrow)


def trend_table(found: Found, settings: Settings) -> pyarrow.Table:
    """Rows of the table trends."""
    rows = (trend_rows(found.matrix, night, settings.trends) for night in found.nights)
    return pyarrow.concat_tables([as_table(TRENDS, []), *rows])


def change_point_table(
    connection: duckdb.DuckDBPyConnection,
    settings: Settings,
    every: Sequence[str],
    found: Found,
) -> pyarrow.Table:
    """Rows of the table change_points: followed scores of whole batches.

    Gated batches and acknowledged incidents are left out.
    """
    matrix = read_matrix(connection, settings, every[-CHANGE_POINT_BATCHES:], whole_only=True)
    able = eligible(matrix, found.gated, found.excluded)
    values = np.where(able, matrix.values, np.nan)
    return as_table(
        CHANGE_POINTS,
        [
            {
                **dict(zip(SERIES_KEY, series, strict=True)),
                "batch": matrix.batches[point.index],
                "level_before": point.before,
                "level_after": point.after,
            }
            for column, series in enumerate(matrix.series)
            for point in change_points(values[:, column])
        ],
    )


@dataclass
class AlertRows:
    """Rows of alerts and of alert_batches.

    ``sendable`` are the batches whose new alerts may be sent; ``new`` the alerts that no earlier
    assessment knew.
    """

    connection: duckdb.DuckDBPyConnection
    settings: Settings
    stored: Stored
    found: Found
    sendable: Collection[str]
    new: list[str] = field(default_factory=list)

    @cached_property
    def sightings(self) -> list[Row]:
        """Every batch from the start on in which an alert was seen, with what it says there."""
        by_batch: dict[str, list[Episode]] = {}
        for episode in self.found.episodes:
            for batch in episode.seen:
                if batch >= self.found.start:
                    by_batch.setdefault(batch, []).append(episode)
        rows = []
        for findings in self.found.findings:
            episodes = by_batch.get(findings.batch, [])
            said = self._said(findings, episodes) if episodes else None
            rows += [
                {
                    "alert": episode.alert,
                    "batch": findings.batch,
                    "text": (
                        window_text(episode, findings, self.settings)
                        if episode.subject.kind == "window"
                        else text_of(episode, said, self.settings)
                    ),
                    "query": query_of(episode, said),
                    **(reading.columns if reading else NO_READING),
                }
                for episode in episodes
                if said
                for reading in [episode.readings.get(findings.batch)]
            ]
        return rows

    def _said(self, findings: Findings, episodes: Sequence[Episode]) -> Said:
        """What texts about one batch may mention."""
        batch = findings.batch
        subjects = {each.subject for each in episodes}
        # A text about a breach also says how much of its attribute and slice moved with it.
        subjects |= {Subject(kind, each.part) for each in subjects for kind in ("shift", "flip")}
        others = ("gate", "missing", "release", "window")
        scored = (each for each in subjects if each.kind not in others)
        series = {each.series for each in scored if each.series}
        series.update(*(findings.scores.get(each, ()) for each in subjects))
        return Said(
            findings,
            read_scores(self.connection, batch, sorted({each.label for each in series})),
            read_groups(self.connection, batch, sorted({each.metric for each in series})),
            self._trends(batch),
            self.found.gates.get(batch, ((), ()))[0],
            self.found.changes.get(batch, ()),
        )

    def _trends(self, batch: str) -> dict[Series, Row]:
        matrix = self.found.matrix
        nights = (each for each in self.found.nights if matrix.batches[each.row] == batch)
        return {
            Series.of(row): row
            for each in nights
            for row in trend_rows(matrix, each, self.settings.trends).to_pylist()
        }

    def alerts(self) -> list[Row]:
        """Every alert that the batches from the start on can change."""
        last = {}
        earlier = (row for row in self.stored.sightings if row["batch"] < self.found.start)
        for row in (*earlier, *self.sightings):
            last[row["alert"], row["batch"]] = row
        rows = [self._alert(each, last[each.alert, each.last_seen]) for each in self.found.episodes]
        there = self._told
        return rows + [
            self._withdrawn(self.stored.alerts[name]) for name in sorted(self.stored.known - there)
        ]

    @cached_property
    def _told(self) -> set[str]:
        return {each.alert for each in self.found.episodes}

    def _alert(self, episode: Episode, said: Row) -> Row:
        worst = worst_reading(episode, self.settings)
        latest = episode.readings.get(episode.last_seen)
        text = said["text"]
        if episode.resolved:
            heirs = (each for each in self.found.episodes if each.supersedes == episode.alert)
            text = past_text(episode, next(heirs, None), self.settings)
        return {
            "alert": episode.alert,
            "kind": episode.subject.kind,
            **dict(zip(SERIES_KEY, episode.subject.key, strict=True)),
            "state": "resolved" if episode.resolved else "open",
            "opened": episode.opened,
            "last_seen": episode.last_seen,
            "resolved": episode.resolved,
            "batches": len(episode.seen),
            "supersedes": episode.supersedes,
            "former_loser": episode.former_loser,
            "reading_of": episode.label,
            "worst_value": worst[1].value if worst else None,
            "worst_batch": worst[0] if worst else None,
            "worst_loser": worst[1].loser if worst else None,
            "size": max(
                (each.distance for each in episode.readings.values() if each.distance is not None),
                default=None,
            ),
            "latest_value": latest.value if latest else None,
            "latest_loser": latest.loser if latest else None,
            **self.stored.actions.get(episode.alert, dict.fromkeys(COLUMNS)),
            **self._delivery(episode),
            "text": text,
            "query": said["query"],
        }

    def _delivery(self, episode: Episode) -> Row:
        """Whether the alert is or was to be sent: as for the alert it was known as before."""
        old = self.stored.alerts.get(episode.alert)
        if old is None:
            # What goes on under its own name is another one.
            same = [
                each.alert
                for each in self.stored.episodes
                if overlap(each, episode) and each.alert not in self._told
            ]
            old = self.stored.alerts[same[0]] if same else None
        if old is None:
            self.new.append(episode.alert)
            # What is over by the time it is found is no news, but for nights that nobody audited.
            news = episode.opened in self.sendable and episode.resolved is None
            if episode.subject.kind == "night":
                news = not {*episode.seen, episode.resolved}.isdisjoint(self.sendable)
            return {"silent": not news, "notified_at": None}
        return {name: old[name] for name in ("silent", "notified_at")}

    def _withdrawn(self, row: Row) -> Row:
        """An alert that people know by name, but that is found no more."""
        if row["state"] == "withdrawn":
            return row
        return {
            **row,
            "state": "withdrawn",
            "resolved": None,
            "batches": 0,
            "text": _WITHDRAWN + row["text"],
        }


def alert_tables(rows: AlertRows) -> tuple[pyarrow.Table, pyarrow.Table]:
    """The tables alerts and alert_batches."""
    return as_table(ALERTS, rows.alerts()), as_table(ALERT_BATCHES, rows.sightings)
