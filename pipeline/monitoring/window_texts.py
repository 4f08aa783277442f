"""What an alert says of several days together.

Not here: what other alerts say (``alert_texts``).
"""

from pipeline.formatting.numbers import counted
from pipeline.monitoring.alert_texts import course, limit_text, said_of, score_texts, sharing
from pipeline.monitoring.episodes import Episode
from pipeline.monitoring.findings import Findings
from pipeline.settings.audit import Settings
from schemas.columns import Row
from schemas.judged import as_judged


def window_text(episode: Episode, findings: Findings, settings: Settings) -> str:
    """What there is to say of a window that is a breach, in one of its batches."""
    subject, batch = episode.subject, findings.batch
    series = subject.series
    if series is None:
        raise ValueError(subject)
    row = as_judged(findings.windows[subject])
    days = f"the {row['days']} days up to {batch}"
    score = score_texts(series, row, settings)
    since = (
        "No batch of these days is a breach by itself."
        if episode.opened == batch
        else f"Seen since {episode.opened}."
    )
    lines = [
        f"Over {days}: {said_of(score)}; {limit_text(score)}.",
        f"{score.small} ({series.label}).",
        f"From {row['lists']:,} lists, {row['rows']:,} rows.",
        *_lacking(row),
        *_releases(row),
        *course(episode, batch, settings),
        since,
    ]
    return "\n".join([*lines, *sharing(subject, findings)])


def _lacking(row: Row) -> list[str]:
    """Which days the numbers are not of."""
    why = {
        "days_missing": "without scores",
        "days_gated": "kept out by a gate",
        "days_other": "counted under other settings",
    }
    said = [f"{row[name]} {text}" for name, text in why.items() if row[name]]
    if not said:
        return []
    return [f"Of {row['days']} days, {row['days_used']} are in it: {', '.join(said)}."]


def _releases(row: Row) -> list[str]:
    found = row["released"]
    if not found:
        return []
    return [f"{counted(len(found), 'release')} began within it: {', '.join(found)}."]
