"""Files as they are delivered: which are read, which are refused, and what is said about them."""

import gzip
import hashlib
import json
import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from stores import DAY, Rows, audit, deliver, deliver_bytes, in_batch, lists, ranking, write_csv

from pipeline.errors import AuditError, DataRefused, NoData
from pipeline.log.deliveries import delivery
from pipeline.log.ingest import Ingested
from pipeline.log.rejected_rows import RuleCount
from pipeline.runs.batches import run_batch
from pipeline.runs.in_memory import check_files
from pipeline.runs.steps import Attempted, ingest_batch
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of

HEADER = "list_id,item_id,rank,gender\n"
TWO = "a,x,1,F\na,y,2,M\n"
PACKED = gzip.compress((HEADER + TWO).encode(), mtime=0)
ROWS = lists(ranking("a", "FM"), ranking("b", "MF"))


def read_bytes(folder: Path, data: bytes, name: str = "log.csv", **said: Any) -> Ingested:
    """What becomes of one file, without a store; raises what a batch would be refused with."""
    path = folder / name
    path.write_bytes(data)
    return check_files(audit(folder, **said), [path], None)


def refusal(folder: Path, data: bytes, name: str = "log.csv", **said: Any) -> str:
    with pytest.raises(DataRefused) as caught:
        read_bytes(folder, data, name, **said)
    return str(caught.value)


@dataclass(frozen=True)
class Taken:
    """What became of a day's files: the manifest's status, and what was said or read."""

    status: str
    message: str = ""
    exit_code: int = 0
    rows_read: int = 0
    lists: int = 0
    rules: tuple[RuleCount, ...] = ()


def run(folder: Path, **said: Any) -> Taken:
    """Ingest the day's files; nothing is measured."""
    settings = audit(folder, **said)
    try:
        found = ingest_batch(settings, DAY, "run")
    except Attempted as failed:
        return Taken(failed.row["status"], str(failed.cause), failed.cause.exit_code)
    store = store_of(settings)
    store.staged(DAY, "run").rename(store.batch(DAY))
    return Taken("done", "", 0, found.rows_read, found.lists, found.rules)


def rows_of(settings: Settings) -> list[tuple[Any, ...]]:
    return [
        tuple(row.values())
        for row in in_batch(settings, "SELECT list_id, item_id, rank, gender FROM ranking_log")
    ]


def parquet(folder: Path, rows: Rows) -> bytes:
    path = folder / "made.parquet"
    pd.DataFrame(rows).to_parquet(path)
    data = path.read_bytes()
    path.unlink()
    return data


def json_lines(rows: Rows) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


# -- what is read


@pytest.mark.parametrize(
    "data",
    [
        (HEADER + TWO).encode("utf-8-sig"),
        (HEADER + TWO).replace("\n", "\r\n").encode(),
        (HEADER + TWO).rstrip("\n").encode(),
        b'"list_id","item_id","rank","gender"\n"a","x","1","F"\n"a","y","2","M"\n',
        b" list_id , item_id,rank ,gender\na,x,1,F\na,y,2,M\n",
        b"rank,gender,item_id,list_id\n1,F,x,a\n2,M,y,a\n",
        b",list_id,item_id,rank,gender,,\n0,a,x,1,F,,\n1,a,y,2,M,9,\n",
        b'list_id,item_id,rank,gender,note\na,x,1,F,"one, ""two""\nthree"\na,y,2,M,\n',
    ],
    ids=[
        "byte-order mark",
        "CRLF",
        "no last line end",
        "quoted",
        "spaces in the header",
        "another order",
        "unnamed columns",
        "quotes and line ends in values",
    ],
)
def test_csv_that_is_read(tmp_path: Path, data: bytes) -> None:
    deliver_bytes(tmp_path, data, "part.csv")
    outcome = run(tmp_path)
    assert (outcome.status, outcome.message) == ("done", "")
    assert rows_of(audit(tmp_path)) == [("a", "x", 1, "F"), ("a", "y", 2, "M")]


