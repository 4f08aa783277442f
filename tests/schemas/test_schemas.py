"""One contract in two languages: SQL made from a pandera schema refuses what pandera refuses."""

import json
import unicodedata
from datetime import datetime
from math import inf, isfinite, nan
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pandera.errors
import pandera.pandas as pa
import pyarrow
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from logs import DAY, Row, audit, batch_file, scored, write

from pipeline.runs.batches import run_batch
from schemas.columns import Column, Table, quoted
from schemas.history import BATCH_TABLES, HISTORY_TABLES
from schemas.offenders import RowRule, passes, row_rules
from schemas.rules import (
    BINARY,
    BINARY_RELEVANCE,
    CLICK,
    DUPLICATE_ITEM,
    DUPLICATE_RANK,
    ITEM_ID,
    LIST_ID,
    LOGGED,
    MAX_RANK,
    POSITION,
    QUERY_CONSTANT,
    RANK,
    RANK_GAP,
    REFERENCE_RANK,
    RELEVANCE,
    SCORE,
    ListRule,
    list_rules,
    named,
    ranking_log,
    slice_constant,
)
from schemas.scores import FAIRNESS_HISTORY, SCORE_SCHEMA

NUMBERS = (RANK, SCORE, RELEVANCE, CLICK, REFERENCE_RANK, POSITION, BINARY)
TEXTS = (LIST_ID, ITEM_ID)
FEW = examples(15, few=5)
LARGEST = 9e15
"""Whole numbers beyond it are no longer told apart in a double."""

numbers = st.one_of(
    st.none(),
    st.sampled_from(
        [0.0, -0.0, 1.0, 1.0000000000000002, -1e-300, 5e-324, 0.5, 1.2, 1.5, 2.0, -1.0, nan, inf,
         -inf, 1.7e308, 1.7976931348623157e308, -1.75e308, 1e6, 1e6 + 1, 1e15, 1e300]
    ),
    st.floats(),
    st.integers(-5, 12).map(float),
    st.floats(-0.5, 1.5),
)  # fmt: skip
texts = st.one_of(
    st.none(),
    st.sampled_from(["", " ", "x", "null", "NaN", "0", "\x00", "'; DROP TABLE x; --", "\u00a0"]),
    st.text(),
)


def arrow_frame(column: Column, values: list[Any]) -> pd.DataFrame:
    """Values as the gate sees them: Arrow-backed, where NaN is not null."""
    array = pyarrow.array(values, column.arrow)
    return pyarrow.table({column.name: array}).to_pandas(types_mapper=pd.ArrowDtype)


def refused_by_pandera(column: Column, values: list[Any]) -> list[bool]:
    """For each value, whether the schema refuses it; a whole number cannot hold 1.5 at all."""
    whole = column.type == "BIGINT"
    unfit = [
        whole and value is not None and not (isfinite(value) and value == int(value))
        for value in values
    ]
    kept = [
        int(value) if whole and value is not None else value
        for value, no in zip(values, unfit, strict=True)
        if not no
    ]
    found: set[int] = set()
    try:
        pa.DataFrameSchema({column.name: column.pandera}).validate(
            arrow_frame(column, kept), lazy=True
        )
    except pandera.errors.SchemaErrors as errors:
        found = set(errors.failure_cases["index"])
    # A verdict without a row is one on the whole column.
    assert not found or pd.Series(list(found)).notna().all()
    verdicts = iter([at in found for at in range(len(kept))])
    return [no or next(verdicts) for no in unfit]


def broken_rules(column: Column, values: list[Any]) -> list[list[str]]:
    """For each value, the rules that the SQL finds broken."""
    connection = duckdb.connect()
    kind = pyarrow.string() if column.type == "VARCHAR" else pyarrow.float64()
    frame = pyarrow.table({"place": range(len(values)), "value": pyarrow.array(values, kind)})
    connection.register("delivered", frame)
    rules = list(row_rules(column, raw='"raw"', value='"value"'))
    assert rules
    conditions = ", ".join(f"({rule.offends})" for rule in rules)
    rows = connection.execute(
        f"SELECT {conditions} FROM (SELECT place, value, value::VARCHAR AS raw FROM delivered) "
        "ORDER BY place"
    ).fetchall()
    connection.close()
    # Null would be true in one place and false in another.
    assert all(verdict is not None for row in rows for verdict in row)
    return [
        [rule.name for rule, verdict in zip(rules, row, strict=True) if verdict] for row in rows
    ]


