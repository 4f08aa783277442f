"""Names by number, which series, alerts and lists of a document share.

Not here: the values (``columns``), and what a document holds (``document``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from metrics import WHOLE
from pipeline.publish.page.reading import Row
from pipeline.publish.page.scores import about
from pipeline.publish.page.travel import plain, whole
from pipeline.settings.value_labels import ValueLabels

_ALERT = (
    *("alert", "kind", "state", "opened", "last_seen", "resolved", "worst_value", "worst_batch"),
    *("latest_value", "acknowledged_by"),
)


@dataclass
class Numbered:
    """Things by number, in the order in which they came."""

    found: dict[Any, int] = field(default_factory=dict)

    def __call__(self, key: Any) -> int:
        """The number of ``key``, a new one if it has none."""
        return self.found.setdefault(key, len(self.found))


def attribute_label(name: str | None) -> str:
    """An attribute, or an intersection of several, within a sentence."""
    return "" if name is None else " and ".join(name.split("*"))


class Names:
    """Numbers for names, shared by all series of a document."""

    def __init__(
        self, at: Mapping[str, int], slices: Sequence[tuple[str, str]], labels: ValueLabels
    ) -> None:
        self.at = at
        self.labels = labels
        self.slice = {each: number for number, each in enumerate(slices)}
        self.attribute, self.label, self.group = Numbered(), Numbered(), Numbered()
        self.metric, self.reason = Numbered(), Numbered()
        self.metric_of: dict[str, int] = {}

    def shows(self, row: Row) -> bool:
        """Whether the slice and the batch of a row are on the page."""
        return (row["slice"], row["slice_value"]) in self.slice and row["batch"] in self.at

    def place(self, row: Row) -> list[int]:
        """Slice and attribute."""
        return [self.slice[row["slice"], row["slice_value"]], self.attribute(row["attribute"])]

    def score(self, row: Row) -> int:
        """The number of the label, whose metric is noted."""
        self.metric_of.setdefault(row["label"], self.metric(row["metric"]))
        return self.label(row["label"])

    def group_of(self, attribute: str | None, group: str | None) -> int:
        """The number of a group; -1 for none."""
        return -1 if group is None else self.group((attribute, group))

    def shown(self, row: Row, label: str | None) -> list[int] | None:
        """Where a score stands on the page: slice, attribute, label; None where it does not."""
        place = (row["slice"], row["slice_value"])
        if label not in self.label.found or place not in self.slice:
            return None
        return [*self.place(row), self.label(label)]

    def alert(self, row: Row) -> dict[str, Any]:
        """An alert as the script reads it."""
        said = {name: plain(row[name]) for name in _ALERT}
        label = row["reading_of"] or row["label"]
        of = ", ".join(
            filter(None, (label and about(label).plain, attribute_label(row["attribute"])))
        )
        return {
            **said,
            "score": self.shown(row, label),
            "of": of,
            "whole": row["slice"] == WHOLE,
            "loser": self.group_of(row["attribute"], row["worst_loser"]),
            "latest_loser": self.group_of(row["attribute"], row["latest_loser"]),
            "slice": self.labels.slice(row["slice"], row["slice_value"]),
        }

    def window(self, row: Row) -> dict[str, Any]:
        """A score of several days as the script reads it."""
        return {
            "days": row["days"],
            "first": row["first_day"],
            "last": row["batch"],
            "attribute": self.attribute(row["attribute"]),
            "label": self.label(row["label"]),
            "value": whole(row["judged_value"]),
            "lower": whole(row["judged_lower"]),
            "upper": whole(row["judged_upper"]),
            "worst": self.group_of(row["attribute"], row["worst_group"]),
            "status": row["status"],
        }