@pytest.mark.parametrize("suffix", [".csv", ".CSV", ".csv.gz", ".jsonl", ".ndjson.gz", ".parquet"])
def test_formats_give_the_same_rows(tmp_path: Path, suffix: str) -> None:
    write_csv(tmp_path / "made.csv", ROWS)
    data = (tmp_path / "made.csv").read_bytes()
    if "json" in suffix:
        data = json_lines(ROWS)
    if suffix == ".parquet":
        data = parquet(tmp_path, ROWS)
    deliver_bytes(tmp_path, gzip.compress(data) if "gz" in suffix else data, f"part{suffix}")
    assert run(tmp_path).status == "done"
    expected = [(row["list_id"], row["item_id"], row["rank"], row["gender"]) for row in ROWS]
    assert sorted(rows_of(audit(tmp_path))) == sorted(expected)


def test_gzip_of_several_members_is_read_whole(tmp_path: Path) -> None:
    data = gzip.compress((HEADER + "a,x,1,F\n").encode()) + gzip.compress(b"a,y,2,M\n")
    assert read_bytes(tmp_path, data, "log.csv.gz").rows_accepted == 2


def test_json_keys_may_come_in_any_order_or_not_at_all(tmp_path: Path) -> None:
    data = (
        b'{"list_id": 1, "item_id": 7, "rank": 1, "gender": "F"}\n\n'
        b'{"gender": null, "rank": "2", "item_id": "8", "list_id": "1", "click": 1, "x": [1, {}]}\n'
    )
    found = read_bytes(tmp_path, data, "log.jsonl")
    assert (found.rows_accepted, found.lists) == (2, 1)
    assert found.unknown_rows == {"gender": 1}


def test_json_keys_may_come_late(tmp_path: Path) -> None:
    rows = lists(*(ranking(f"q{at}", "FM") for at in range(600)))
    for row in rows[:1100]:
        del row["click"]
    rows[-1]["click"] = 9
    found = read_bytes(tmp_path, json_lines(rows), "log.jsonl", rejects={"max_rejected_share": 0.5})
    assert [rule.rule for rule in found.rules] == ["click_range"]


def test_parquet_types_are_read_as_numbers(tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS).astype({"rank": "float64", "click": "bool", "relevance": "float32"})
    frame["list_id"] = [1, 1, 2, 2]
    frame["gender"] = frame["gender"].astype("category")
    path = tmp_path / "log.parquet"
    frame.to_parquet(path)
    found = check_files(audit(tmp_path), [path], None)
    assert (found.rows_accepted, found.lists, found.rules) == (4, 2, ())


def test_parquet_ranks_with_a_fraction_are_no_ranks(tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS).astype({"rank": "float64"})
    frame.loc[1, "rank"] = 2.5
    path = tmp_path / "log.parquet"
    frame.to_parquet(path)
    found = check_files(audit(tmp_path, rejects={"max_rejected_share": 0.9}), [path], None)
    assert [(rule.rule, rule.sample) for rule in found.rules] == [
        ("rank_not_whole", ('row 2 of log.parquet: rank "2.5" is not a whole number',))
    ]


def test_markers_hidden_files_and_folders_are_no_data(tmp_path: Path) -> None:
    deliver(tmp_path, ROWS)
    for name in ("_SUCCESS", ".part.csv.crc", "_temporary.csv", "part.txt.sha256"):
        deliver_bytes(tmp_path, b"not a log", name)
    (tmp_path / "logs" / DAY / "folder.csv").mkdir()
    outcome = run(tmp_path)
    assert (outcome.status, outcome.rows_read) == ("done", 4)


def test_a_file_delivered_twice_is_read_once(tmp_path: Path) -> None:
    first = deliver(tmp_path, ROWS)
    deliver_bytes(tmp_path, first.read_bytes(), "again.csv")
    outcome = run(tmp_path)
    assert (outcome.status, outcome.rows_read) == ("done", 4)


def test_the_same_rows_in_another_file_are_not_counted_twice(tmp_path: Path) -> None:
    deliver(tmp_path, ROWS)
    deliver_bytes(tmp_path, parquet(tmp_path, ROWS), "part.parquet")
    outcome = run(tmp_path)
    assert outcome.status == "refused"
    assert "duplicate_item: 8 rows in 2 lists" in outcome.message