@FEW
@given(st.lists(numbers, min_size=1, max_size=30))
@pytest.mark.parametrize("column", NUMBERS, ids=lambda column: column.checks[0].title)
def test_numbers_are_refused_alike(column: Column, values: list[float | None]) -> None:
    if column.type == "BIGINT":
        values = [v for v in values if v is None or not isfinite(v) or abs(v) < LARGEST]
    broken = broken_rules(column, values)
    assert [bool(rules) for rules in broken] == refused_by_pandera(column, values), values
    assert all(len(rules) <= 1 for rules in broken)


@pytest.mark.slow
@FEW
@given(st.lists(texts, min_size=1, max_size=30))
@pytest.mark.parametrize("column", TEXTS, ids=lambda column: column.name)
def test_texts_are_refused_alike(column: Column, values: list[str | None]) -> None:
    broken = broken_rules(column, values)
    assert [bool(rules) for rules in broken] == refused_by_pandera(column, values), values
    assert all(len(rules) <= 1 for rules in broken)


@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [
        (RANK, None, "rank_missing"),
        (RANK, 1.5, "rank_not_whole"),
        (RANK, nan, "rank_not_whole"),
        (RANK, inf, "rank_not_whole"),
        (RANK, 0, "rank_low"),
        (RANK, -3, "rank_low"),
        (RANK, MAX_RANK + 1, "rank_high"),
        (RANK, MAX_RANK, None),
        (RANK, 1, None),
        (RELEVANCE, None, None),
        (RELEVANCE, nan, "relevance_range"),
        (RELEVANCE, inf, "relevance_range"),
        (RELEVANCE, 1.2, "relevance_range"),
        (RELEVANCE, -5e-324, "relevance_range"),
        (RELEVANCE, -0.0, None),
        (RELEVANCE, 1.0, None),
        (CLICK, 1.0000000000000002, "click_range"),
        (CLICK, None, None),
        (SCORE, None, "score_missing"),
        (SCORE, nan, "score_range"),
        (SCORE, -inf, "score_range"),
        (SCORE, -1e300, None),
        (REFERENCE_RANK, None, None),
        (REFERENCE_RANK, 0, "reference_rank_low"),
        (REFERENCE_RANK, MAX_RANK + 1, "reference_rank_high"),
        # Beyond what a double tells apart, where a cast would give nothing: refused, not lost.
        (REFERENCE_RANK, 1e16, "reference_rank_high"),
        (RANK, 1e16, "rank_high"),
        (BINARY, 0.5, "relevance_not_binary"),
        (BINARY, nan, "relevance_not_binary"),
        (BINARY, None, None),
        (LIST_ID, None, "list_id_missing"),
        (ITEM_ID, "", "item_id_empty"),
        (ITEM_ID, " ", None),
        (ITEM_ID, "null", None),
    ],
)
def test_rules_by_hand(column: Column, value: Any, rule: str | None) -> None:
    given = value if value is None or column.type == "VARCHAR" else float(value)
    assert broken_rules(column, [given]) == [[rule] if rule else []]
    assert refused_by_pandera(column, [given]) == [rule is not None]


def checks() -> list[tuple[str, pa.Check]]:
    columns = [*LOGGED, POSITION, BINARY]
    return [(column.name, check) for column in columns for check in column.checks]


@pytest.mark.parametrize(("name", "check"), checks(), ids=lambda each: str(each)[:40])
def test_every_check_on_what_is_delivered_has_its_sql(name: str, check: pa.Check) -> None:
    condition = passes(check, quoted(name))
    assert quoted(name) in condition
    # A rule is known by its title and explained by its error; neither may be pandera's own.
    assert str(check.title).startswith(name)
    assert check.error


def test_a_check_without_translation_is_no_rule() -> None:
    column = Column("x", "DOUBLE", "x", checks=(pa.Check.isin([1.0]), pa.Check(lambda x: x > 0)))
    with pytest.raises(KeyError):
        list(row_rules(column, raw="x", value="x"))


