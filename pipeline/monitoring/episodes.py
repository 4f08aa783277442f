"""From findings to alerts: one episode from the batch that opens it to the one that ends it.

Not here: what is wrong with a batch (``findings``), and what an alert says (``alert_texts``).
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.monitoring.findings import Findings, tells
from pipeline.monitoring.subjects import Part, Subject
from schemas.columns import Row

LastSeen = Mapping[tuple[str, Part], str]
"""The last batch in which an alert of a kind was seen about an attribute of a slice."""


@dataclass
class Episode:
    """What is wrong with one subject for a while.

    ``seen`` are its batches, in key order; ``resolved`` is the first later batch that is fine.
    """

    subject: Subject
    seen: list[str] = field(default_factory=list)
    resolved: str | None = None
    alert: str = ""

    @property
    def opened(self) -> str:
        """First batch in which it was seen."""
        return self.seen[0]

    @property
    def last_seen(self) -> str:
        """Last batch in which it was seen."""
        return self.seen[-1]


def stored_episodes(alerts: Iterable[Row], seen: Iterable[tuple[str, str]]) -> list[Episode]:
    """Episodes as rows of ``alerts``, and pairs of alert and batch, tell them."""
    batches: dict[str, list[str]] = {}
    for alert, batch in seen:
        batches.setdefault(alert, []).append(batch)
    return [
        Episode(
            Subject.of(row),
            sorted(batches.get(row["alert"], {row["opened"], row["last_seen"]})),
            row["resolved"],
            row["alert"],
        )
        for row in alerts
    ]


def before(episodes: Iterable[Episode], start: str) -> list[Episode]:
    """What was known of ``episodes`` before batch ``start``: later batches are forgotten."""
    return [
        Episode(
            each.subject,
            [batch for batch in each.seen if batch < start],
            each.resolved if each.resolved and each.resolved < start else None,
            each.alert,
        )
        for each in episodes
        if each.opened < start
    ]


def continued(
    known: Iterable[Episode], nights: Iterable[Findings], last_seen: LastSeen | None = None
) -> list[Episode]:
    """Episodes after some more batches, which come in key order.

    A finding goes on with the open episode of its subject or opens one; a covered one only goes
    on, and so does a shift that began when an alert that tells of it was last seen, or before: it
    is what is left of that incident.  What is fine ends the episode; what cannot be told does
    neither.  ``last_seen`` are the alerts of earlier batches.
    """
    found = [Episode(each.subject, list(each.seen), each.resolved, each.alert) for each in known]
    running = {each.subject: each for each in found if each.resolved is None}
    last = dict(last_seen or {})
    for night in nights:
        for subject in sorted(night.found, key=_order):
            if subject in running:
                running[subject].seen.append(night.batch)
            elif subject in night.covered or _is_left_over(subject, night, last):
                continue
            else:
                running[subject] = Episode(subject, [night.batch])
                found.append(running[subject])
            last[subject.kind, subject.part] = night.batch
        for subject in night.fine & running.keys():
            running.pop(subject).resolved = night.batch
    return found


def _is_left_over(subject: Subject, night: Findings, last: LastSeen) -> bool:
    began = night.began.get(subject)
    return began is not None and any(
        seen >= began and tells(kind, part, subject) for (kind, part), seen in last.items()
    )


def _order(subject: Subject) -> tuple[str, ...]:
    return (subject.kind, *(part or "" for part in subject.key))


def overlap(one: Episode, other: Episode) -> bool:
    """Whether two episodes are about the same subject at the same time."""
    same = one.subject == other.subject
    return same and one.opened <= other.last_seen and other.opened <= one.last_seen


def identified(
    episodes: Sequence[Episode], stored: Sequence[Episode], known: set[str]
) -> list[Episode]:
    """``episodes`` with their alerts' names.

    ``stored`` is how the history tells them so far.  An alert that people or receivers know (those
    of ``known``) keeps its name as long as its episode overlaps with what it was; every other one
    is named by its subject and first batch, so that the order of merging does not show in names.
    """
    taken = {each.alert for each in episodes if each.alert}
    for each in sorted(episodes, key=lambda episode: (episode.opened, _order(episode.subject))):
        if each.alert:
            continue
        heirs = [
            other.alert
            for other in sorted(stored, key=lambda episode: (episode.opened, episode.alert))
            if other.alert in known and other.alert not in taken and overlap(each, other)
        ]
        each.alert = heirs[0] if heirs else _name(each, taken | known)
        taken.add(each.alert)
    return list(episodes)


def _name(episode: Episode, taken: set[str]) -> str:
    said = [episode.subject.kind, *episode.subject.key, episode.opened]
    number = 0
    while True:
        text = "\x1f".join("\x00" if each is None else each for each in said) + "\x1f" * number
        name = hashlib.sha256(text.encode()).hexdigest()[:12]
        if name not in taken:
            return name
        number += 1
