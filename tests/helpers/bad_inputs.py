"""Deliveries that something is wrong with, or only seems to be, and what becomes of each.

A case puts the files of one day where the settings look for them.  Every id and query in them holds
one of ``SECRETS``, which no message may repeat.
"""

import csv
import gzip
import hashlib
import io
import json
import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
import pyarrow.parquet
from stores import LENIENT

SECRETS = ("anna@example", "zebra-finch", "wormwood")
SETTINGS: dict[str, Any] = {
    "attributes": ["gender"],
    "slices": ["device"],
    "metrics": ["EXP"],
    "rejects": {"max_rejected_share": 0.5},
    "unknown_group": {"max_share": 0.9},
    "limits": {
        "files": 12,
        "rows": 5000,
        "list_rows": 1000,
        "groups": 6,
        "slice_values": 6,
        "name_length": 60,
        "text_bytes": 2_500_000,
    },
    "threads": 1,
    "busy_seconds": 5,
    "evidence": LENIENT,
}
"""Settings that all cases share: the limits are low, so that small files are too large."""

Row = dict[str, Any]
Make = Callable[[Path], None]


def rows_of(list_id: str, genders: Sequence[str] = "FMFM", **more: Any) -> list[Row]:
    """One list; ``more`` gives further columns, a value per item or one for all."""
    rows = [
        {
            "list_id": f"anna@example.org/{list_id}",
            "item_id": f"zebra-finch {list_id}-{rank}",
            "rank": rank,
            "relevance": rank % 2,
            "query_id": f"wormwood {list_id}",
            "device": "mobile",
            "gender": gender,
        }
        for rank, gender in enumerate(genders, start=1)
    ]
    for name, values in more.items():
        each = values if isinstance(values, list) else [values] * len(rows)
        for row, value in zip(rows, each, strict=True):
            row[name] = value
    return rows


GOOD = [row for at in range(6) for row in rows_of(f"q{at}")]
"""What the day held before: six lists that break no rule."""


def as_csv(rows: Sequence[Row], **options: Any) -> bytes:
    """Rows as CSV with a header; None is an empty field."""
    file = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(file, names, lineterminator="\n", **options)
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()


