"""From findings to alerts: one episode from the batch that opens it to the one that ends it.

Not here: what is wrong with a batch (``findings``), and what an alert says (``alert_texts``).
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pipeline.monitoring.findings import Findings, tells
from pipeline.monitoring.readings import Reading
from pipeline.monitoring.subjects import Part, Subject
from schemas.columns import Row

LastSeen = Mapping[tuple[str, Part], str]
"""The last batch in which an alert of a kind was seen about an attribute of a slice."""


@dataclass
class Episode:
    """What is wrong with one subject for a while.

    ``seen`` are its batches, in key order; ``resolved`` is the first later batch that is fine, or
    in which it became another one.  That one ``supersedes`` it, by the name of its alert, and knows
    the ``former_loser`` where another group loses.
    ``readings`` are of one score, in those of its batches in which that has one.
    """

    subject: Subject
    seen: list[str] = field(default_factory=list)
    resolved: str | None = None
    alert: str = ""
    supersedes: str | None = None
    former_loser: str | None = None
    readings: dict[str, Reading] = field(default_factory=dict)
    former: "Episode | None" = field(default=None, compare=False, repr=False)

    @property
    def opened(self) -> str:
        """First batch in which it was seen."""
        return self.seen[0]

    @property
    def last_seen(self) -> str:
        """Last batch in which it was seen."""
        return self.seen[-1]

    @property
    def label(self) -> str | None:
        """The score that its readings are of; None where there is none yet."""
        return next((each.label for each in self.readings.values()), None)

    @property
    def follows(self) -> bool:
        """Whether it took the place of another one."""
        return self.former is not None or self.supersedes is not None

    def see(self, batch: str, reading: Reading | None) -> None:
        """Note that it is seen in one more batch."""
        self.seen.append(batch)
        if reading is not None:
            self.readings[batch] = reading

    def until(self, start: str) -> "Episode":
        """What was known of it before batch ``start``."""
        return Episode(
            self.subject,
            [batch for batch in self.seen if batch < start],
            self.resolved if self.resolved and self.resolved < start else None,
            self.alert,
            self.supersedes,
            self.former_loser,
            {batch: each for batch, each in self.readings.items() if batch < start},
        )


def stored_episodes(alerts: Iterable[Row], sightings: Iterable[Row]) -> list[Episode]:
    """Episodes as rows of ``alerts`` and of ``alert_batches``, those in key order, tell them."""
    by_alert: dict[str, dict[str, Reading | None]] = {}
    for row in sightings:
        by_alert.setdefault(row["alert"], {})[row["batch"]] = Reading.stored(row)
    return [
        Episode(
            Subject.of(row),
            sorted(seen or {row["opened"], row["last_seen"]}),
            row["resolved"],
            row["alert"],
            row["supersedes"],
            row["former_loser"],
            {batch: each for batch, each in sorted(seen.items()) if each is not None},
        )
        for row in alerts
        for seen in [by_alert.get(row["alert"], {})]
    ]


def before(episodes: Iterable[Episode], start: str) -> list[Episode]:
    """What was known of ``episodes`` before batch ``start``: later batches are forgotten."""
    return [each.until(start) for each in episodes if each.opened < start]


class Turns:
    """What scores of incidents say, and whether one became another; here, none ever does."""

    def reading(self, night: Findings, subject: Subject, label: str | None) -> Reading | None:
        """What the score ``label`` says of a subject that is found; by default, what says most."""
        return None

    def is_another(self, episode: Episode, night: Findings, now: Reading | None) -> bool:
        """Whether what is found of a running episode is another one."""
        return False


def continued(
    known: Iterable[Episode],
    nights: Iterable[Findings],
    last_seen: LastSeen | None = None,
    turns: Turns | None = None,
) -> list[Episode]:
    """Episodes after some more batches, which come in key order.

    A finding goes on with the open episode of its subject or opens one; a covered one only goes
    on, and so does a shift that began when an alert that tells of it was last seen, or before: it
    is what is left of that incident.  Where ``turns`` say that it is another one, the open episode
    is over, and the other one opens.  What is fine ends the episode; what cannot be told does
    neither.  ``last_seen`` are the alerts of earlier batches.
    """
    turns = turns or Turns()
    found = [replace(each, seen=[*each.seen], readings={**each.readings}) for each in known]
    running = {each.subject: each for each in found if each.resolved is None}
    last = dict(last_seen or {})
    for night in nights:
        for subject in sorted(night.found, key=_order):
            current = running.get(subject)
            is_covered = subject in night.covered or _is_told(subject, night, running)
            if current is None and (is_covered or _is_left_over(subject, night, last)):
                continue
            now = turns.reading(night, subject, current.label if current else None)
            if current is None or (not is_covered and turns.is_another(current, night, now)):
                running[subject] = _other(subject, current, now, night.batch)
                found.append(running[subject])
            running[subject].see(night.batch, now)
            last[subject.kind, subject.part] = night.batch
        for subject in night.fine & running.keys():
            running.pop(subject).resolved = night.batch
    return found


def _is_told(subject: Subject, night: Findings, running: Mapping[Subject, Episode]) -> bool:
    """Whether an open alert tells of it: of a slice, that of the same score of the whole batch.

    Of a release, what is beyond its threshold, or a group that is missing, since that night.  Of a
    window, a breach of the same score.
    """
    if subject.kind == "release":
        return any(
            other.kind in ("breach", "missing")
            and other.part == subject.part
            and each.opened == night.batch
            for other, each in running.items()
        )
    if subject.kind not in ("breach", "window") or subject.series is None:
        return False
    telling = {Subject.about("breach", each) for each in (subject.series, subject.series.whole)}
    telling.add(Subject.about(subject.kind, subject.series.whole))
    if subject.kind == "breach":
        telling = {each for each in telling if each.part.is_whole}
    return not (telling - {subject} - night.fine).isdisjoint(running)


def _other(subject: Subject, former: Episode | None, now: Reading | None, batch: str) -> Episode:
    """An episode that opens in ``batch``, perhaps in the place of a ``former`` one."""
    if former is None or now is None:
        return Episode(subject)
    former.resolved = batch
    loser = next((each.loser for each in reversed(former.readings.values())), None)
    return Episode(subject, former_loser=None if loser == now.loser else loser, former=former)


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
        if each.former is not None:
            # It opened earlier, so that it has its name.
            each.supersedes = each.former.alert
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
