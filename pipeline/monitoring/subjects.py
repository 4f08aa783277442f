"""What episodes are about: scores, the attributes of slices, groups, gates.

Not here: what is wrong with them (``findings``).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from metrics import WHOLE
from pipeline.settings.labels import JOIN, parts_of
from schemas.monitoring import SERIES_KEY


class Part(NamedTuple):
    """One attribute of one slice; without an attribute, the scores that know no groups."""

    slice: str
    slice_value: str
    attribute: str | None

    @property
    def is_whole(self) -> bool:
        """Whether it is about whole batches."""
        return self.slice == WHOLE

    @property
    def place(self) -> str:
        """The slice in words."""
        return "whole batch" if self.is_whole else f"{self.slice} {self.slice_value}"

    def within(self, other: "Part") -> bool:
        """Whether it is a piece of ``other``: a slice of it, or an intersection with it.

        >>> piece = Part("device", "mobile", "gender*region")
        >>> [piece.within(Part("all", "all", name)) for name in ("gender*region", "region", "age")]
        [True, True, False]
        """
        here = other.is_whole or other[:2] == self[:2]
        return self != other and here and _names(other.attribute) <= _names(self.attribute)


def _names(attribute: str | None) -> set[str | None]:
    return {None} if attribute is None else {*attribute.split(JOIN)}


class Series(NamedTuple):
    """One score of one slice and attribute; of a gate or a group, ``metric`` is its name."""

    slice: str
    slice_value: str
    attribute: str | None
    metric: str
    aggregation: str | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Series":
        """The series that a row with the columns of a series is about."""
        return cls(*(row[name] for name in SERIES_KEY))

    @property
    def label(self) -> str:
        """The score as printed: ``EXP.MinMaxRatio``."""
        return self.metric if self.aggregation is None else f"{self.metric}.{self.aggregation}"

    @property
    def part(self) -> Part:
        """The slice and attribute that it is a score of."""
        return Part(self.slice, self.slice_value, self.attribute)

    @property
    def whole(self) -> "Series":
        """The same score and attribute of whole batches."""
        return self._replace(slice=WHOLE, slice_value=WHOLE)

    @property
    def values(self) -> "Series":
        """The values of the groups behind it."""
        return self._replace(aggregation=None)


class Subject(NamedTuple):
    """What an episode is about: a breach a score, a missing group or gate that, else a part."""

    kind: str
    part: Part
    series: Series | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Subject":
        """The subject of a row of ``alerts``."""
        if row["metric"] is None:
            return cls(row["kind"], Part(*(row[name] for name in Part._fields)))
        return cls.about(row["kind"], Series.of(row))

    @classmethod
    def about(cls, kind: str, series: Series) -> "Subject":
        """The subject that one score, one group or one gate is."""
        return cls(kind, series.part, series)

    @property
    def key(self) -> tuple[str | None, ...]:
        """The columns of a series as ``alerts`` holds them: without score for a part."""
        return self.series or (*self.part, None, None)


def is_piece(subject: Subject, other: Subject) -> bool:
    """Whether a missing group belongs to another one: to a group of one of its attributes.

    >>> women, mixed = (
    ...     Subject.about("missing", Series(WHOLE, WHOLE, attribute, group, None))
    ...     for attribute, group in (("gender", "F"), ("gender*region", "F*north"))
    ... )
    >>> is_piece(mixed, women), is_piece(women, mixed)
    (True, False)
    """
    return subject != other and _values(other) <= _values(subject)


def _values(subject: Subject) -> set[tuple[str | None, str | None]]:
    """The attributes of a group, each with its value; together where values cannot be parted."""
    attribute, group = subject.key[2:4]
    if attribute is None or group is None:
        return {(attribute, group)}
    return {*parts_of(attribute, group).items()}