def test_rules_have_names_of_their_own() -> None:
    rules: list[RowRule | ListRule] = [
        rule for column in LOGGED for rule in row_rules(column, raw="r", value="v")
    ]
    rules += list_rules(("device",), gaps_allowed=False)
    names = [rule.name for rule in rules]
    assert len(set(names)) == len(names)
    for rule in rules:
        assert rule.error
    assert len(list_rules(("device",), gaps_allowed=True)) == len(
        list_rules((), gaps_allowed=False)
    )


# -- as text, from files


RANKS = {
    "1": None,
    " 2 ": None,
    "3.0": None,
    "1e3": None,
    "+4": None,
    "": "rank_missing",
    "  ": "rank_missing",
    "1.5": "rank_not_whole",
    "one": "rank_not_whole",
    "null": "rank_not_whole",
    "nan": "rank_not_whole",
    "inf": "rank_not_whole",
    "0x10": "rank_not_whole",
    "1_000": "rank_not_whole",
    "true": "rank_not_whole",
    "1,5": "rank_not_whole",
    "1e400": "rank_not_whole",
    "0": "rank_low",
    "-1": "rank_low",
    "1e-400": "rank_low",
    "1000001": "rank_high",
    "99999999999999999999": "rank_high",
}
SHARES = {
    "1": None,
    "0": None,
    " 0.5 ": None,
    "1e-3": None,
    "5e-324": None,
    "true": None,
    "FALSE": None,
    "": None,
    " ": None,
    "1.2": "_range",
    "1e3": "_range",
    "-0.1": "_range",
    "nan": "_range",
    "NaN": "_range",
    "inf": "_range",
    "-Infinity": "_range",
    "0,5": "_not_number",
    "null": "_not_number",
    "yes": "_not_number",
    "½": "_not_number",
    "0_1": "_not_number",
}
VALUES = {
    "1": 1.0, "0": 0.0, " 0.5 ": 0.5, "1e-3": 1e-3, "5e-324": 5e-324, "true": 1.0, "FALSE": 0.0,
    "": None, " ": None,
}  # fmt: skip


def text_rows() -> tuple[list[Row], dict[str, str]]:
    """One list per text, and the rule that each broken list breaks."""
    rows: list[Row] = []
    expected: dict[str, str] = {}
    blank = {"rank": "1", "relevance": "1", "click": "1", "group": "a"}
    for column, cases in (("rank", RANKS), ("relevance", SHARES), ("click", SHARES)):
        for number, (text, rule) in enumerate(cases.items()):
            name = f"{column} {number}"
            rows.append({"list_id": name, "item_id": "x", **blank, column: text})
            if rule:
                expected[name] = rule if column == "rank" else column + rule
    return rows, expected


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_text_is_read_as_it_stands(tmp_path: Path, suffix: str) -> None:
    rows, expected = text_rows()
    here = audit(
        tmp_path, ranks={"gaps": "keep"}, rejects={"max_rejected_share": 1}, metrics=["EXP"]
    )
    folder = tmp_path / "logs" / DAY
    table = pyarrow.table({name: [row[name] for row in rows] for name in rows[0]})
    write(table, folder / f"log.{suffix}")
    assert run_batch(here, DAY).status == "done"
    with batch_file(here) as connection:
        rejected = connection.sql("SELECT list_id, rule FROM batch.rejected_rows").fetchall()
        accepted = connection.sql(
            'SELECT list_id, "rank", relevance, click FROM batch.ranking_log'
        ).fetchall()
    assert dict(rejected) == expected
    assert len(rejected) == len(expected)
    delivered = {row["list_id"]: row for row in rows}
    assert {row[0] for row in accepted} == set(delivered) - set(expected)
    for name, rank, relevance, click in accepted:
        row = delivered[name]
        assert rank == float(row["rank"])
        assert relevance == VALUES[row["relevance"]]
        assert click == VALUES[row["click"]]


