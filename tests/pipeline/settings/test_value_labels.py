"""``labels`` in the settings: names of values in sentences, of which no number depends."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import SettingsError
from pipeline.settings.audit import Settings
from pipeline.settings.load import settings_from
from pipeline.settings.value_labels import ValueLabels

LABELS = {"gender": {"F": "women", "unknown": "nobody asked"}, "market": {"de": "Germany"}}


def settings(**said: Any) -> Settings:
    return settings_from({"attributes": ["gender"], "slices": ["market"], **said}, folder=Path())


def test_values_are_called_by_their_labels() -> None:
    names = ValueLabels(settings(labels=LABELS).labels)
    assert names.group("gender", "F") == "women"
    assert names.group("gender", "X") == "X"
    assert names.group("gender*region", "unknown*West") == "nobody asked, West"
    assert names.group("region", "unknown") == "not known"
    assert names.slice("market", "de") == "Germany"
    assert names.slice("all", "all") == "all requests"


def test_no_number_depends_on_labels() -> None:
    assert settings(labels=LABELS).config_hash == settings().config_hash
    assert settings(labels=LABELS).rows_hash == settings().rows_hash


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"gendr": {"F": "women"}}, "labels: gendr is neither an attribute nor a slice"),
        ({"gender": {"F": " "}}, "'F': a label has 1 to 80 characters, on one line"),
        ({"gender": {"F": "a\nb"}}, "'F': a label has 1 to 80 characters, on one line"),
        ({"gender": {"F": "people", "M": "people "}}, "two values are called 'people'"),
        ({"gender": {}}, "labels.gender"),
    ],
)
def test_labels_that_say_nothing_are_refused(labels: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        settings(labels=labels)
    assert message in str(refused.value)
