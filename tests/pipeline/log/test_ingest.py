"""What is let in of a delivered day, what is not, and what is said about it."""

import unicodedata
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from cases import some
from logs import TEN
from stores import (
    DAY,
    Rows,
    audit,
    deliver,
    deliver_bytes,
    in_batch,
    in_history,
    lists,
    random_lists,
    ranking,
    read,
    scores,
    without,
    write_csv,
)

from pipeline.errors import DataRefused, SettingsError
from pipeline.log.ingest import Ingested
from pipeline.runs.batches import run_batch
from pipeline.runs.in_memory import check_files
from pipeline.runs.steps import Attempted, ingest_batch
from pipeline.settings.audit import Settings
from pipeline.settings.sections import Privacy
from pipeline.store.paths import store_of

LENIENT = {"max_rejected_share": 0.99}


def good() -> Rows:
    """Three lists of four rows."""
    return lists(ranking("good", "FMFM"), ranking("fine", "MFFM"), ranking("well", "MMFF"))


def checked(folder: Path, rows: Rows, **said: Any) -> Ingested:
    """What becomes of rows, without a store."""
    path = write_csv(folder / "checked.csv", rows)
    return check_files(audit(folder, **{"rejects": LENIENT, **said}), [path], None)


def rules(found: Ingested) -> dict[str, tuple[int, int]]:
    return {rule.rule: (rule.rows, rule.lists) for rule in found.rules}


def one_bad(column: str, value: Any) -> Rows:
    """Good lists, and one of two rows whose second holds ``value`` in ``column``."""
    bad = ranking("bad", "FM")
    bad[1][column] = value
    return [*good(), *bad]


def accepted(settings: Settings, columns: str = "item_id, rank, position") -> list[tuple[Any, ...]]:
    query = f"SELECT {columns} FROM ranking_log ORDER BY list_id, rank, item_id"
    return [tuple(row.values()) for row in in_batch(settings, query)]


def ingested(settings: Settings) -> Ingested:
    """Ingest the day alone, into the file that ``accepted`` reads."""
    found = ingest_batch(settings, DAY, "run")
    store = store_of(settings)
    store.staged(DAY, "run").rename(store.batch(DAY))
    return found


# -- a day with broken rows