@pytest.mark.slow
def test_json_values_of_every_kind(tmp_path: Path) -> None:
    cases: list[tuple[Any, float | str | None]] = [
        (1, 1.0), (0.25, 0.25), (True, 1.0), (False, 0.0), (None, None), ("0.5", 0.5),
        ("", None), (2, "relevance_range"), ("null", "relevance_not_number"),
        ([1], "relevance_not_number"), ({"a": 1}, "relevance_not_number"),
        (0.1 + 0.2, 0.1 + 0.2), (1e-310, 1e-310),
    ]  # fmt: skip
    here = audit(tmp_path, rejects={"max_rejected_share": 1}, metrics=["EXP"])
    folder = tmp_path / "logs" / DAY
    folder.mkdir(parents=True)
    lines = [
        {"list_id": str(at), "item_id": 7, "rank": 1, "group": "a", "relevance": value}
        for at, (value, _) in enumerate(cases)
    ]
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    assert run_batch(here, DAY).status == "done"
    with batch_file(here) as connection:
        rejected = connection.sql("SELECT list_id, rule FROM batch.rejected_rows").fetchall()
        accepted = connection.sql("SELECT list_id, relevance FROM batch.ranking_log").fetchall()
    found = dict(rejected) | dict(accepted)
    assert [found[str(at)] for at in range(len(cases))] == [expected for _, expected in cases]


# -- rules about whole lists


@st.composite
def list_frames(draw: st.DrawFn) -> pd.DataFrame:
    size = draw(st.integers(1, 12))
    devices = st.sampled_from(draw(st.sampled_from([["app"], ["app", "web", "App"]])))
    queries = st.sampled_from(draw(st.sampled_from([["q"], [None], ["q", "r", "Q", None]])))
    rows = [
        {
            "list_id": draw(st.sampled_from("ab")),
            "item_id": draw(st.sampled_from("uvwxyz")),
            "rank": draw(st.integers(1, 5)),
            "device": draw(devices),
            "query_id": draw(queries),
            "file": draw(st.integers(0, 1)),
            "row": at,
        }
        for at in range(size)
    ]  # fmt: skip
    return pd.DataFrame(rows).astype({"query_id": "string"})


LIST_RULES = (
    DUPLICATE_ITEM,
    DUPLICATE_RANK,
    RANK_GAP,
    QUERY_CONSTANT,
    slice_constant("device"),
)


@pytest.mark.slow
@examples(40, few=8)
@given(list_frames())
def test_lists_are_refused_alike(frame: pd.DataFrame) -> None:
    connection = duckdb.connect()
    connection.register("delivered", pyarrow.Table.from_pandas(frame, preserve_index=False))
    connection.execute(
        'CREATE VIEW staged AS SELECT * EXCLUDE (device), device AS "=device" FROM delivered'
    )
    for rule in LIST_RULES:
        broken = connection.execute(
            f"SELECT list_id FROM staged GROUP BY list_id HAVING {rule.broken}"
        ).fetchall()
        offending = connection.execute(
            f"SELECT DISTINCT list_id FROM staged QUALIFY {rule.offends}"
        ).fetchall()
        refused = set()
        try:
            pa.DataFrameSchema(checks=[rule.check]).validate(frame, lazy=True)
        except pandera.errors.SchemaErrors as errors:
            refused = set(frame.loc[errors.failure_cases["index"].dropna(), "list_id"])
        assert {name for (name,) in broken} == refused, rule.name
        # Whoever is told that a list is broken is shown a row of it that is.
        assert {name for (name,) in offending} == refused, rule.name
    connection.close()


@pytest.mark.parametrize(
    ("rule", "ranks", "offenders"),
    [
        (RANK_GAP, [1, 2, 3], []),
        (RANK_GAP, [3, 1, 2], []),
        (RANK_GAP, [2, 3], [2]),
        (RANK_GAP, [1, 3, 4, 7], [3, 7]),
        (RANK_GAP, [1, 1, 2], []),
        (RANK_GAP, [1, 1, 3], [3]),
        (DUPLICATE_RANK, [1, 2, 2], [2, 2]),
        (DUPLICATE_RANK, [1, 2, 3], []),
    ],
)
def test_offending_ranks_by_hand(rule: ListRule, ranks: list[int], offenders: list[int]) -> None:
    values = ", ".join(f"('l', {rank})" for rank in ranks)
    rows = duckdb.execute(
        f"SELECT rank FROM (VALUES {values}) AS t(list_id, rank) QUALIFY {rule.offends}"
    ).fetchall()
    assert sorted(rank for (rank,) in rows) == offenders