def as_json(rows: Sequence[Row]) -> bytes:
    """Rows as JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def as_parquet(rows: Sequence[Row], **columns: pyarrow.Array) -> bytes:
    """Rows as a Parquet file; ``columns`` stand in the place of those of the rows."""
    table = pyarrow.Table.from_pylist(list(rows))
    for name, values in columns.items():
        at = table.column_names.index(name)
        table = table.set_column(at, name, values)
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file)
    return file.getvalue()


def file(data: bytes | Callable[[], bytes], name: str = "part.csv") -> Make:
    """A day of one file."""

    def make(day: Path) -> None:
        (day / name).write_bytes(data() if callable(data) else data)

    return make


def text(line: str, *, after: Sequence[Row] = GOOD) -> Make:
    """A CSV file of good lists, with one more line."""
    return file(as_csv(after) + line.encode())


def bad(list_id: str = "bad", genders: Sequence[str] = "FM", **more: Any) -> Make:
    """A CSV file of good lists and one more."""
    return file(as_csv([*GOOD, *rows_of(list_id, genders, **more)]))


def parquet_column(name: str, values: Callable[[int], pyarrow.Array]) -> Make:
    """A Parquet file of the good lists with one column of another type."""
    return file(lambda: as_parquet(GOOD, **{name: values(len(GOOD))}), "part.parquet")


@dataclass(frozen=True)
class Case:
    """One delivery.

    ``row`` is its number among the inputs that the design names, 0 where it goes beyond them.
    ``status`` is what the manifest says.  ``said`` stands in the message of a refusal; ``rules``
    are those that rows break.  ``same``: the scores are those of the good lists alone.
    """

    row: int
    name: str
    make: Make
    status: str = "refused"
    said: tuple[str, ...] = ()
    rules: frozenset[str] = field(default_factory=frozenset)
    same: bool = True

    @property
    def of_a_day(self) -> bool:
        """Whether something is wrong with the day, and not with the files one by one."""
        return self.row in (26, 29, 30, 31)

    @property
    def exit_code(self) -> int:
        """How the command ends."""
        return {"done": 0, "refused": 3, "no_data": 4}[self.status]


def refused(row: int, name: str, make: Make, *said: str) -> Case:
    """A delivery that is refused as a whole."""
    return Case(row, name, make, said=said)


def dropped(row: int, name: str, make: Make, *rules: str) -> Case:
    """A delivery of which the good lists stay and one is rejected."""
    return Case(row, name, make, "done", rules=frozenset(rules))


def taken(row: int, name: str, make: Make, *, same: bool = True) -> Case:
    """A delivery that is accepted."""
    return Case(row, name, make, "done", same=same)


# -- how days are made


def _nothing(day: Path) -> None:
    """A day without files."""


def _twice(day: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (day / name).write_bytes(as_csv(GOOD))


def _tiny_files(day: Path) -> None:
    for at in range(13):
        (day / f"{at}.csv").write_bytes(as_csv(rows_of(f"q{at}")))


def _link(target: str | Callable[[Path], Path]) -> Make:
    def make(day: Path) -> None:
        file(as_csv(GOOD))(day)
        (day / "more.csv").symlink_to(target(day) if callable(target) else target)

    return make


def _outside(day: Path) -> Path:
    secret = day.parent.parent / "secret.csv"
    secret.write_bytes(as_csv(rows_of("outside")))
    return secret


def _pipe(day: Path) -> None:
    file(as_csv(GOOD))(day)
    os.mkfifo(day / "more.csv")


def _socket(day: Path) -> None:
    file(as_csv(GOOD))(day)
    here = Path.cwd()
    # The name of a socket may be only so long, which folders of tests may exceed.
    os.chdir(day)
    try:
        with socket.socket(socket.AF_UNIX) as opened:
            opened.bind("more.csv")
    finally:
        os.chdir(here)


def _only_a_folder(day: Path) -> None:
    (day / "more.csv").mkdir()


def _not_a_name(day: Path) -> None:
    (day / os.fsdecode(b"\xff\xfe.csv")).write_bytes(as_csv(GOOD))


def _named(*names: str) -> Make:
    def make(day: Path) -> None:
        for at, name in enumerate(names):
            (day / name).write_bytes(as_csv(GOOD[at :: len(names)]))

    return make


def _summed(change: Callable[[bytes], bytes]) -> Make:
    """A Parquet file with the checksum of what was sent, and what arrived of it."""

    def make(day: Path) -> None:
        data = as_parquet(GOOD)
        digest = hashlib.sha256(data).hexdigest()
        (day / "part.parquet").write_bytes(change(data))
        (day / "part.parquet.sha256").write_text(f"{digest}  part.parquet\n")

    return make


def _flipped(data: bytes) -> bytes:
    at = data.index(b"zebra-finch")
    return data[:at] + b"Z" + data[at + 1 :]


def _database(name: str) -> Make:
    def make(day: Path) -> None:
        made = day / "made"
        with duckdb.connect(str(made)) as connection:
            connection.execute("CREATE TABLE ranking_log AS SELECT 'anna@example.org' AS list_id")
        made.rename(day / name)

    return make


def _no_row_groups() -> bytes:
    made = io.BytesIO()
    schema = pyarrow.Table.from_pylist(GOOD).schema
    pyarrow.parquet.ParquetWriter(made, schema).close()
    return made.getvalue()


def _two_of_one_name() -> bytes:
    table = pyarrow.Table.from_pylist(GOOD)
    made = io.BytesIO()
    both = table.append_column("gender", table["device"])
    pyarrow.parquet.write_table(both, made)
    return made.getvalue()


def _not_text(count: int) -> pyarrow.Array:
    values = pyarrow.array([b"anna@example \xff"] * count, pyarrow.binary())
    return pyarrow.StringArray.from_buffers(count, *values.buffers()[1:])


def _without(*names: str) -> list[Row]:
    return [{name: value for name, value in row.items() if name not in names} for row in GOOD]


def _scores(value: Any) -> Make:
    """Lists ordered by a score, of which one has no number to be ordered by."""
    good = [{**row, "score": 10 - row["rank"]} for row in GOOD]
    more = [{**row, "score": value} for row in rows_of("bad", "F")]
    rows = [{name: each for name, each in row.items() if name != "rank"} for row in (*good, *more)]
    return file(as_csv(rows))


def _reordered() -> bytes:
    return as_csv([dict(reversed(row.items())) for row in GOOD])


def _line(**changed: Any) -> str:
    (row,) = rows_of("bad", "F")
    return as_csv([{**row, **changed}]).decode().split("\n", 1)[1]


def _packed(data: Callable[[], bytes]) -> Callable[[], bytes]:
    return lambda: gzip.compress(data(), mtime=0)


def _json_with(key: str, value: str) -> bytes:
    (row,) = rows_of("bad", "F")
    said = ", ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in row.items() if k != key)
    return as_json(GOOD) + f'{{{said}, "{key}": {value}}}\n'.encode()


_HEADER = as_csv(GOOD).split(b"\n", 1)[0] + b"\n"
_LONG = b"x" * 1_100_000

CASES = (
    # -- files
    refused(1, "no bytes", file(b""), "part.csv: empty_file"),
    Case(2, "header only", file(_HEADER), "no_data", ("no rows",)),
    Case(3, "no file", _nothing, "no_data", ("no files",)),
    taken(4, "byte-order mark", file(b"\xef\xbb\xbf" + as_csv(GOOD))),
    refused(5, "UTF-16", file(as_csv(GOOD).decode().encode("utf-16")), "must be UTF-8", "UTF-16"),
    refused(6, "Latin-1", file(as_csv(GOOD) + b"q,i,1,1,q,mobile,\xe9\n"), "line 26", "UTF-8"),
    refused(
        6,
        "Latin-1 far down",
        file(as_csv(GOOD * 50) + b"anna@example,i,1,1,q,mobile,\xe9\n"),
        "must be UTF-8 (Line: 1202)",
    ),
    taken(8, "CRLF", file(as_csv(GOOD).replace(b"\n", b"\r\n"))),
    refused(9, "semicolons", file(as_csv(GOOD, delimiter=";")), "separated by commas"),
    dropped(9, "decimal comma", bad(relevance="0,5"), "relevance_not_number"),
    refused(10, "unterminated quote", text('"anna@example.org/bad,x,1\n'), "cannot be read"),
    refused(11, "too few columns", text("anna@example.org/bad,x\n"), "cannot be read", "26"),
    refused(12, "one column more", text(_line().rstrip() + ",anna@example\n"), "cannot be read"),
    taken(14, "columns in another order", file(_reordered)),
    refused(15, "a column is missing", file(as_csv(_without("gender"))), "no column 'gender'"),
    taken(15, "a column more", file(as_csv([{**row, "note": "wormwood"} for row in GOOD]))),
    refused(16, "a field of a megabyte", file(as_csv(GOOD) + b"q," + _LONG + b"\n"), "line 26 is"),
    refused(
        17,
        "gzip of a long list",
        file(_packed(lambda: _HEADER + _line().encode() * 4000), "part.csv.gz"),
        "1 list of more than 1,000 rows, the longest of 4,000",
        "limits.list_rows",
    ),
    refused(
        17,
        "gzip of many bytes",
        file(_packed(lambda: _HEADER + b"\n" * 3_000_000), "part.csv.gz"),
        "more than 2,500,000 bytes",
        "limits.text_bytes",
    ),
    refused(
        17,
        "too many rows",
        file(lambda: as_csv(GOOD * 210)),
        "more than 5,000 rows",
        "limits.rows",
    ),
    refused(19, "text named .parquet", file(as_csv(GOOD), "part.parquet"), "not a whole Parquet"),
    refused(
        20,
        "half a Parquet file",
        file(lambda: as_parquet(GOOD)[:2000], "part.parquet"),
        "not a whole Parquet file",
    ),
    refused(21, "one byte is another", _summed(_flipped), "differs from what part.parquet.sha256"),
    taken(21, "the checksum agrees", _summed(lambda data: data)),
    refused(22, "JSON cut short", file(as_json(GOOD)[:-30], "part.jsonl"), "line 24", "not a JSON"),
    refused(
        23,
        "a key stands twice",
        file(_json_with("rank", '1, "rank": 2'), "part.jsonl"),
        "line 25",
        "twice",
    ),
    dropped(
        25,
        "a number that is a text",
        file(_json_with("rank", '"zebra-finch"'), "part.jsonl"),
        "rank_not_whole",
    ),
    dropped(
        25,
        "a number that is a list",
        file(_json_with("rank", '["zebra-finch"]'), "part.jsonl"),
        "rank_not_whole",
    ),
    taken(26, "one file twice", _twice),
    refused(29, "a link that leads out", _link(_outside), "more.csv: a link that leads out"),
    refused(29, "a link to the system", _link("/etc/passwd"), "a link that leads out"),
    Case(30, "a folder named as a file", _only_a_folder, "no_data", ("no files",)),
    refused(30, "a pipe", _pipe, "more.csv: not a regular file"),
    refused(30, "a socket", _socket, "more.csv: not a regular file"),
    refused(30, "a device", _link("/dev/zero"), "more.csv: not a regular file"),
    refused(31, "many tiny files", _tiny_files, "13 files; at most 12", "limits.files"),
    # -- values
    dropped(32, "rank with a fraction", bad(rank=[1, "1.5"]), "rank_not_whole"),
    dropped(34, "rank with a comma", bad(rank=[1, "1,000"]), "rank_not_whole"),
    dropped(35, "rank beyond all numbers", bad(rank=[1, "9" * 20]), "rank_high"),
    dropped(36, "rank 0", bad(rank=[0, 1]), "rank_low"),
    dropped(36, "rank below 0", bad(rank=[-1, 1]), "rank_low"),
    dropped(37, "a gap in ranks", bad(rank=[1, 4]), "rank_gap"),
    dropped(38, "a rank twice", bad(genders="FMF", rank=[1, 2, 2]), "duplicate_rank"),
    dropped(39, "an item twice", bad(item_id="zebra-finch x"), "duplicate_item"),
    dropped(40, "relevance NaN", bad(relevance=["NaN", 1]), "relevance_range"),
    dropped(40, "relevance infinite", bad(relevance=["inf", 1]), "relevance_range"),
    dropped(40, "score NaN", _scores("nan"), "score_range"),
    dropped(40, "score infinite", _scores("-inf"), "score_range"),
    taken(42, "NULL and None are names", bad(genders=["NULL", "None"]), same=False),
    taken(42, "nothing is unknown", bad(genders=["", "F"]), same=False),
    taken(43, "one item without a group", bad(genders=["", "M"]), same=False),
    refused(
        43,
        "no item has a group",
        file(as_csv([{**row, "gender": ""} for row in GOOD])),
        "gender: 100.0% of the rows have no group",
    ),
    taken(44, "a group never seen before", bad(genders=["femal", "M"]), same=False),
    taken(47, "one group only", file(as_csv([{**r, "gender": "F"} for r in GOOD])), same=False),
    taken(49, "a list of one item", bad(genders="F"), same=False),
    taken(50, "nothing is relevant", file(as_csv([{**row, "relevance": 0} for row in GOOD]))),
    dropped(56, "propensity 0", bad(propensity=[0, 1]), "propensity_low"),
    # -- beyond the list: encodings and text
    refused(0, "UTF-32", file(as_csv(GOOD).decode().encode("utf-32")), "must be UTF-8", "UTF-32"),
    refused(
        0, "UTF-16 without a mark", file(as_csv(GOOD).decode().encode("utf-16-le")), "zero bytes"
    ),
    refused(0, "overlong UTF-8", file(as_csv(GOOD) + b"\xc0\x80,i\n"), "must be UTF-8"),
    refused(0, "half a character", file(as_csv(GOOD) + b"\xed\xa0\x80,i\n"), "must be UTF-8"),
    refused(
        0,
        "half a character in JSON",
        file(_json_with("gender", '"\\ud800"'), "part.jsonl"),
        "half a character stands in it",
    ),
    refused(0, "blank lines", file(b"\n\n\n"), "line 1: no header"),
    refused(0, "JSON of blank lines", file(b"\n \n", "part.jsonl"), "empty_file"),
    refused(0, "old line ends", file(as_csv(GOOD).replace(b"\n", b"\r")), "line feed"),
    refused(0, "no header", file(as_csv(_without("relevance")).split(b"\n", 1)[1]), "no column"),
    refused(
        0, "no header, a value twice", file(as_csv(GOOD).split(b"\n", 1)[1]), "is there a header"
    ),
    refused(
        0,
        "a header twice",
        file(_HEADER.replace(b"relevance", b"Rank") + _line().encode()),
        "names 'Rank' twice",
    ),
    refused(
        0,
        "an unknown name twice",
        file(_HEADER.strip() + b",wormwood,Wormwood\n"),
        "the header names a column twice",
    ),
    refused(
        0,
        "eleven thousand columns",
        file(_HEADER.strip() + b"," + b",".join(b"c%d" % at for at in range(11_000)) + b"\n"),
        "more than 10,000 columns",
    ),
    refused(0, "a long name", file(b"n" * 2000 + b"," + _HEADER), "a column name is longer"),
    refused(
        0,
        "a last line without end that is too long",
        file(as_csv(GOOD) + _LONG * 2),
        "line 26 is longer",
    ),
    refused(
        0,
        "a group that is an essay",
        bad(genders=["x" * 61, "M"]),
        "gender: a value of 61 characters",
    ),
    refused(
        0, "a slice that is an essay", bad(device="x" * 61), "device: a value of 61 characters"
    ),
    refused(0, "too many groups", bad(genders="ABCDEGHI"), "gender: 10 groups", "limits.groups"),
    taken(0, "quotes and line ends", bad(genders=['"F"\n', "M,\n"]), same=False),
    taken(0, "zero bytes in a value", text(_line(gender="F\0M")), same=False),
    # -- beyond the list: JSON
    refused(
        0,
        "JSON nested deeply",
        file(_json_with("gender", "[" * 50_000 + "]" * 50_000), "part.jsonl"),
        "line 25: nested too deeply",
    ),
    refused(0, "a JSON array", file(json.dumps(GOOD).encode(), "part.json"), "not a JSON object"),
    refused(
        0,
        "keys that differ in case",
        file(_json_with("RANK", "1"), "part.jsonl"),
        "names 'rank' twice",
    ),
    taken(0, "a JSON key without a name", file(_json_with("", "1"), "part.jsonl"), same=False),
    taken(
        0,
        "a JSON id of many digits",
        file(_json_with("item_id", "9" * 5000), "part.jsonl"),
        same=False,
    ),
    dropped(
        0,
        "a JSON number beyond all",
        file(_json_with("rank", "1e999"), "part.jsonl"),
        "rank_not_whole",
    ),
    # -- beyond the list: gzip
    refused(0, "text named .gz", file(as_csv(GOOD), "part.csv.gz"), "not a whole gzip file"),
    refused(
        0,
        "gzip and more",
        file(lambda: gzip.compress(as_csv(GOOD), mtime=0) + b"anna@example", "part.csv.gz"),
        "not a whole gzip file",
    ),
    refused(
        0,
        "gzip cut short",
        file(lambda: gzip.compress(as_csv(GOOD), mtime=0)[:-20], "part.csv.gz"),
        "not a whole gzip file",
    ),
    refused(
        0,
        "gzip of gzip",
        file(_packed(_packed(lambda: as_csv(GOOD))), "part.csv.gz"),
        "must be UTF-8",
    ),
    # -- beyond the list: Parquet
    Case(0, "Parquet without rows", file(_no_row_groups, "part.parquet"), "no_data", ("no rows",)),
    refused(0, "Parquet names twice", file(_two_of_one_name, "part.parquet"), "'gender' twice"),
    refused(0, "Parquet text that is none", parquet_column("item_id", _not_text), "must be UTF-8"),
    refused(
        0,
        "Parquet lists",
        parquet_column("list_id", lambda n: pyarrow.array([["anna@example"]] * n)),
        "list_id is nested",
    ),
    refused(
        0,
        "Parquet structs",
        parquet_column("gender", lambda n: pyarrow.array([{"anna@example": "F"}] * n)),
        "gender is nested",
    ),
    taken(
        0,
        "Parquet decimals",
        parquet_column(
            "rank", lambda n: pyarrow.array([Decimal(f"{1 + at % 4}.00") for at in range(n)])
        ),
    ),
    taken(
        0,
        "Parquet half floats",
        parquet_column(
            "rank", lambda n: pyarrow.array([1 + at % 4 for at in range(n)], pyarrow.float16())
        ),
    ),
    taken(
        0,
        "Parquet whole numbers without sign",
        parquet_column(
            "rank", lambda n: pyarrow.array([1 + at % 4 for at in range(n)], pyarrow.uint64())
        ),
    ),
    taken(
        0,
        "Parquet dictionaries",
        parquet_column(
            "gender", lambda n: pyarrow.array(["F", "M"] * (n // 2)).dictionary_encode()
        ),
    ),
    refused(
        0,
        "Parquet times for ranks",
        parquet_column("rank", lambda n: pyarrow.array([0] * n, pyarrow.timestamp("us"))),
        "rank_not_whole",
    ),
    # -- beyond the list: names of files
    refused(0, "a link that leads nowhere", _link("gone.csv"), "more.csv: a link that leads nowhe"),
    refused(0, "a link to itself", _link("more.csv"), "more.csv: a link that leads nowhere"),
    refused(0, "a name that is no text", _not_a_name, "its path is not UTF-8"),
    taken(0, "names like patterns", _named("a[1].csv", "a1.csv", "*.csv", "?.csv")),
    taken(0, "names that steer", _named("a\nb.csv", "\x1b[31m.csv", "a'b.csv", "{batch}.csv")),
    refused(0, "a database named .csv", _database("part.csv"), "must be UTF-8"),
    refused(0, "a database named .parquet", _database("part.parquet"), "not a whole Parquet"),
    refused(0, "a database", _database("part.duckdb"), "unknown kind of file"),
)
