"""Groups that batches usually have, and that one batch has no row of.

Scores compare the groups that are there.  Without one of them a score may well be ok, and says
nothing of the group that it was meant to look after.

Not here: shares of groups, of which a gate takes care (``trends.gates``), and what else is wrong
with a batch (``findings``).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from metrics import WHOLE
from pipeline.monitoring.episodes import Episode
from pipeline.monitoring.findings import FLIP_SHARE, Findings, Usual
from pipeline.monitoring.followed_scores import Exclusions
from pipeline.monitoring.gates import Releases
from pipeline.monitoring.inputs import Integers, Presence
from pipeline.monitoring.subjects import Part, Series, Subject
from pipeline.settings.labels import parts_of
from pipeline.settings.sections import Trends
from schemas.monitoring import MISSING_GROUP

FEWEST_QUERIES = 20
"""Queries that hold a group where there is enough of it to be missed.  Of independent queries, 20
are expected and none comes once in 500 million nights.  Queries that show the same items are not
independent: 10 would do for queries that are, but where five come and go together that is two."""


def without_renamed(presence: Presence, values: Mapping[str, Mapping[str, str]]) -> Presence:
    """The same, but no batch is asked for groups that the settings count as others by now."""
    renamed = [
        any(
            group in values.get(column, {}) for column, group in parts_of(attribute, groups).items()
        )
        for attribute, groups in presence.groups
    ]
    told = presence.told.copy()
    told[:, np.flatnonzero(renamed)] = False
    return replace(presence, told=told)


def serving(
    presence: Presence, gated: Collection[str], exclusions: Exclusions
) -> NDArray[np.bool_]:
    """Which batches may say what is usual of which group, shape (batches, groups).

    Not those that a gate kept out, those that do not know the attribute, and acknowledged incidents
    of the attribute, or of one that it is an intersection of.
    """
    able = presence.told.copy()
    able[[each in gated for each in presence.batches]] = False
    row_of = {batch: row for row, batch in enumerate(presence.batches)}
    parts = [_part(attribute) for attribute, _ in presence.groups]
    for attribute, batch in exclusions:
        if attribute is not None and batch in row_of:
            able[row_of[batch], [_is_about(part, _part(attribute)) for part in parts]] = False
    return able


def missing_findings(
    into: Findings,
    presence: Presence,
    row: int,
    serves: NDArray[np.bool_],
    releases: Releases,
    settings: Trends,
) -> None:
    """Groups that are usual and of which the batch has no row; comes after the other findings.

    What is usual is told by the batches that serve, since somebody marked a release, at most twice
    the window back.  A group is fine where it is there, or where none of enough batches has it any
    more.  Whether scores of an attribute that lacks a group are fine cannot be told.
    """
    since = releases.data_of(presence.batches[row])
    near = np.arange(max(0, row - 2 * settings.window), row)
    near = near[[presence.batches[each] >= since for each in near]]
    here = serves[near]
    enough = here & (presence.queries[near] >= FEWEST_QUERIES)
    there = presence.rows[row] > 0
    absent = presence.told[row] & ~there
    never = ~(here & (presence.rows[near] > 0)).any(axis=0)
    forgotten = absent & never & (here.sum(axis=0) >= settings.least)
    into.fine |= {_subject(*presence.groups[at]) for at in np.flatnonzero(there | forgotten)}
    for column in map(int, np.flatnonzero(absent & (enough.sum(axis=0) >= settings.least))):
        usual = _usual(presence, near[here[:, column]], column, settings)
        if usual is not None:
            subject = _subject(*presence.groups[column])
            into.found.add(subject)
            into.missing[subject] = usual
    lacking = [subject.part for subject in into.missing]
    into.fine = {
        subject
        for subject in into.fine
        if subject.kind in ("gate", "missing")
        or not any(_is_about(subject.part, part) for part in lacking)
    }


def _usual(presence: Presence, rows: Integers, column: int, settings: Trends) -> Usual | None:
    """What is usual of a group in the batches ``rows``; None where it is not usual at all.

    Looked at are the last ``settings.window`` up to the last one that has it: how long it is gone
    does not make it less usual.  Usual is a group of which there is enough in ``FLIP_SHARE`` of
    them, ``settings.least`` at the fewest, and in no more than one stretch too little: what was
    gone twice comes and goes.
    """
    last = int(np.flatnonzero(presence.rows[rows, column])[-1])
    rows = rows[: last + 1][-settings.window :]
    enough = presence.queries[rows, column] >= FEWEST_QUERIES
    gaps = int(np.sum(~enough & np.r_[True, enough[:-1]]))
    if gaps > 1 or enough.sum() < max(settings.least, FLIP_SHARE * len(rows)):
        return None
    return Usual(
        presence.batches[rows[-1]],
        float(np.median(presence.queries[rows[enough], column])),
        float(np.median(presence.rows[rows[enough], column])),
        int(enough.sum()),
        len(rows),
    )


def missing_reasons(
    episodes: Iterable[Episode], start: str, attributes: Collection[str]
) -> dict[str, dict[str, str]]:
    """By batch from ``start`` on and attribute, why none of its scores is ok, as a status_reason.

    An intersection lacks what its attributes lack; of several groups, the first of its own is
    named.
    """
    found: dict[str, dict[str, str]] = {}
    about = [each for each in episodes if each.subject.kind == "missing" and each.subject.series]
    for attribute in attributes:
        part = _part(attribute)
        for each in sorted(about, key=lambda each: (each.subject.part != part, each.subject.key)):
            if not _is_about(part, each.subject.part):
                continue
            for batch in each.seen:
                if batch >= start:
                    reason = f"{MISSING_GROUP}: {each.subject.key[3]}"
                    found.setdefault(batch, {}).setdefault(attribute, reason)
    return found


def named_groups(episodes: Iterable[Episode]) -> set[tuple[str, str]]:
    """Attribute and group of every episode of a missing group."""
    series = (each.subject.series for each in episodes if each.subject.kind == "missing")
    return {(each.attribute, each.metric) for each in series if each and each.attribute}


def _subject(attribute: str, group: str) -> Subject:
    return Subject.about("missing", Series(WHOLE, WHOLE, attribute, group, None))


def _part(attribute: str) -> Part:
    return Part(WHOLE, WHOLE, attribute)


def _is_about(part: Part, other: Part) -> bool:
    """Whether a part is another one, a slice of it, or an intersection with it."""
    return part == other or part.within(other)