def test_rows_that_leave_the_slice_of_the_first() -> None:
    # The row at the top says what the slice is, wherever it stands in the file.
    rows = duckdb.execute(
        "SELECT rank FROM (VALUES ('l', 3, 'app', 0, 1), ('l', 1, 'app', 0, 2), "
        "('l', 2, 'web', 0, 3), ('m', 1, 'web', 0, 4)) "
        f"""AS t(list_id, rank, "=device", file, row) QUALIFY {LIST_RULES[-1].offends}"""
    ).fetchall()
    assert rows == [(2,)]


# -- names of groups and slices


# Letters that this Python does not know yet may be known to the database.
characters = st.characters(exclude_categories=["Cs", "Cn"])
names = st.text(
    characters | st.sampled_from(" \t\n\x00\u00a0\u200b\ufeff\u0301é\u0065"), max_size=8
)


def tidied(text: str | None) -> str:
    def outside(letter: str) -> bool:
        return unicodedata.category(letter)[0] in "ZC"

    kept = unicodedata.normalize("NFC", text or "")
    while kept and outside(kept[0]):
        kept = kept[1:]
    while kept and outside(kept[-1]):
        kept = kept[:-1]
    return kept or "unknown"


@pytest.mark.slow
@examples(8, few=2)
@given(st.lists(st.one_of(st.none(), names), min_size=1, max_size=40))
def test_any_text_makes_a_group_that_passes_its_schema(delivered: list[str | None]) -> None:
    rows = [
        {"list_id": str(at), "item_id": "x", "rank": 1, "group": name, "kind": name}
        for at, name in enumerate(delivered)
    ]
    found = scored(rows, metrics=["EXP"], slices=["kind"])
    expected = {tidied(name) for name in delivered}
    assert set(found.values("EXP")) == expected
    assert {value for name, value, *_ in found.scores if name == "kind"} == expected
    refused = refused_by_pandera(named("group"), sorted(expected))
    assert not any(refused)
    # What is tidy stays as it is.
    assert {tidied(name) for name in expected} == expected


@pytest.mark.parametrize("text", ["", " ", " a", "a ", "\na", "a\t", None])
def test_untidy_names_do_not_pass(text: str | None) -> None:
    assert refused_by_pandera(named("group"), [text]) == [True]


# -- tables


LOG = ranking_log(("device", 'odd "name"'), ("group", "sex;--"))
TABLES = {
    (kind, table.name): table
    for kind, tables in (("batch", (*BATCH_TABLES, LOG)), ("history", HISTORY_TABLES))
    for table in tables
}


@pytest.mark.parametrize("key", TABLES, ids="/".join)
def test_a_table_is_what_its_description_says(key: tuple[str, str]) -> None:
    table = TABLES[key]
    connection = duckdb.connect()
    connection.execute("ATTACH ':memory:' AS store")
    for _ in range(2):
        connection.execute(table.create("store"))
    for comment in table.comments("store"):
        connection.execute(comment)
    columns = connection.execute(
        "SELECT column_name, data_type, is_nullable, comment FROM duckdb_columns() "
        "WHERE table_name = ? ORDER BY column_index",
        [table.name],
    ).fetchall()
    assert columns == [
        (column.name, column.type, column.nullable, column.text) for column in table.columns
    ]
    comments = connection.execute("SELECT comment FROM duckdb_tables()").fetchall()
    assert comments == [(table.text,)]
    empty = table.arrow.empty_table()
    connection.register("rows", empty)
    connection.execute(f"INSERT INTO store.{quoted(table.name)} BY NAME FROM rows")
    read = connection.sql(
        f"SELECT {table.column_list} FROM store.{quoted(table.name)}"
    ).to_arrow_table()
    assert read.column_names == list(table.names)
    table.schema.validate(empty.to_pandas(types_mapper=pd.ArrowDtype))
    assert set(table.key) <= set(table.names)
    connection.close()


def one_row(table: Table, **changes: Any) -> dict[str, Any]:
    blank: dict[str, Any] = {
        "VARCHAR": "x", "INTEGER": 1, "BIGINT": 1, "HUGEINT": 1, "DOUBLE": 0.5, "BOOLEAN": True,
        "TIMESTAMP": datetime(2026, 1, 5),
    }  # fmt: skip
    return {column.name: blank[column.type] for column in table.columns} | changes


