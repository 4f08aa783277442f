"""Which known group a new one resembles, and what a remark on it says."""

from pathlib import Path

import duckdb
import pytest
import yaml
from stores import audit

from pipeline.history.new_groups import remarks_on_new_groups, resembled
from pipeline.settings.load import settings_from

BATCHES = ("2026-01-05", "2026-01-06")


@pytest.mark.parametrize(
    ("group", "known", "expected"),
    [
        ("female", ["Female", "Male"], "Female"),
        ("\uff26", ["F", "M"], "F"),
        ("fe\u200bmale", ["female", "male"], "female"),
        ("non  binary", ["Non binary"], "Non binary"),
        ("STRASSE", ["straße"], "straße"),
        ("F", ["Female", "Male"], "Female"),
        ("Female", ["F", "M"], "F"),
        ("male", ["m", "f"], "m"),
        ("femal", ["female", "male"], "female"),
        ("femalle", ["female", "male"], "female"),
        ("Unknown", ["F", "M"], "unknown"),
        ("north", ["north-east", "north-west"], None),
        ("male", ["female"], None),
        ("group2", ["group1"], None),
        ("group1", ["group10"], None),
        ("18-34", ["18-24", "24-34"], None),
        ("X", ["F", "M", "unknown"], None),
        ("x" * 101, ["x" * 100], None),
        ("", [], None),
    ],
)
def test_what_a_group_resembles(group: str, known: list[str], expected: str | None) -> None:
    assert resembled(group, known) == expected


def remarks(new: dict[str, int], known: list[str], **said: object) -> tuple[str, ...]:
    """Remarks on a batch file with groups of given sizes, beside a history with others."""
    with duckdb.connect() as connection:
        for database in ("batch", "history"):
            connection.execute(f"ATTACH ':memory:' AS {database}")
            connection.execute(
                f"CREATE TABLE {database}.group_history "
                "(batch VARCHAR, slice VARCHAR, attribute VARCHAR, group_value VARCHAR, n BIGINT)"
            )
        rows = [[BATCHES[1], "all", "gender", group, n] for group, n in new.items()]
        connection.executemany("INSERT INTO batch.group_history VALUES (?, ?, ?, ?, ?)", rows)
        rows += [[BATCHES[0], "all", "gender", group, 1] for group in known]
        connection.executemany("INSERT INTO history.group_history VALUES (?, ?, ?, ?, ?)", rows)
        return remarks_on_new_groups(connection, audit(Path(), **said), BATCHES[1])


def test_only_groups_of_no_other_batch_are_new() -> None:
    assert remarks({"F": 2, "M": 3}, ["M", "F"]) == ()
    assert remarks({"F": 2}, []) == ()
    assert remarks({"F": 2, "X": 1_204}, ["F"]) == (
        "gender: no other batch has the group 'X' (1,204 rows)",
    )


@pytest.mark.parametrize(
    "known", ["No", "1", "a: b", "q'\"", "x\ny", "\u00e9\U0001f600", "#a", "null"]
)
def test_the_line_to_write_means_what_it_says(known: str) -> None:
    new = f"{known} "
    (remark,) = remarks({new: 1}, [known])
    assert "\n" not in remark
    line = remark.partition("If they mean the same: `")[2].removesuffix("`")
    assert yaml.safe_load(line) == {"values": {"gender": {new: known}}}


def test_what_the_settings_say_of_groups_is_not_advised() -> None:
    plain = ("gender: no other batch has the group 'F' (1 row)",)
    assert remarks({"F": 1}, ["Female"], groups={"gender": ["F", "M"]}) == plain
    assert remarks({"F": 1}, ["Female"], values={"gender": {"Female": "F"}}) == plain
    (remark,) = remarks({"fem": 1}, ["Female"], values={"gender": {"Female": "F"}})
    assert remark.endswith("`values: {gender: {fem: F}}`")
    assert settings_from(
        {"attributes": ["gender"], "values": {"gender": {"Female": "F", "fem": "F"}}}, folder=Path()
    )


def test_many_new_groups_are_counted() -> None:
    found = remarks({f"id {n}": 1 for n in range(20)}, ["F"])
    assert len(found) == 11
    assert found[-1] == "gender: no other batch has 10 more groups"


def test_small_cells_hide_groups_and_rows() -> None:
    (remark,) = remarks({"femal": 7, "X": 1}, ["female"], privacy={"min_cell": 2})
    assert remark.startswith("gender: a group that no other batch has; ")
    assert not any(text in remark for text in ("femal", "7", "X"))
