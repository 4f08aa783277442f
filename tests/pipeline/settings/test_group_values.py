"""``values`` in the settings: what it may say, and which digests it is part of."""

import unicodedata
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipeline.errors import SettingsError
from pipeline.log.values import tidy
from pipeline.settings.audit import Settings
from pipeline.settings.group_values import tidied
from pipeline.settings.load import deciding_as, load_settings, settings_from


def settings(**said: Any) -> Settings:
    return settings_from({"attributes": ["gender"], **said}, folder=Path())


def test_texts_are_tidied_as_delivered_ones_are() -> None:
    decomposed = unicodedata.normalize("NFD", "Zoë")
    found = settings(values={"gender": {f" {decomposed}\u00a0": "\ufeffF\n", "n/a": "unknown"}})
    assert found.values == {"gender": {"Zoë": "F", "n/a": "unknown"}}


def test_tidying_is_that_of_delivered_values() -> None:
    points = [chr(each) for each in range(1, 0x10000) if not 0xD800 <= each < 0xE000]
    # What Unicode has added since may be known to one of the two alone.
    texts = [f"{each}a{each} b{each}" for each in points if unicodedata.category(each) != "Cn"]
    texts += ["", " ", "\u200b", "unknown", "a\u0308", "\U0001f600"]
    with duckdb.connect() as connection:
        said = connection.execute(
            f"SELECT {tidy('text')} FROM (SELECT unnest(?) AS text)", [texts]
        ).fetchall()
    differing = [text for text, (found,) in zip(texts, said, strict=True) if tidied(text) != found]
    assert [ascii(each) for each in differing] == []


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"values": {"gendr": {"a": "b"}}}, ["values: gendr is not among the attributes"]),
        ({"values": {"gender*x": {"a": "b"}}}, ["values: gender*x is not among the attributes"]),
        (
            {"values": {"device": {"a": "b"}}, "slices": ["device"]},
            ["values: device is a slice, and only attributes have groups"],
        ),
        ({"values": {"gender": {}}}, ["values.gender: name at least one"]),
        ({"values": {"gender": {1: "F"}}}, ["write the name in quotes"]),
        ({"values": {"gender": {"F": 1}}}, ["values.gender.F", "string"]),
        ({"values": {"gender": ["F"]}}, ["values.gender"]),
        ({"values": {"gender": {"x": ""}}}, ["gender: 'x' counts as nothing; name a group"]),
        ({"values": {"gender": {"x": " "}}}, ["gender: 'x' counts as nothing; name a group"]),
        ({"values": {"gender": {"": "F"}}}, ["rows without a value stay 'unknown'; leave '' out"]),
        ({"values": {"gender": {"unknown": "F"}}}, ["leave 'unknown' out"]),
        ({"values": {"gender": {"F": " F"}}}, ["'F' counts as itself"]),
        ({"values": {"gender": {"a": "b", " a": "c"}}}, ["'a' stands twice"]),
        (
            {"values": {"gender": {"A": "B", "B": "C", "C": "D"}}},
            ["'A' counts as 'B', and that as 'C'; name the last one: 'A' counts as 'D'"],
        ),
        (
            {"values": {"gender": {"A": "B", "B": "A"}}},
            ["'A' counts as 'B', and that as 'A': a circle"],
        ),
        ({"values": {"gender": {"\ud800": "F"}}}, ["a character that is no text"]),
        (
            {"values": {"gender": {"Female": "F"}}, "groups": {"gender": ["F", "Female"]}},
            ["values: gender: 'Female' counts as 'F', so `groups` cannot name it"],
        ),
        (
            {"values": {"gender": {"Female": "W"}}, "groups": {"gender": ["F", "M"]}},
            ["values: gender: 'Female' counts as 'W', which `groups` does not name"],
        ),
        (
            {
                "values": {"gender": {"Female": "F"}},
                "targets": {"gender": {"Female": 0.5, "M": 0.5}},
            },
            ["values: gender: 'Female' counts as 'F', so `targets` cannot name it"],
        ),
    ],
)
def test_what_is_wrong(said: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(SettingsError) as caught:
        settings(**said)
    for word in words:
        assert word in str(caught.value)


def test_a_closed_list_takes_what_counts_as_unknown() -> None:
    assert settings(values={"gender": {"n/a": "unknown"}}, groups={"gender": ["F", "M"]}).values


def test_texts_that_yaml_takes_for_others_need_quotes(tmp_path: Path) -> None:
    path = tmp_path / "audit.yaml"
    path.write_text("attributes: [gender]\nvalues: {gender: {no: M}}\n")
    with pytest.raises(SettingsError, match="write the name in quotes"):
        load_settings(path)
    path.write_text("attributes: [gender]\nvalues: {gender: {'no': M, \"1\": F}}\n")
    assert load_settings(path).values == {"gender": {"no": "M", "1": "F"}}


def test_digests_of_settings_without_it_are_what_they_were() -> None:
    plain = settings()
    assert (plain.rows_hash, plain.config_hash) == ("85a3cd389d0e6661", "200e432816774cee")
    closed = settings(groups={"gender": ["F"]})
    assert (closed.rows_hash, closed.config_hash) == ("85a3cd389d0e6661", "60b484305c8913a9")
    assert '"values"' not in plain.deciding
    assert settings(values={}).deciding == plain.deciding


def test_it_decides_rows() -> None:
    plain = settings()
    found = [
        settings(values={"gender": groups})
        for groups in ({"Female": "F"}, {"Female": "W"}, {"Female": "F", "Male": "M"})
    ]
    assert len({each.rows_hash for each in (plain, *found)}) == 4
    assert len({each.config_hash for each in (plain, *found)}) == 4
    other_order = settings(values={"gender": {"Male": "M", " Female": "F"}})
    assert other_order.rows_hash == found[2].rows_hash


def test_settings_of_then_stand_in_the_place_of_present_ones() -> None:
    plain, mapped = settings(), settings(values={"gender": {"Female": "F"}})
    assert deciding_as(mapped, plain.deciding).rows_hash == plain.rows_hash
    assert deciding_as(plain, mapped.deciding).rows_hash == mapped.rows_hash
