"""Gates, trends, findings and episodes of the batches from a certain one on.

Not here: reading what they are computed from (``inputs``, ``previous``), and writing what differs
(``differences``).
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

import duckdb

from pipeline.monitoring.episodes import Episode, before, continued, identified
from pipeline.monitoring.findings import (
    Findings,
    breach_findings,
    cover,
    flip_findings,
    gate_findings,
    improvement_findings,
    shift_findings,
    window_findings,
)
from pipeline.monitoring.followed_scores import Exclusions, Night, eligible, nights
from pipeline.monitoring.gates import Releases, gates_of, reason_of
from pipeline.monitoring.inputs import (
    Groups,
    Matrix,
    read_attributes,
    read_facts,
    read_groups,
    read_matrix,
    read_presence,
    read_scores,
    read_verdicts,
)
from pipeline.monitoring.missing_groups import (
    missing_findings,
    missing_reasons,
    named_groups,
    serving,
    without_renamed,
)
from pipeline.monitoring.missing_nights import night_findings
from pipeline.monitoring.previous import Stored
from pipeline.monitoring.release_changes import release_changes, release_findings
from pipeline.monitoring.subjects import Series
from pipeline.monitoring.turns import OF_READINGS, ReadTurns
from pipeline.monitoring.windows import Windows, look_at_windows
from pipeline.settings.audit import Settings
from pipeline.settings.choices import followed_scores
from pipeline.trends import Gated, reach
from schemas.columns import Row


@dataclass(frozen=True)
class Found:
    """What is found about batches from ``start`` on.

    ``gates`` hold for each batch what its gates say and how many batches it was compared with;
    ``reasons`` why its verdicts are gated, None where they are not.  ``missing`` holds for each
    batch and attribute that lacks a group why none of its scores is ok.  ``gated`` are all batches
    that a gate keeps out, earlier ones too, and ``excluded`` attributes and batches of acknowledged
    incidents.  ``changes`` are rows of release_changes, by batch, and ``windows`` the scores of
    several days.
    """

    start: str
    gates: dict[str, tuple[tuple[Gated, ...], tuple[int, ...]]]
    reasons: dict[str, str | None]
    missing: dict[str, dict[str, str]]
    gated: set[str]
    excluded: Exclusions
    matrix: Matrix
    nights: list[Night]
    findings: list[Findings]
    episodes: list[Episode]
    changes: dict[str, list[Row]]
    windows: Windows


def computed(
    connection: duckdb.DuckDBPyConnection,
    settings: Settings,
    every: Sequence[str],
    absent: Mapping[str, str],
    stored: Stored,
    releases: Releases,
    asked: Collection[str] = (),
) -> Found:
    """Everything about the batches of ``every``, and those ``absent``, from ``stored.start`` on.

    Windows are made of the batches ``asked`` for, and of those that had some.
    Which batches are baselines depends on acknowledged alerts, and alerts on baselines; it is
    repeated until the two agree, usually at once.  A batch only matters to later ones, so that each
    turn settles at least one batch more.
    """
    at = bisect_left(every, stored.start)
    window = settings.gate.window
    facts = read_facts(connection, every[max(0, at - 2 * window) :])
    failed = {
        batch
        for (batch,) in connection.execute(
            "SELECT DISTINCT batch FROM history.gates WHERE NOT passed AND batch < ?",
            [stored.start],
        ).fetchall()
    }
    gates = gates_of(every, at, facts, failed, releases, settings.gate)
    reasons = {batch: reason_of(said) for batch, (said, _) in gates.items()}
    gated = failed | {batch for batch, reason in reasons.items() if reason}
    rows = every[max(0, at - reach(settings.trends)) :]
    matrix = read_matrix(connection, settings, rows)
    held_rows = every[max(0, at - 2 * settings.trends.window) :]
    presence = read_presence(connection, held_rows, named_groups(stored.standing))
    presence = without_renamed(presence, settings.values)
    verdicts = read_verdicts(connection, [batch for batch in every[at:] if batch not in gated])

    changes = release_changes(connection, settings, every, stored.start, releases, gated)
    windows = look_at_windows(connection, settings, every, stored.start, gated, asked)
    attributes = read_attributes(connection)

    @cache
    def breached(first: str, last: str) -> set[Series]:
        nights = [each for each in every if first <= each <= last and each not in gated]
        said = read_verdicts(connection, nights).values()
        return {series for night in said for series, verdict in night if verdict == "breach"}

    @cache
    def groups_of(batch: str, metrics: tuple[str, ...]) -> Groups:
        return read_groups(connection, batch, metrics)

    @cache
    def scores_of(batch: str) -> Mapping[Series, Row]:
        labels = {*followed_scores(settings), *settings.thresholds}
        return read_scores(connection, batch, sorted(labels), OF_READINGS)

    def turn(excluded: Exclusions) -> tuple[list[Night], list[Findings], list[Episode]]:
        able, first = eligible(matrix, gated, excluded), bisect_left(rows, stored.start)
        followed = list(nights(matrix, first, able, gated, releases, settings.trends))
        findings = {batch: Findings(batch) for batch in every[at:]}
        for batch, into in findings.items():
            gate_findings(into, gates[batch][0])
            breach_findings(into, verdicts.get(batch, ()))
            if batch not in gated:
                judged = windows.judged.get(batch, {})
                window_findings(into, judged, breached, releases.first_batches)
        for night in followed:
            into = findings[matrix.batches[night.row]]
            shift_findings(into, matrix, night, settings.trends)
            improvement_findings(into, matrix, night, settings.trends)
            groups = partial(groups_of, into.batch)
            flip_findings(into, matrix, night, able, groups, settings.trends)
        serves = serving(presence, gated, excluded)
        first = bisect_left(held_rows, stored.start)
        for row, batch in enumerate(held_rows[first:], first):
            if batch not in gated:
                missing_findings(findings[batch], presence, row, serves, releases, settings.trends)
        for batch, into in findings.items():
            told, least = changes.get(batch, ()), settings.trends.least
            release_findings(into, told, releases, every, attributes, least)
            cover(into)
        every_night = night_findings(findings, absent, stored.start)
        known = before(stored.standing, stored.start)
        turns = ReadTurns(settings.thresholds, matrix, followed, scores_of, groups_of)
        episodes = continued(known, every_night, stored.last_seen, turns)
        named = identified(episodes, stored.episodes, stored.known)
        return followed, every_night, named

    excluded: Exclusions = _excluded(stored, stored.standing)
    for _ in range(len(every) + 1):
        followed, findings, episodes = turn(excluded)
        agreed, excluded = excluded, _excluded(stored, episodes)
        if agreed == excluded:
            break
    missing = missing_reasons(episodes, stored.start, attributes)
    return Found(
        stored.start,
        gates,
        reasons,
        missing,
        gated,
        excluded,
        matrix,
        followed,
        findings,
        episodes,
        changes,
        windows,
    )


def _excluded(stored: Stored, episodes: Sequence[Episode]) -> Exclusions:
    """Attributes and batches of acknowledged incidents."""
    return stored.excluded | {
        (each.subject.part.attribute, batch)
        for each in episodes
        if each.alert in stored.acknowledged and each.subject.kind != "gate"
        for batch in each.seen
    }