def as_frame(table: Table, *rows: dict[str, Any]) -> pd.DataFrame:
    return pyarrow.Table.from_pylist(list(rows), schema=table.arrow).to_pandas(
        types_mapper=pd.ArrowDtype
    )


def good_score(**changes: Any) -> dict[str, Any]:
    return one_row(
        FAIRNESS_HISTORY,
        **{"metric": "EXP", "aggregation": "MinMaxRatio", "value": 0.5, "reason": None,
           "status": "ok", **changes},
    )  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"value": 1.0},
        {"value": None, "reason": "one_group"},
        {"metric": "EXPU", "aggregation": "MaxMinRatio", "value": 1e6},
        {"metric": "NDKL", "aggregation": None, "value": 3.0},
        {"metric": "IAA", "aggregation": None, "attribute": None, "value": 0.0},
        {"metric": "AWRF(p=0.1)@10", "aggregation": "MaxMinDiff", "value": 99.0},
    ],
    ids=str,
)
def test_scores_that_may_be_stored(changes: dict[str, Any]) -> None:
    SCORE_SCHEMA.validate(as_frame(FAIRNESS_HISTORY, good_score(**changes)), lazy=True)


@pytest.mark.parametrize(
    "changes",
    [
        {"value": None},
        {"reason": "one_group"},
        {"value": 1.5},
        {"value": -0.1},
        {"metric": "EXPU", "aggregation": "MaxMinRatio", "value": 0.9},
        {"metric": "EXPU", "aggregation": "MaxMinRatio", "value": inf},
        {"value": nan},
        {"metric": "AWRF(p=0.1)", "aggregation": "MaxMinDiff", "value": 101.0},
        {"metric": "NDKL", "aggregation": None, "value": -1e-9},
        {"aggregation": "Median"},
        {"status": "fine"},
        {"metric": None},
        {"batch": None},
    ],
    ids=str,
)
def test_scores_that_may_not_be_stored(changes: dict[str, Any]) -> None:
    frame = as_frame(FAIRNESS_HISTORY, good_score(**changes))
    with pytest.raises(pandera.errors.SchemaErrors):
        SCORE_SCHEMA.validate(frame, lazy=True)


def test_a_key_stands_once() -> None:
    rows = [good_score(), good_score(value=0.6)]
    with pytest.raises(pandera.errors.SchemaErrors):
        SCORE_SCHEMA.validate(as_frame(FAIRNESS_HISTORY, *rows), lazy=True)
    of_items = {"metric": "IAA", "aggregation": None, "attribute": None}
    rows = [good_score(**of_items), good_score(**of_items, value=0.6)]
    with pytest.raises(pandera.errors.SchemaErrors):
        SCORE_SCHEMA.validate(as_frame(FAIRNESS_HISTORY, *rows), lazy=True)


def test_a_frame_with_other_columns_is_refused() -> None:
    frame = as_frame(FAIRNESS_HISTORY, good_score())
    for other in (frame.drop(columns=["run_id"]), frame.assign(more=1)):
        with pytest.raises(pandera.errors.SchemaErrors):
            FAIRNESS_HISTORY.schema.validate(other, lazy=True)


def test_binary_relevance_has_a_schema_of_its_own() -> None:
    BINARY_RELEVANCE.validate(arrow_frame(BINARY, [0.0, 1.0, None]))
    for value in (0.5, nan, 2.0):
        with pytest.raises(pandera.errors.SchemaError):
            BINARY_RELEVANCE.validate(arrow_frame(BINARY, [1.0, value]))


def test_a_table_changed_is_another_table() -> None:
    extra = Column("extra", "DOUBLE", "one more")
    last = FAIRNESS_HISTORY.having(extra, name="wider")
    assert (last.names[-1], last.name, last.key) == ("extra", "wider", FAIRNESS_HISTORY.key)
    first = FAIRNESS_HISTORY.having(extra, first=True, key=("extra",))
    assert (first.names[0], first.key) == ("extra", ("extra",))
    assert first.names[1:] == last.names[:-1] == FAIRNESS_HISTORY.names
    less = FAIRNESS_HISTORY.without("batch", "lower")
    assert not {"batch", "lower"} & {*less.names, *less.key}
    assert len(less.names) == len(FAIRNESS_HISTORY.names) - 2