def test_several_places_for_logs(tmp_path: Path) -> None:
    write_csv(tmp_path / "eu" / f"{DAY}.csv", ranking("a", "FM"))
    write_csv(tmp_path / "us" / DAY / "log.csv", ranking("b", "FM"))
    outcome = run(tmp_path, logs=["eu/{batch}.csv", "us/{batch}/*.csv", "asia/{batch}.csv"])
    assert (outcome.status, outcome.lists) == ("done", 2)


def test_line_numbers_hold_in_a_long_file(tmp_path: Path) -> None:
    draw = random.Random(5)
    broken = sorted(draw.sample(range(40_000), 5))
    lines = [f"q{at},i{at},1,{'9' if at in broken else '1'},F{'x' * 40}" for at in range(40_000)]
    data = "list_id,item_id,rank,relevance,gender\n" + "\n".join(lines) + "\n"
    found = read_bytes(tmp_path, data.encode(), threads=4)
    assert [text.split()[1] for text in found.rules[0].sample] == [str(at + 2) for at in broken]


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl"])
def test_line_numbers_count_empty_lines(tmp_path: Path, name: str) -> None:
    text = HEADER + "a,x,1,F\n\na,y,2,M\nb,x,0,F\n"
    data = text.encode()
    if name == "log.jsonl":
        data = json_lines(ranking("a", "FM")) + b"\n" + json_lines(ranking("b", "F", rank=[0]))
    found = read_bytes(tmp_path, data, name, rejects={"max_rejected_share": 0.9})
    last = data.decode().rstrip("\n").count("\n") + 1
    assert found.rules[0].sample[0].startswith(f"line {last} of")


# -- what is refused


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("log.csv", b"", ["empty_file", "no bytes"]),
        ("log.parquet", b"", ["empty_file"]),
        ("log.csv", (HEADER + TWO).encode("utf-16"), ["UTF-8", "UTF-16"]),
        ("log.jsonl", '{"list_id": "a"}\n'.encode("utf-16"), ["UTF-8", "UTF-16"]),
        ("log.csv", "list_id,item_id,rank,gendér\n".encode("latin-1"), ["line 1", "UTF-8"]),
        ("log.jsonl", '{"list_id": "é"}\n'.encode("latin-1"), ["line 1", "UTF-8"]),
        ("log.csv", (HEADER + "a,x,1,é\n").encode("latin-1"), ["line 2", "must be UTF-8"]),
        ("log.csv", (HEADER + TWO).replace(",", ";").encode(), ["separated by commas"]),
        ("log.csv", (HEADER + TWO).replace(",", "\t").encode(), ["separated by commas"]),
        ("log.csv", (HEADER + 'a,"x,1,F\na,y,2,M\n').encode(), ["cannot be read"]),
        ("log.csv", (HEADER + "a,x,1\n").encode(), ["cannot be read", "line 2: has"]),
        ("log.csv", (HEADER + "a,x,1,F,9\n").encode(), ["cannot be read", "line 2: has"]),
        ("log.csv", b"list_id,item_id,rank,gender,Rank\na,x,1,F,1\n", ["names 'Rank' twice"]),
        ("log.csv", b"list_id,item_id,rank,gender," + b"x" * 1_100_000, ["line 1", "longer"]),
        ("log.csv", (HEADER + "a,x,1," + "F" * 1_100_000).encode(), ["line 2", "longer"]),
        ("log.csv.gz", PACKED[:30], ["not a whole gzip file"]),
        ("log.csv.gz", (HEADER + TWO).encode(), ["not a whole gzip file"]),
        ("log.parquet", (HEADER + TWO).encode(), ["not a whole Parquet file"]),
        ("log.jsonl", b'{"list_id": "a"}\n{"list_id": ', ["line 2", "not a JSON object"]),
        ("log.jsonl", b'[{"list_id": "a"}]\n', ["line 1", "not a JSON object"]),
        ("log.jsonl", b'"list_id"\n', ["line 1", "not a JSON object"]),
        ("log.jsonl", b"[]\n", ["log.jsonl"]),
        ("log.jsonl", b'{"list_id": 1, "rank": 1, "rank": 2}\n', ["line 1", "a key stands twice"]),
        ("log.txt", b"", ["unknown kind of file", ".parquet", ".csv"]),
        ("log", b"x", ["unknown kind of file"]),
        ("log.csv.zip", b"x", ["unknown kind of file"]),
        ("log.parquet.gz", b"x", ["unknown kind of file"]),
        ("log.csv", b"a,b,c\n1,2,3\n", ["no column 'list_id'", "'item_id'", "'rank'", "'gender'"]),
        ("log.csv", b"\n" + TWO.encode(), ["line 1", "no header"]),
        ("log.csv", HEADER.replace("rank", "rnak").encode(), ["'rank'", "did you mean 'rnak'?"]),
        ("log.csv", HEADER.replace("gender", "gendr").encode(), ["did you mean 'gendr'?"]),
    ],
)  # fmt: skip
def test_file_that_is_refused(tmp_path: Path, name: str, data: bytes, words: list[str]) -> None:
    text = refusal(tmp_path, data, name)
    assert name in text
    for word in words:
        assert word in text


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("log.csv", b"\xef\xbb\xbf"),
        ("log.csv.gz", gzip.compress(b"", mtime=0)),
        ("log.csv.gz", gzip.compress(b"x", mtime=0)[:10] + b"\xff" * 80),
        ("log.csv", (HEADER + TWO).replace("\n", "\r").encode()),
        ("log.csv", b"list_id,item_id,rank,gender," + b"x" * 200_000 + b"\n"),
    ],
    ids=["only a mark", "gzip of nothing", "broken gzip", "old line ends", "long name"],
)
def test_odd_starts_of_files_are_refused(tmp_path: Path, name: str, data: bytes) -> None:
    assert name in refusal(tmp_path, data, name)