@pytest.fixture(scope="module")
def broken_day(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Twelve lists; nine rows in eight more lists, and one row in no list, break a rule each."""
    folder = tmp_path_factory.mktemp("broken")
    bad = lists(
        ranking("high", "FM", relevance=[1.2, 1], device="mobile"),
        ranking("nan", "FM", relevance=["NaN", 1], device="mobile"),
        ranking("gap", "FMF", rank=[1, 2, 4], device="mobile"),
        ranking("doubled", "FMF", item_id=["x", "y", "x"], device="mobile"),
    )
    settings = audit(folder, slices=["device"], rejects={"max_rejected_share": 0.5})
    deliver(folder, [*bad, *random_lists(3)])
    assert run_batch(settings, DAY).status == "done"
    return settings


def test_broken_rows_are_stored_with_file_row_line_rule_and_value(broken_day: Settings) -> None:
    rows = in_batch(
        broken_day,
        'SELECT file, row, line, list_id, item_id, rule, "column", value, problem '
        "FROM rejected_rows ORDER BY row",
    )
    part = f"logs/{DAY}/part.csv"
    assert [tuple(row.values()) for row in rows] == [
        (part, 1, 2, "high", "high-1", "relevance_range", "relevance", "1.2",
         "is outside [0, 1]"),
        (part, 3, 4, "nan", "nan-1", "relevance_range", "relevance", "NaN", "is outside [0, 1]"),
        (part, 7, 8, "gap", "gap-3", "rank_gap", "rank", "4", "follows a gap in ranks"),
        (part, 8, 9, "doubled", "x", "duplicate_item", "item_id", "x", "is in the list twice"),
        (part, 10, 11, "doubled", "x", "duplicate_item", "item_id", "x", "is in the list twice"),
    ]  # fmt: skip


def test_rules_are_counted_in_rows_and_lists(broken_day: Settings) -> None:
    counts = {row.pop("rule"): row for row in in_batch(broken_day, "FROM rule_counts")}
    assert counts == {
        "relevance_range": {"rows": 2, "lists": 2},
        "rank_gap": {"rows": 1, "lists": 1},
        "duplicate_item": {"rows": 2, "lists": 1},
    }


def test_manifest_counts_what_was_dropped(broken_day: Settings) -> None:
    (row,) = in_history(broken_day, "FROM batches")
    size = len(random_lists(3))
    assert (row["status"], row["lists"], row["lists_rejected"]) == ("done", 12, 4)
    assert (row["rows_read"], row["rows_accepted"], row["rows_rejected"]) == (size + 10, size, 10)


@pytest.mark.slow
def test_rest_of_the_day_scores_as_if_the_broken_lists_had_never_been(
    broken_day: Settings, tmp_path: Path
) -> None:
    clean = audit(tmp_path, slices=["device"])
    deliver(tmp_path, random_lists(3))
    assert run_batch(clean, DAY).rows_rejected == 0
    expected = scores(clean)
    assert sum(value[0] is not None for value in expected.values()) > 100
    assert scores(broken_day) == expected


def test_files_are_named_and_numbered_each(tmp_path: Path) -> None:
    settings = audit(tmp_path, rejects=LENIENT)
    deliver(tmp_path, one_bad("relevance", 2), name="a.csv")
    text = '{"list_id": "j", "item_id": "j1", "rank": 0, "relevance": 1, "click": 0, "gender": "F"}'
    deliver_bytes(tmp_path, text.encode(), "b.jsonl")
    frame = pd.DataFrame(ranking("p", "FM", click=[0, 3]))
    frame.to_parquet(tmp_path / "logs" / DAY / "c.parquet")
    ingested(settings)
    rows = in_batch(settings, "SELECT file, row, line, rule FROM rejected_rows ORDER BY file")
    assert [tuple(row.values()) for row in rows] == [
        (f"logs/{DAY}/a.csv", 14, 15, "relevance_range"),
        (f"logs/{DAY}/b.jsonl", 1, 1, "rank_low"),
        (f"logs/{DAY}/c.parquet", 2, None, "click_range"),
    ]


def test_stored_offenders_are_capped_per_rule_and_counted_uncapped(tmp_path: Path) -> None:
    settings = audit(tmp_path, rejects={**LENIENT, "max_stored_rows": 3})
    bad = lists(*(ranking(f"b{at}", "FM", relevance=7, click=[0, 9]) for at in range(5)))
    deliver(tmp_path, [*bad, *good()])
    found = ingested(settings)
    assert rules(found) == {"relevance_range": (10, 5), "click_range": (5, 5)}
    stored = in_batch(settings, "SELECT rule, count(*) AS n FROM rejected_rows GROUP BY rule")
    assert {row["rule"]: row["n"] for row in stored} == {"relevance_range": 3, "click_range": 3}


def test_long_values_are_cut_at_a_hundred_characters(tmp_path: Path) -> None:
    settings = audit(tmp_path, rejects=LENIENT)
    deliver(tmp_path, one_bad("relevance", "x" * 5000))
    ingested(settings)
    (row,) = in_batch(settings, "SELECT value FROM rejected_rows")
    assert row["value"] == "x" * 100


# -- rules about one value


@pytest.mark.parametrize(
    ("column", "value", "rule"),
    some(
        [
            ("relevance", "1.2", "relevance_range"),
            ("relevance", "-0.01", "relevance_range"),
            ("relevance", "NaN", "relevance_range"),
            ("relevance", "inf", "relevance_range"),
            ("relevance", "-Infinity", "relevance_range"),
            ("relevance", "high", "relevance_not_number"),
            ("relevance", "0,5", "relevance_not_number"),
            ("click", "2", "click_range"),
            ("click", "nan", "click_range"),
            ("click", "yes!", "click_not_number"),
            ("rank", "1.5", "rank_not_whole"),
            ("rank", "1,000", "rank_not_whole"),
            ("rank", "NaN", "rank_not_whole"),
            ("rank", "inf", "rank_not_whole"),
            ("rank", "first", "rank_not_whole"),
            ("rank", "0x2", "rank_not_whole"),
            ("rank", "99999999999999999999", "rank_high"),
            ("rank", "0", "rank_low"),
            ("rank", "-1", "rank_low"),
            ("rank", None, "rank_missing"),
            ("rank", "  ", "rank_missing"),
            ("item_id", None, "item_id_missing"),
            ("list_id", None, "list_id_missing"),
            ("reference_rank", "0", "reference_rank_low"),
            ("reference_rank", "2.5", "reference_rank_not_whole"),
        ],
        few=9,
    ),
)
def test_row_rule(tmp_path: Path, column: str, value: Any, rule: str) -> None:
    found = checked(tmp_path, one_bad(column, value), privacy={"show_values": True})
    assert rules(found) == {rule: (1, 0 if column == "list_id" else 1)}
    # A row without a list is alone; any other takes its list along.
    assert found.rows_rejected == (1 if column == "list_id" else 2)
    assert found.lists_rejected == (0 if column == "list_id" else 1)
    (text,) = found.rules[0].sample
    assert text.startswith(f"line 15 of checked.csv: {column} ")
    if value and str(value).strip():
        assert f'"{value}"' in text


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("rank", " 2 "),
        ("rank", "2.0"),
        ("rank", "2e0"),
        ("relevance", ""),
        ("relevance", "1e-9"),
        ("relevance", "true"),
        ("relevance", " 0.5 "),
        ("relevance", "-0.0"),
        ("click", "False"),
        ("click", "0.25"),
        ("reference_rank", "7"),
        ("reference_rank", ""),
    ],
)
def test_values_that_are_let_in(tmp_path: Path, column: str, value: str) -> None:
    found = checked(tmp_path, one_bad(column, value))
    assert found.rules == ()
    assert found.rows_accepted == found.rows_read == 14


@pytest.mark.parametrize("value", ["1_0", "true", "false"])
def test_rank_is_written_in_digits(tmp_path: Path, value: str) -> None:
    rows = [*good(), *ranking("bad", "F", rank=value)]
    assert "rank_not_whole" in rules(checked(tmp_path, rows))


@pytest.mark.parametrize("value", ["0_1", "0.5_5"])
def test_relevance_is_written_in_digits(tmp_path: Path, value: str) -> None:
    assert "relevance_not_number" in rules(checked(tmp_path, one_bad("relevance", value)))


def test_ids_of_spaces_are_missing_ids(tmp_path: Path) -> None:
    assert checked(tmp_path, one_bad("item_id", "   ")).rows_rejected == 2


def test_one_row_may_break_several_rules(tmp_path: Path) -> None:
    found = checked(tmp_path, [*good(), {**ranking("b", "F")[0], "rank": "x", "relevance": 2}])
    assert rules(found) == {"rank_not_whole": (1, 1), "relevance_range": (1, 1)}
    assert found.rows_rejected == 1


def test_bounds_belong_to_the_range(tmp_path: Path) -> None:
    found = checked(tmp_path, ranking("a", "FM", relevance=[0, 1], click=[1, 0]))
    assert found.rows_rejected == 0


# -- rules about a list


@pytest.mark.parametrize(
    ("bad", "rule", "offenders"),
    [
        (ranking("b", "FMF", rank=[1, 2, 4]), "rank_gap", 1),
        (ranking("b", "FMF", rank=[2, 3, 4]), "rank_gap", 1),
        (ranking("b", "FMFM", rank=[1, 3, 5, 6]), "rank_gap", 2),
        (ranking("b", "FMF", rank=[1, 2, 2]), "duplicate_rank", 2),
        (ranking("b", "FMF", item_id=["x", "x", "x"]), "duplicate_item", 3),
        (ranking("b", "FMF", device=["m", "m", "t"]), "slice_not_constant", 1),
        (ranking("b", "FMF", device=["m", None, "m"]), "slice_not_constant", 1),
    ],
)
def test_list_rule(tmp_path: Path, bad: Rows, rule: str, offenders: int) -> None:
    rows = [{"device": "m", **row} for row in (*good(), *bad)]
    found = checked(tmp_path, rows, slices=["device"])
    assert rules(found) == {rule: (offenders, 1)}
    assert (found.lists, found.lists_rejected) == (3, 1)
    assert found.rows_rejected == len(bad)


def test_a_list_may_stand_in_several_files(tmp_path: Path) -> None:
    settings = audit(tmp_path)
    rows = ranking("a", "FMFM")
    deliver(tmp_path, rows[::2], name="1.csv")
    deliver(tmp_path, rows[1::2], name="2.csv")
    found = ingested(settings)
    assert (found.lists, found.rows_accepted, found.rules) == (1, 4, ())


def test_the_order_of_rows_does_not_matter(tmp_path: Path) -> None:
    settings = audit(tmp_path)
    deliver(tmp_path, good()[::-1])
    ingested(settings)
    other = audit(tmp_path / "other")
    deliver(tmp_path / "other", good())
    ingested(other)
    assert accepted(settings) == accepted(other)


# -- what a broken row costs


def test_drop_row_keeps_the_rest_of_the_list_at_its_ranks(tmp_path: Path) -> None:
    settings = audit(tmp_path, rejects={"policy": "drop_row", "max_rejected_share": 0.5})
    deliver(tmp_path, ranking("a", "FMFM", relevance=[1, 5, 0, 1]))
    found = ingested(settings)
    assert (found.rows_accepted, found.rows_rejected, found.lists_rejected) == (3, 1, 0)
    assert accepted(settings) == [("a-1", 1, 1), ("a-3", 3, 2), ("a-4", 4, 3)]


@pytest.mark.parametrize(
    "bad",
    [
        ranking("bad", "FMF", rank=[1, "x", 3]),
        ranking("bad", "FMF", rank=[1, 2, 4]),
        ranking("bad", "FMF", rank=[1, 2, 2]),
        ranking("bad", "FMF", item_id=["x", "y", "x"]),
    ],
    ids=["rank", "gap", "doubled rank", "doubled item"],
)
def test_drop_row_drops_the_list_where_a_row_alone_leaves_it_broken(
    tmp_path: Path, bad: Rows
) -> None:
    found = checked(tmp_path, [*good(), *bad], rejects={**LENIENT, "policy": "drop_row"})
    assert (found.lists_rejected, found.rows_rejected) == (1, 3)


def test_drop_row_drops_a_row_without_item(tmp_path: Path) -> None:
    bad = ranking("bad", "FMF", item_id=["x", None, "z"])
    found = checked(tmp_path, [*good(), *bad], rejects={**LENIENT, "policy": "drop_row"})
    assert (found.lists_rejected, found.rows_rejected) == (0, 1)


def test_refuse_batch_refuses_for_a_single_row(tmp_path: Path) -> None:
    settings = audit(tmp_path, rejects={"policy": "refuse_batch"})
    deliver(tmp_path, one_bad("relevance", "1.2"))
    outcome = run_batch(settings, DAY)
    assert (outcome.status, outcome.exit_code) == ("refused", 3)
    assert "line 15 of part.csv" in outcome.message
    assert "rejects.policy" in outcome.message


def test_share_on_the_limit_is_accepted_and_above_it_refused(tmp_path: Path) -> None:
    rows = one_bad("relevance", "1.2")
    share = 2 / 14
    assert checked(tmp_path, rows, rejects={"max_rejected_share": share}).rows_accepted == 12
    with pytest.raises(DataRefused, match="max_rejected_share"):
        checked(tmp_path, rows, rejects={"max_rejected_share": share - 1e-9})


def test_a_batch_without_any_good_list_is_refused(tmp_path: Path) -> None:
    rejects = {"max_rejected_share": 1.0}
    with pytest.raises(DataRefused, match="No list is left"):
        checked(tmp_path, ranking("a", "FM", rank=[1, 3]), rejects=rejects)


@pytest.mark.slow
def test_a_refused_batch_keeps_its_last_good_result(tmp_path: Path) -> None:
    settings = audit(tmp_path, metrics=["EXP", "NDKL"])
    deliver(tmp_path, random_lists(1))
    first = run_batch(settings, DAY)
    queries = ("FROM fairness_history", "FROM group_history", "FROM rank_counts")
    before = [without(in_history(settings, query)) for query in queries]
    file_before = store_of(settings).batch(DAY).read_bytes()

    deliver(tmp_path, one_bad("relevance", "1.2"))
    refused = run_batch(settings, DAY)

    assert (refused.status, refused.exit_code, refused.revision) == ("refused", 3, first.revision)
    assert "2 of 14 rows refused (14.3%)" in refused.message
    assert 'line 15 of part.csv: relevance "1.2" is outside [0, 1]' in refused.message
    assert "max_rejected_share" in refused.message
    assert "keeps its last good result" in refused.message
    assert [without(in_history(settings, query)) for query in queries] == before
    assert store_of(settings).batch(DAY).read_bytes() == file_before
    (row,) = in_history(settings, "FROM batches")
    assert (row["status"], row["revision"], row["rows_accepted"]) == ("refused", 1, 0)
    assert (row["rows_read"], row["rows_rejected"], row["lists_rejected"]) == (14, 2, 1)
    assert "1.2" in row["message"]
    kept = read(store_of(settings).refused(DAY), "SELECT list_id, rule, value FROM rejected_rows")
    assert kept == [{"list_id": "bad", "rule": "relevance_range", "value": "1.2"}]
    assert list((store_of(settings).root / "staged").iterdir()) == []


@pytest.mark.slow
def test_mended_logs_replace_the_refused_ones(tmp_path: Path) -> None:
    settings = audit(tmp_path, metrics=["EXP"])
    deliver(tmp_path, one_bad("rank", "x"))
    assert run_batch(settings, DAY).status == "refused"
    assert in_history(settings, "FROM fairness_history") == []
    deliver(tmp_path, good())
    assert run_batch(settings, DAY).revision == 1
    assert not store_of(settings).refused(DAY).exists()
    (row,) = in_history(settings, "FROM batches")
    assert (row["status"], row["message"]) == ("done", None)


# -- relevance and clicks


@pytest.mark.slow
def test_graded_relevance_costs_erbr_alone(tmp_path: Path) -> None:
    settings = audit(tmp_path)
    rows = random_lists(5)
    rows[0]["relevance"] = 0.5
    deliver(tmp_path, rows)
    outcome = run_batch(settings, DAY)
    assert outcome.rows_rejected == 0
    found = scores(settings, where="slice = 'all'")
    reasons = {
        metric.name: {value[1] for key, value in found.items() if key[3] == metric.usual.label}
        for metric in TEN
    }
    assert reasons.pop("ERBR") == {"relevance_not_binary"}
    assert all(each == {None} for each in reasons.values())
    assert len(reasons) == 9
    (row,) = in_history(settings, "SELECT graded_rows FROM batches")
    assert row["graded_rows"] == 1


def test_graded_rows_of_rejected_lists_do_not_count(tmp_path: Path) -> None:
    bad = ranking("bad", "FM", relevance=[0.5, 7])
    assert checked(tmp_path, [*good(), *bad]).graded_rows == 0
    assert checked(tmp_path, [*good(), *ranking("b", "FM", relevance=[0.5, 1])]).graded_rows == 1


@pytest.mark.parametrize(("choice", "value"), [("undefined", None), ("zero", 0.0)])
def test_missing_relevance_and_clicks(tmp_path: Path, choice: str, value: float | None) -> None:
    settings = audit(tmp_path, missing_relevance=choice, missing_click=choice)
    deliver(tmp_path, ranking("a", "FM", relevance=[1, None], click=[None, 1]))
    ingested(settings)
    assert accepted(settings, "item_id, relevance, click") == [
        ("a-1", 1.0, value),
        ("a-2", value, 1.0),
    ]


@pytest.mark.slow
def test_missing_relevance_leaves_only_what_needs_none(tmp_path: Path) -> None:
    rows = random_lists(5)
    rows[0]["relevance"] = None
    settings = audit(tmp_path)
    deliver(tmp_path, rows)
    run_batch(settings, DAY)
    found = scores(settings)
    undefined = {key[3] for key, value in found.items() if value[1]}
    assert undefined == {m.usual.label for m in TEN if "relevance" in m.columns}
    # One group lacks it, and no aggregation goes over the others as if they were all.
    reasons = {value[1] for key, value in found.items() if key[3] in undefined}
    assert reasons == {"relevance_missing", f"relevance_missing: {rows[0]['gender']}"}


@pytest.mark.slow
def test_missing_relevance_as_zero_equals_zeros_in_the_log(tmp_path: Path) -> None:
    rows = random_lists(5)
    rows[0]["relevance"] = None
    settings = audit(tmp_path, missing_relevance="zero")
    deliver(tmp_path, rows)
    run_batch(settings, DAY)
    rows[0]["relevance"] = 0
    other = audit(tmp_path / "other")
    deliver(tmp_path / "other", rows)
    run_batch(other, DAY)
    assert scores(settings) == scores(other)


@pytest.mark.slow
def test_a_log_needs_neither_relevance_nor_clicks(tmp_path: Path) -> None:
    rows = [
        {name: row[name] for name in ("list_id", "item_id", "rank", "gender")} for row in good()
    ]
    settings = audit(tmp_path, missing_relevance="zero")
    deliver(tmp_path, rows)
    outcome = run_batch(settings, DAY)
    assert outcome.status == "done"
    values = scores(settings, where="metric IN ('EXP', 'EXPU', 'EXPRU')")
    assert {key[3]: value[1] for key, value in values.items()} == {
        "EXP": None,
        "EXPU": "relevance_missing",
        "EXPRU": "click_missing",
    }


# -- values of attributes and slices


def groups(settings: Settings, attribute: str = "gender") -> dict[str, int]:
    rows = in_batch(
        settings, f'SELECT "{attribute}" AS g, count(*) AS n FROM ranking_log GROUP BY g'
    )
    return {row["g"]: row["n"] for row in rows}


def test_values_are_normalised_and_trimmed(tmp_path: Path) -> None:
    composed = unicodedata.normalize("NFC", "Zoë")
    variants = [
        composed,
        unicodedata.normalize("NFD", composed),
        f" {composed}",
        f"{composed}\t ",
        f"\u00a0{composed}\u00a0",
        f"\u3000{composed}\u2009",
        f"\ufeff{composed}\u200b",
        f"\r\n{composed}\n",
    ]
    settings = audit(tmp_path)
    deliver(tmp_path, ranking("a", [*variants, "Zoe", "ZOË"]))
    ingested(settings)
    assert groups(settings) == {composed: len(variants), "Zoe": 1, "ZOË": 1}


def test_only_nothing_is_unknown(tmp_path: Path) -> None:
    said = ["NULL", "None", "null", "N/A", "nan", "-", "0", "", " ", "\u00a0", None]
    settings = audit(tmp_path)
    deliver(tmp_path, ranking("a", said))
    found = ingested(settings)
    named = ["NULL", "None", "null", "N/A", "nan", "-", "0"]
    assert groups(settings) == {**dict.fromkeys(named, 1), "unknown": 4}
    assert found.unknown_rows == {"gender": 4}


def test_inner_space_and_controls_are_part_of_a_value(tmp_path: Path) -> None:
    settings = audit(tmp_path)
    deliver(tmp_path, ranking("a", ["non  binary", "a\nb", "x\u200by"]))
    ingested(settings)
    assert groups(settings) == {"non  binary": 1, "a\nb": 1, "x\u200by": 1}


def test_unknown_share_has_a_limit(tmp_path: Path) -> None:
    rows = ranking("a", ["F", "M", "F", ""])
    found = checked(tmp_path, rows, unknown_group={"max_share": 0.25})
    assert found.unknown_rows == {"gender": 1}
    with pytest.raises(DataRefused) as caught:
        checked(tmp_path, rows, unknown_group={"max_share": 0.24})
    for word in ("gender", "25.0%", "24.0%", "unknown_group.max_share"):
        assert word in str(caught.value)


def test_unknown_share_above_the_limit_refuses_the_batch(tmp_path: Path) -> None:
    settings = audit(tmp_path, unknown_group={"max_share": 0.1})
    deliver(tmp_path, ranking("a", ["F", "M", ""]))
    outcome = run_batch(settings, DAY)
    assert (outcome.status, outcome.exit_code) == ("refused", 3)
    (row,) = in_history(settings, "FROM batches")
    assert (row["status"], row["revision"]) == ("refused", 0)


def test_groups_can_be_a_closed_list(tmp_path: Path) -> None:
    rows = ranking("a", ["F", "M", "femal", "femal", "fmale", ""])
    assert checked(tmp_path, rows, groups={"gender": ["F", "M", "femal", "fmale"]}).lists == 1
    for show, said in ((False, "name$"), (True, "name: 'femal', 'fmale'$")):
        with pytest.raises(DataRefused, match="gender: 3 rows in 2 groups that .* not " + said):
            checked(tmp_path, rows, groups={"gender": ["F", "M"]}, privacy={"show_values": show})


@pytest.mark.slow
def test_a_group_of_one_batch_alone_is_remarked_on(tmp_path: Path) -> None:
    settings = audit(tmp_path, attributes=["gender", "region", ["gender", "region"]])
    rows = ranking("a", ["F", "M"], region=["north", "south"])
    for batch in (DAY, "2026-01-06"):
        deliver(tmp_path, rows, batch=batch)
        assert run_batch(settings, batch).notes == ()
    deliver(tmp_path, ranking("a", ["F", "femal"], region=["north", "south"]), batch="2026-01-07")
    (note,) = run_batch(settings, "2026-01-07").notes
    assert note == (
        "gender: no other batch has the group 'femal' (1 row), which resembles 'F'. "
        "If they mean the same: `values: {gender: {femal: F}}`"
    )
    hidden = settings.model_copy(update={"privacy": Privacy(min_cell=5)})
    (note,) = run_batch(hidden, "2026-01-07", force=True).notes
    assert note.startswith("gender: a group that no other batch has; if it is another way")
    assert "fem" not in note
    follows = settings.model_copy(update={"values": {"gender": {"femal": "F"}}})
    (note,) = run_batch(follows, "2026-01-07").notes
    assert (
        note
        == "gender: 1 row with 1 value counts as the groups that `values` in the settings names"
    )


@pytest.mark.slow
def test_unknown_group_takes_part_only_where_asked(tmp_path: Path) -> None:
    rows = ranking("a", ["F", "M", "", "F", "M", ""])
    found = []
    for at, counts in enumerate((False, True)):
        settings = audit(
            tmp_path / str(at), metrics=["EXP"], unknown_group={"in_aggregations": counts}
        )
        deliver(tmp_path / str(at), rows)
        run_batch(settings, DAY)
        groups_stored = in_history(settings, "SELECT group_value FROM group_history ORDER BY ALL")
        assert [row["group_value"] for row in groups_stored] == ["F", "M", "unknown"]
        found.append(scores(settings, where="aggregation = 'MinMaxRatio'").popitem()[1])
    assert (found[0][2], found[1][2]) == ("M", "unknown")


def test_limits_on_groups_and_slice_values(tmp_path: Path) -> None:
    rows = lists(
        *(ranking(f"q{at}", [f"g{at}", "h"], device=f"d{at}") for at in range(4)),
    )
    said = {"slices": ["device"], "limits": {"groups": 5, "slice_values": 4}}
    assert checked(tmp_path, rows, **said).lists == 4
    said["limits"] = {"groups": 4, "slice_values": 3}
    with pytest.raises(DataRefused) as caught:
        checked(tmp_path, rows, **said)
    for word in ("gender: 5 groups", "limits.groups", "device: 4 values", "limits.slice_values"):
        assert word in str(caught.value)


def test_limit_on_rows(tmp_path: Path) -> None:
    with pytest.raises(DataRefused, match=r"more than 11 rows.*limits\.rows"):
        checked(tmp_path, good(), limits={"rows": 11})


# -- ranks


def test_ranks_may_start_at_zero(tmp_path: Path) -> None:
    rows = lists(ranking("a", "FM", rank=[0, 1]), ranking("b", "MFM", rank=[0, 1, 2]))
    settings = audit(tmp_path, ranks={"start": 0})
    deliver(tmp_path, rows)
    ingested(settings)
    assert [rank for _, rank, _ in accepted(settings)] == [1, 2, 1, 2, 3]


def test_a_message_quotes_the_rank_as_logged(tmp_path: Path) -> None:
    rows = [{**row, "rank": row["rank"] - 1} for row in one_bad("rank", 0)]
    found = checked(tmp_path, rows, ranks={"start": 0})
    assert rules(found) == {"rank_low": (1, 1)}
    assert 'rank "-1"' in found.rules[0].sample[0]


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        ("compact", [("a-1", 1, 1), ("a-2", 2, 2), ("a-3", 3, 3)]),
        ("keep", [("a-1", 2, 1), ("a-2", 3, 2), ("a-3", 7, 3)]),
    ],
)
def test_gaps(tmp_path: Path, gaps: str, expected: list[tuple[Any, ...]]) -> None:
    settings = audit(tmp_path, ranks={"gaps": gaps})
    deliver(tmp_path, ranking("a", "FMF", rank=[2, 3, 7]))
    assert ingested(settings).rules == ()
    assert accepted(settings) == expected


@pytest.mark.slow
def test_kept_gaps_weigh_at_the_logged_rank(tmp_path: Path) -> None:
    settings = audit(tmp_path, ranks={"gaps": "keep"}, metrics=["EXP", "ARP"])
    deliver(tmp_path, ranking("a", "FM", rank=[1, 3]))
    run_batch(settings, DAY)
    rows = in_history(settings, "SELECT metric, group_value, value FROM group_history")
    values = {(row["metric"], row["group_value"]): row["value"] for row in rows}
    # 1 / log2(3 + 1): the exposure of rank 3.
    assert values["EXP", "M"] == pytest.approx(0.5, rel=1e-12)
    assert (values["ARP", "F"], values["ARP", "M"]) == (1, 0)


def test_a_doubled_rank_is_refused_even_where_gaps_are_not(tmp_path: Path) -> None:
    found = checked(tmp_path, one_bad("rank", 1), ranks={"gaps": "compact"})
    assert rules(found) == {"duplicate_rank": (2, 1)}


def test_scores_rank_the_list_highest_first_and_ties_by_item(tmp_path: Path) -> None:
    rows = ranking("a", "FMFM", item_id=["d", "c", "b", "a"], score=[0.5, 9, 0.5, -2])
    for row in rows:
        del row["rank"]
    settings = audit(tmp_path)
    deliver(tmp_path, rows)
    ingested(settings)
    assert accepted(settings) == [("c", 1, 1), ("b", 2, 2), ("d", 3, 3), ("a", 4, 4)]


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("NaN", "score_range"),
        ("inf", "score_range"),
        ("-inf", "score_range"),
        ("", "score_missing"),
        ("best", "score_not_number"),
    ],
)
def test_scores_are_finite_numbers(tmp_path: Path, value: str, rule: str) -> None:
    rows = one_bad("score", value)
    for row in rows:
        row["score"] = row.get("score", row.pop("rank"))
        row.pop("rank", None)
    assert rules(checked(tmp_path, rows)) == {rule: (1, 1)}


def test_a_rank_counts_more_than_a_score(tmp_path: Path) -> None:
    settings = audit(tmp_path)
    deliver(tmp_path, ranking("a", "FM", score=[1, 2]))
    ingested(settings)
    assert accepted(settings) == [("a-1", 1, 1), ("a-2", 2, 2)]


# -- columns with other names


@pytest.mark.slow
def test_columns_are_mapped(tmp_path: Path) -> None:
    names = {
        "list_id": "request",
        "item_id": "seller",
        "rank": "place in list",
        "relevance": "rel",
        "click": "clicked?",
        "gender": "sex",
        "device": "ua.device",
    }
    rows = [{**row, "device": "mobile"} for row in good()]
    settings = audit(tmp_path, columns=names, slices=["device"], metrics=["EXP", "IAA"])
    deliver(tmp_path, [{names[name]: value for name, value in row.items()} for row in rows])
    run_batch(settings, DAY)
    plain = audit(tmp_path / "plain", slices=["device"], metrics=["EXP", "IAA"])
    deliver(tmp_path / "plain", rows)
    run_batch(plain, DAY)
    assert scores(settings) == scores(plain) != {}


def test_mapping_may_swap_names(tmp_path: Path) -> None:
    settings = audit(tmp_path, columns={"relevance": "click", "click": "relevance"})
    deliver(tmp_path, ranking("a", "FM", relevance=[0, 0], click=[1, 1]))
    ingested(settings)
    assert accepted(settings, "relevance, click") == [(1.0, 0.0), (1.0, 0.0)]


def test_a_mapped_column_that_is_absent_is_missing(tmp_path: Path) -> None:
    with pytest.raises(DataRefused, match=r"no column 'rel' \(for relevance\)"):
        checked(tmp_path, good(), columns={"relevance": "rel"})


def test_query_id_defaults_to_the_list(tmp_path: Path) -> None:
    settings = audit(tmp_path)
    rows = [*ranking("a", "FM", query_id=["shoes"] * 2), *ranking("b", "FM", query_id=[None] * 2)]
    deliver(tmp_path, rows)
    ingested(settings)
    assert accepted(settings, "query_id") == [("shoes",), ("shoes",), ("b",), ("b",)]


@pytest.mark.parametrize("queries", [["shoes", "hats"], ["shoes", None]])
def test_a_list_answers_one_query(tmp_path: Path, queries: list[str | None]) -> None:
    settings = audit(tmp_path, rejects={"max_rejected_share": 1.0})
    deliver(tmp_path, [*ranking("a", "FM", query_id=queries), *ranking("b", "FM")])
    ingested(settings)
    assert accepted(settings, "DISTINCT list_id") == [("b",)]


# -- attributes from the item table


def with_items(folder: Path, items: Rows, **said: Any) -> Settings:
    write_csv(folder / "items.csv", items)
    rows = ranking("a", "FMF", item_id=["x", "y", "z"])
    for row in rows:
        del row["gender"]
    deliver(folder, rows)
    return audit(folder, items="items.csv", **said)


def test_attributes_come_from_the_item_table(tmp_path: Path) -> None:
    items = [{"item_id": "x", "gender": " F "}, {"item_id": "z", "gender": "M"}]
    settings = with_items(tmp_path, [*items, {"item_id": "never", "gender": "X"}])
    found = ingested(settings)
    assert accepted(settings, "item_id, gender") == [("x", "F"), ("y", "unknown"), ("z", "M")]
    assert found.unknown_rows == {"gender": 1}
    sizes = in_batch(settings, "SELECT group_value, items FROM group_sizes ORDER BY ALL")
    assert [tuple(row.values()) for row in sizes] == [("F", 1), ("M", 1), ("X", 1)]


@pytest.mark.parametrize("again", ["x", None, ""])
def test_the_item_table_has_one_row_per_item(tmp_path: Path, again: str | None) -> None:
    items = [{"item_id": each, "gender": "F"} for each in ("x", "y", "z", again)]
    settings = with_items(tmp_path, items)
    outcome = run_batch(settings, DAY)
    assert (outcome.status, outcome.exit_code) == ("refused", 3)
    assert "items.csv" in outcome.message
    assert "one row per item" in outcome.message


def test_an_item_table_needs_item_ids(tmp_path: Path) -> None:
    outcome = run_batch(with_items(tmp_path, [{"id": "x", "gender": "F"}]), DAY)
    assert outcome.status == "refused"
    assert "no column 'item_id'" in outcome.message


def test_an_attribute_in_neither_table_is_missed(tmp_path: Path) -> None:
    settings = with_items(tmp_path, [{"item_id": "x", "gander": "F"}])
    outcome = run_batch(settings, DAY)
    assert outcome.status == "refused"
    assert "no column 'gender'" in outcome.message


@pytest.mark.slow
def test_attributes_of_both_tables_cross(tmp_path: Path) -> None:
    items = [
        {"item_id": item, "region": region}
        for item, region in (("a-1", "N"), ("a-2", "S"), ("a-3", ""))
    ]
    write_csv(tmp_path / "items.csv", items)
    deliver(tmp_path, ranking("a", ["F", "M", "F", "M"]))
    settings = audit(
        tmp_path,
        items="items.csv",
        attributes=["gender", "region", ["gender", "region"]],
        metrics=["EXP"],
    )
    run_batch(settings, DAY)
    rows = in_history(
        settings,
        "SELECT attribute, group_value, n FROM group_history WHERE slice = 'all' ORDER BY ALL",
    )
    assert [tuple(row.values()) for row in rows] == [
        ("gender", "F", 2),
        ("gender", "M", 2),
        ("gender*region", "F*N", 1),
        ("gender*region", "M*S", 1),
        # Known in one part only is not known.
        ("gender*region", "unknown", 2),
        ("region", "N", 1),
        ("region", "S", 1),
        ("region", "unknown", 2),
    ]


@pytest.mark.slow
def test_an_item_table_per_day(tmp_path: Path) -> None:
    settings = audit(tmp_path, items="items-{batch}.csv", metrics=["EXP"])
    one, two = DAY, "2026-01-06"
    for batch, gender in ((one, "F"), (two, "M")):
        rows = [{**row, "gender": None} for row in ranking("a", "xx")]
        for row in rows:
            del row["gender"]
        deliver(tmp_path, rows, batch=batch)
        write_csv(
            tmp_path / f"items-{batch}.csv",
            [{"item_id": "a-1", "gender": gender}, {"item_id": "a-2", "gender": "Z"}],
        )
        run_batch(settings, batch)
    rows = in_history(
        settings, "SELECT DISTINCT batch, group_value FROM group_history ORDER BY ALL"
    )
    found = [tuple(row.values()) for row in rows]
    assert found == [(one, "F"), (one, "Z"), (two, "M"), (two, "Z")]


# -- names and values that look like code

HOSTILE_NAMES = (
    'x"; DROP TABLE fairness_history; --',
    "it's",
    "slice",
    "slice_value",
    "rows",
    "lists",
    "g",
    "s",
    "k",
    "n",
    "attribute",
    "group_value",
    "metric",
    "value",
    "place",
    "exposure",
    "batch",
    "ünï çødé 名前",
    "<script>alert(1)</script>",
    "{x}",
    "%s",
    "$1",
    "?",
    "select",
    "raw rank",
    "=rank",
    "\\",
    ".",
)
HOSTILE_VALUES = (
    "'; DROP TABLE batches; --",
    '"',
    "<script>alert(1)</script>",
    "=HYPERLINK(1)",
    "a*b",
    "${HOME}",
    "{{7*7}}",
    "名前",
    "🏳️‍🌈",
)


@pytest.mark.slow
def test_column_names_are_only_names(tmp_path: Path) -> None:
    half = len(HOSTILE_NAMES) // 2
    slices, attributes = HOSTILE_NAMES[:half], HOSTILE_NAMES[half:]
    rows = ranking("a", "FMFM")
    plain: Rows = []
    for at, row in enumerate(rows):
        plain.append({**row, "device": "d"})
        del row["gender"]
        row.update(dict.fromkeys(slices, "d") | dict.fromkeys(attributes, "FMFM"[at]))
    settings = audit(
        tmp_path,
        slices=list(slices),
        attributes=[*attributes, list(attributes[:2])],
        metrics=["EXP", "ARP", "NDKL", "IAA"],
    )
    deliver(tmp_path, rows)
    outcome = run_batch(settings, DAY)
    assert (outcome.status, outcome.rows_accepted) == ("done", 4)
    expected = audit(tmp_path / "plain", slices=["device"], metrics=["EXP", "ARP", "NDKL", "IAA"])
    deliver(tmp_path / "plain", plain)
    run_batch(expected, DAY)
    wanted = scores(expected)
    found = scores(settings)
    for name in slices:
        for attribute in attributes:
            for key, value in wanted.items():
                part = ("all", "all") if key[0] == "all" else (name, "d")
                told = attribute if key[2] else None
                if told or attribute == attributes[0]:
                    assert found[*part, told, key[3], key[4]] == value


@pytest.mark.slow
def test_values_are_only_values(tmp_path: Path) -> None:
    settings = audit(tmp_path, slices=["device"], metrics=["EXP", "NDKL"])
    rows = lists(
        *(
            ranking(f"{value}{at}", [*HOSTILE_VALUES, "F"], device=value)
            for at, value in enumerate(HOSTILE_VALUES)
        )
    )
    deliver(tmp_path, rows)
    assert run_batch(settings, DAY).lists == len(HOSTILE_VALUES)
    stored = in_history(settings, "SELECT DISTINCT group_value FROM group_history")
    assert {row["group_value"] for row in stored} == {*HOSTILE_VALUES, "F"}
    parts = in_history(settings, "SELECT slice_value FROM slice_counts WHERE slice = 'device'")
    assert {row["slice_value"] for row in parts} == set(HOSTILE_VALUES)


def test_columns_that_readers_number_rows_with(tmp_path: Path) -> None:
    """A log may hold columns of any name, those that help to read it included."""
    bad = [{**row, "#row": "F", "file_row_number": 7} for row in one_bad("relevance", "7")]
    found = checked(tmp_path, bad, attributes=["#row"])
    assert found.rules[0].sample == ('line 15 of checked.csv: relevance "7" is outside [0, 1]',)


def test_parquet_may_hold_a_column_of_row_numbers(tmp_path: Path) -> None:
    path = tmp_path / "checked.parquet"
    pd.DataFrame([{**row, "file_row_number": 7} for row in good()]).to_parquet(path)
    assert check_files(audit(tmp_path), [path], None).rows_accepted == 12


@pytest.mark.parametrize("name", ["Rank", "LIST_ID", "Position"])
def test_columns_of_the_contract_are_taken_in_any_case(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match=f"{name} has a meaning of its own"):
        audit(tmp_path, attributes=[name], columns={name: "sex"})


def test_columns_are_matched_exactly_and_near_ones_are_named(tmp_path: Path) -> None:
    name = "Gender"
    rows = [
        {name if key == "gender" else key: value for key, value in row.items()} for row in good()
    ]
    with pytest.raises(DataRefused, match=f"no column 'gender'; did you mean {name!r}"):
        checked(tmp_path, rows)


# -- what a caller of the steps sees


def test_steps_carry_the_refusal(tmp_path: Path) -> None:
    settings = audit(tmp_path)
    deliver(tmp_path, one_bad("rank", "x"))
    with pytest.raises(Attempted) as caught:
        ingest_batch(settings, DAY, "run")
    assert isinstance(caught.value.cause, DataRefused)
    assert caught.value.row["status"] == "refused"
