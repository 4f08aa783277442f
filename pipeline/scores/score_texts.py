"""The texts of one score: its sentence, its numbers told apart, its title.

Not here: which score speaks for a batch (``pipeline.publish.conclusions``), and what alerts say
around it (``pipeline.monitoring``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from metrics import WHOLE, LabelError, ScoreName, parse_score
from pipeline.formatting.apart import texts_apart
from pipeline.formatting.numbers import number
from pipeline.formatting.sentences import (
    Group,
    attribute_text,
    capital,
    ends_of,
    score_sentence,
    score_title,
)
from pipeline.settings.audit import Settings
from pipeline.settings.value_labels import EVERYTHING, ValueLabels
from schemas.columns import Row


@dataclass(frozen=True)
class Names:
    """How the settings name values, and whether the top of a list is good to have."""

    labels: ValueLabels
    top_is_good: bool

    @classmethod
    def of(cls, settings: Settings) -> "Names":
        """The names of these settings."""
        return cls(ValueLabels(settings.labels), settings.top_of_list == "good")

    def group(self, attribute: str | None, group: str | None) -> Group | None:
        """A group; None where there is none."""
        if group is None or attribute is None:
            return None
        return Group(group, self.labels.group(attribute, group))


@dataclass(frozen=True)
class ScoreTexts:
    """A row of a score, as judged and with its limits, in words.

    ``usual`` is what it usually is, if known.
    """

    row: Row
    names: Names
    usual: float | None = None

    @classmethod
    def as_limited_now(cls, row: Row, settings: Settings) -> "ScoreTexts":
        """A row with ``label``, and the limit that the settings hold its score to."""
        threshold = settings.thresholds.get(row["label"])
        limits = {
            "threshold_min": threshold.min if threshold else None,
            "threshold_max": threshold.max if threshold else None,
        }
        return cls({**row, **limits}, Names.of(settings))

    @cached_property
    def score(self) -> ScoreName | None:
        """The score, None where it is declared no more."""
        try:
            return parse_score(self.row["label"])
        except LabelError:
            return None

    @property
    def limit(self) -> float | None:
        """The limit it was judged by."""
        least: float | None = self.row["threshold_min"]
        return self.row["threshold_max"] if least is None else least

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Its numbers by name, those that there are, in digits that tell them apart."""
        values = {name: self.row[name] for name in ("value", "lower", "upper")}
        values |= {"limit": self.limit, "usual": self.usual}
        unit, fairest = (self.score.unit, self.score.fairest) if self.score else ("number", None)
        return texts_apart(values, unit, beside=fairest)

    def text(self, value: float | None) -> str:
        """Another value of the same score, as ``texts`` has its own."""
        unit = self.score.unit if self.score else "number"
        fairest = self.score.fairest if self.score else None
        texts = texts_apart({"value": value, "limit": self.limit}, unit, beside=fairest)
        return texts.get("value", number(None))

    @property
    def loser(self) -> Group | None:
        """The group that is worst off."""
        return self.names.group(self.row["attribute"], self.row["worst_group"])

    @property
    def winner(self) -> Group | None:
        """The group that is best off."""
        return self.names.group(self.row["attribute"], self.row["best_group"])

    @property
    def place(self) -> str:
        """The slice in words, ``all requests`` for the whole batch."""
        if self.row["slice"] == WHOLE:
            return EVERYTHING
        return self.names.labels.slice(self.row["slice"], self.row["slice_value"])

    def sentence(self, *, still: bool = False, lead: str = "") -> str:
        """What it says, without a full stop."""
        if self.score is None:
            return f"{self.row['label']} was {self.texts['value']}"
        ends = ends_of(self.score, self.loser, self.winner, top_is_good=self.names.top_is_good)
        said = score_sentence(self.score, self.texts["value"], ends, still=still, lead=lead)
        of_slice = "" if self.row["slice"] == WHOLE else f", for {self.row['slice']} {self.place}"
        return said + of_slice

    @property
    def title(self) -> str:
        """Its name, attribute and slice."""
        if self.score is None:
            return str(self.row["label"])
        return score_title(self.score, self.row["attribute"], self.place)

    @property
    def short_title(self) -> str:
        """The same with commas only, and without ``all requests``."""
        if self.score is None:
            return str(self.row["label"])
        attribute = self.row["attribute"]
        place = None if self.row["slice"] == WHOLE else self.place
        about = (self.score.plain, attribute and attribute_text(attribute), place)
        return capital(", ".join(filter(None, about)))

    @property
    def small(self) -> str:
        """The small print: title, value, interval and limit as numbers."""
        lower, upper = self.row["lower"], self.row["upper"]
        value = number(self.row["value"])
        if lower is not None and upper is not None:
            value += f" [{number(lower)}, {number(upper)}]"
        limit = "" if self.limit is None else f", limit {self.limit:g}"
        return f"{self.title}: {value}{limit}"