def test_half_a_parquet_file(tmp_path: Path) -> None:
    data = parquet(tmp_path, lists(*(ranking(f"q{at}", "FM") for at in range(100))))
    assert "not a whole Parquet file" in refusal(tmp_path, data[: len(data) // 2], "log.parquet")


def test_a_long_gzip_file_cut_short(tmp_path: Path) -> None:
    draw = random.Random(1)
    text = HEADER + "".join(f"q{at},i{draw.random()},1,F\n" for at in range(20_000))
    data = gzip.compress(text.encode())
    assert "log.csv.gz" in refusal(tmp_path, data[: len(data) // 2], "log.csv.gz")


@pytest.mark.parametrize(
    "tail", ["", '{"list_id": "q", "item_id": "x", "ra', '{"rank": 1, "rank": 2}\n']
)
def test_long_json_lines_with_a_broken_end(tmp_path: Path, tail: str) -> None:
    data = json_lines(lists(*(ranking(f"q{at}", "F") for at in range(1500)))) + tail.encode()
    if not tail:
        assert read_bytes(tmp_path, data, "log.jsonl").rows_accepted == 1500
        return
    assert "log.jsonl" in refusal(tmp_path, data, "log.jsonl")


def test_messages_do_not_quote_rows(tmp_path: Path) -> None:
    for bad in (
        b"anna@example.org,x,1\n",
        b"anna@example.org,x,1,\xe9\n",
        b'"anna@example.org,x\n',
    ):
        assert "anna" not in refusal(tmp_path, HEADER.encode() + bad)


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl", "log.parquet"])
def test_no_rows_are_no_data(tmp_path: Path, name: str) -> None:
    data = {"log.csv": HEADER.encode(), "log.parquet": parquet(tmp_path, ROWS[:0])}.get(name, b"\n")
    if name == "log.parquet":
        frame = pd.DataFrame(ROWS).iloc[:0]
        frame.to_parquet(tmp_path / "empty.parquet")
        data = (tmp_path / "empty.parquet").read_bytes()
    deliver_bytes(tmp_path, data, name)
    outcome = run(tmp_path)
    assert (outcome.status, outcome.exit_code) in {("no_data", 4), ("refused", 3)}
    if name != "log.jsonl":
        assert outcome.status == "no_data"


def test_header_only_beside_a_file_with_rows(tmp_path: Path) -> None:
    deliver_bytes(tmp_path, (HEADER + TWO).encode(), "a.csv")
    deliver_bytes(tmp_path, HEADER.encode(), "b.csv")
    assert run(tmp_path).rows_read == 2


def test_a_day_without_files(tmp_path: Path) -> None:
    outcome = run(tmp_path)
    assert (outcome.status, outcome.exit_code) == ("no_data", 4)
    assert f"looked for logs/{DAY}/*" in outcome.message


# -- several files


def test_several_problems_come_in_one_message(tmp_path: Path) -> None:
    deliver(tmp_path, ROWS, name="good.csv")
    deliver_bytes(tmp_path, b"", "empty.csv")
    deliver_bytes(tmp_path, b"PAR1", "short.parquet")
    deliver_bytes(tmp_path, b"a;b\n", "semicolon.csv")
    outcome = run(tmp_path)
    assert outcome.status == "refused"
    lines = outcome.message.splitlines()
    assert lines[0] == "3 files refused"
    assert [line.split(":")[0].strip() for line in lines[1:]] == [
        f"logs/{DAY}/empty.csv",
        f"logs/{DAY}/semicolon.csv",
        f"logs/{DAY}/short.parquet",
    ]


def test_every_missing_column_of_every_file_is_named(tmp_path: Path) -> None:
    deliver_bytes(tmp_path, b"list_id,item,rank,gender\na,x,1,F\n", "a.csv")
    deliver_bytes(tmp_path, b"list_id,item_id,position,sex\na,x,1,F\n", "b.csv")
    text = run(tmp_path).message
    for words in ("a.csv: no column 'item_id'; did you mean 'item'?", "b.csv: no column 'rank'",
                  "b.csv: no column 'gender'", "columns: in the settings"):  # fmt: skip
        assert words in text


def test_files_of_one_batch_hold_the_same_columns(tmp_path: Path) -> None:
    deliver_bytes(tmp_path, (HEADER + TWO).encode(), "a.csv")
    deliver_bytes(tmp_path, b"list_id,item_id,rank,gender,click\nb,x,1,F,1\n", "b.csv")
    text = run(tmp_path).message
    assert "click is only in some" in text


def test_at_most_so_many_files(tmp_path: Path) -> None:
    for at in range(4):
        deliver(tmp_path, ranking(f"q{at}", "FM"), name=f"{at}.csv")
    assert run(tmp_path, limits={"files": 4}).status == "done"
    outcome = run(tmp_path, limits={"files": 3}, store="other")
    assert outcome.status == "refused"
    assert "4 files; at most 3" in outcome.message
    assert "limits.files" in outcome.message


# -- checksums


@pytest.mark.parametrize("form", ["{digest}", "{digest}  part.csv\n", "{DIGEST} *part.csv"])
def test_a_checksum_that_agrees(tmp_path: Path, form: str) -> None:
    path = deliver(tmp_path, ROWS)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    sidecar = path.with_name("part.csv.sha256")
    sidecar.write_text(form.format(digest=digest, DIGEST=digest.upper()))
    assert run(tmp_path).status == "done"


@pytest.mark.parametrize("said", ["0" * 64, "", "part.csv"])
def test_a_checksum_that_differs(tmp_path: Path, said: str) -> None:
    path = deliver(tmp_path, ROWS)
    path.with_name("part.csv.sha256").write_text(said)
    outcome = run(tmp_path)
    assert (outcome.status, outcome.exit_code) == ("refused", 3)
    assert "part.csv: differs from what part.csv.sha256 says" in outcome.message


# -- links and things that are no files


def test_a_link_that_leads_out_is_refused(tmp_path: Path) -> None:
    secret = write_csv(tmp_path / "elsewhere" / "secret.csv", ROWS)
    deliver(tmp_path, ROWS, name="good.csv")
    (tmp_path / "logs" / DAY / "evil.csv").symlink_to(secret)
    outcome = run(tmp_path)
    assert (outcome.status, outcome.exit_code) == ("refused", 3)
    assert f"logs/{DAY}/evil.csv: a link that leads out of" in outcome.message
    assert "secret" not in outcome.message


def test_a_day_that_is_a_link_out_is_refused(tmp_path: Path) -> None:
    write_csv(tmp_path / "elsewhere" / "part.csv", ROWS)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / DAY).symlink_to(tmp_path / "elsewhere")
    assert run(tmp_path).status == "refused"


def test_a_link_within_the_logs_is_followed(tmp_path: Path) -> None:
    shared = write_csv(tmp_path / "logs" / "shared" / "part.csv", ROWS)
    (tmp_path / "logs" / DAY).mkdir()
    (tmp_path / "logs" / DAY / "part.csv").symlink_to(shared)
    assert run(tmp_path).status == "done"


def test_the_logs_themselves_may_be_a_link(tmp_path: Path) -> None:
    write_csv(tmp_path / "disk" / DAY / "part.csv", ROWS)
    (tmp_path / "logs").symlink_to(tmp_path / "disk")
    assert run(tmp_path).status == "done"


@pytest.mark.parametrize("target", ["gone.csv", "broken.csv"], ids=["dangling", "circular"])
def test_a_broken_link_is_refused(tmp_path: Path, target: str) -> None:
    deliver(tmp_path, ROWS)
    (tmp_path / "logs" / DAY / "broken.csv").symlink_to(tmp_path / "logs" / DAY / target)
    outcome = run(tmp_path)
    assert outcome.status == "refused"
    assert "broken.csv" in outcome.message


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    deliver(tmp_path, ROWS)
    os.mkfifo(tmp_path / "logs" / DAY / "pipe.csv")
    outcome = run(tmp_path)
    assert outcome.status == "refused"
    assert "pipe.csv: not a regular file" in outcome.message


@pytest.mark.slow
@pytest.mark.parametrize("step", ["first run", "second run"])
def test_a_file_that_cannot_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = deliver(tmp_path, ROWS)
    if step == "second run":
        run_batch(audit(tmp_path, metrics=["EXP"]), DAY)
    opened = Path.open

    def refuse(self: Path, *args: Any, **kwargs: Any) -> Any:
        if self.name == path.name:
            raise PermissionError(13, "Permission denied", str(self))
        return opened(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", refuse)
    try:
        outcome = run_batch(audit(tmp_path, metrics=["EXP"]), DAY)
    except AuditError as error:
        text = str(error)
    else:
        text = outcome.message
        assert outcome.status in ("refused", "failed")
    assert "part.csv" in text


# -- names of files and folders


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_file_names_are_no_patterns(tmp_path: Path, suffix: str) -> None:
    forms = {"csv": lambda rows: (HEADER + "".join(
        f"{row['list_id']},{row['item_id']},{row['rank']},{row['gender']}\n" for row in rows
    )).encode(), "jsonl": json_lines, "parquet": lambda rows: parquet(tmp_path, rows)}  # fmt: skip
    for at, name in enumerate(("part[1]", "part1", "a?c", "abc", "x*", "xyz")):
        rows = [
            {name: row[name] for name in ("list_id", "item_id", "rank", "gender")}
            for row in ranking(f"q{at}", "FM")
        ]
        deliver_bytes(tmp_path, forms[suffix](rows), f"{name}.{suffix}")
    outcome = run(tmp_path)
    assert (outcome.status, outcome.lists, outcome.rows_read) == ("done", 6, 12)


@pytest.mark.parametrize("name", ["it's.csv", "a b.csv", "naïve 名前.csv", "a;b.csv", "100%.csv"])
def test_odd_file_names(tmp_path: Path, name: str) -> None:
    deliver(tmp_path, [*ROWS, *ranking("bad", "F", rank=[0])], name=name)
    outcome = run(tmp_path, rejects={"max_rejected_share": 0.5})
    assert outcome.status == "done"
    assert name in outcome.rules[0].sample[0]


def test_folder_names_are_no_patterns(tmp_path: Path) -> None:
    folder = tmp_path / "audit [2026]"
    deliver(folder, ROWS)
    assert run(folder).status == "done"


@pytest.mark.parametrize("name", ["it's an audit", "naïve 名前", "a;b"])
def test_odd_folder_names(tmp_path: Path, name: str) -> None:
    deliver(tmp_path / name, ROWS)
    assert run(tmp_path / name).status == "done"


def test_what_is_delivered_is_told_by_its_contents(tmp_path: Path) -> None:
    settings = audit(tmp_path)
    path = deliver(tmp_path, ROWS)
    first = delivery(settings, DAY).digest
    path.rename(path.with_name("renamed.csv"))
    assert delivery(settings, DAY).digest == first
    deliver(tmp_path, ROWS[:1], name="more.csv")
    assert delivery(settings, DAY).digest != first
    with pytest.raises(NoData):
        delivery(settings, "2026-01-06")
