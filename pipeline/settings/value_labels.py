"""``labels``: how values of attributes and slice columns are named in sentences.

Here: that setting, and names of groups and slices by it.  Not here: names of scores (``metrics``),
and the sentences (``pipeline.formatting``).
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from metrics import UNKNOWN, WHOLE
from pipeline.settings.labels import parts_of

NOT_KNOWN = "not known"
"""The group of items without a value."""
EVERYTHING = "all requests"
"""The whole batch."""
_LONGEST = 80  # characters: a label stands within a sentence
_NO_TEXT = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


def wrong_value_labels(label_of: Mapping[str, str]) -> list[str]:
    """What is wrong with the labels of one column's values."""
    problems = [
        f"{value!r}: a label has 1 to {_LONGEST} characters, on one line"
        for value, label in label_of.items()
        if not 0 < len(label.strip()) <= _LONGEST or _NO_TEXT.search(label)
    ]
    counts = Counter(label.strip() for label in label_of.values())
    return problems + [
        f"two values are called {label!r}; people could not tell them apart"
        for label, count in counts.items()
        if count > 1
    ]


@dataclass(frozen=True)
class ValueLabels:
    """Names of groups and slices.

    >>> names = ValueLabels({"gender": {"F": "women"}, "market": {"de": "Germany"}})
    >>> names.group("gender", "F"), names.group("gender*region", "F*West")
    ('women', 'women, West')
    >>> names.slice("market", "de"), names.slice("all", "all")
    ('Germany', 'all requests')
    """

    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def value(self, column: str, value: str) -> str:
        """One value of a slice column or of an attribute that is no intersection."""
        if label := self.labels.get(column, {}).get(value):
            return label.strip()
        return NOT_KNOWN if value == UNKNOWN else value

    def group(self, attribute: str, group: str) -> str:
        """A group of an attribute, or of an intersection of several."""
        parts = parts_of(attribute, group).items()
        return ", ".join(self.value(column, value) for column, value in parts)

    def slice(self, name: str, value: str) -> str:
        """A slice, or the whole batch."""
        return EVERYTHING if name == WHOLE else self.value(name, value)
