"""The ledger: a chain of lines that says where it was cut, torn, edited or put together."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st

from pipeline.errors import AuditError, StoreDamaged
from pipeline.history.ledger import DROPPED, KEPT, Ledger, Line, digest

Change = Callable[[list[bytes]], list[bytes]]


def written(path: Path, changes: int = 4, **more: Any) -> Ledger:
    """A ledger of some changes: the third was not committed, all others were."""
    ledger = Ledger(path)
    head = None
    for at in range(1, changes + 1):
        entry = ledger.announce("note", head, {"batch": f"b{at}", **more})
        ledger.close(entry, DROPPED if at == 3 else KEPT)
        head = head if at == 3 else entry["hash"]
    return ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return written(tmp_path / "ledger.jsonl")


def damaged(ledger: Ledger) -> bool:
    """Whether the last lines say that they are not what they were."""
    try:
        ledger.end()
    except StoreDamaged:
        return True
    return False


def test_lines_are_numbered_and_chained(ledger: Ledger) -> None:
    lines = [json.loads(text) for text in ledger.path.read_text().splitlines()]
    assert [line["line"] for line in lines] == list(range(1, 9))
    assert [line["event"] for line in lines] == [
        "note",
        KEPT,
        "note",
        KEPT,
        "note",
        DROPPED,
        "note",
        KEPT,
    ]
    assert [line["previous"] for line in lines] == [None, *(each["hash"] for each in lines[:-1])]
    assert all(line["hash"] == digest(line) for line in lines)
    assert [line["of"] for line in lines[1::2]] == [1, 3, 5, 7]
    record = ledger.read()
    assert (record.problems, record.torn) == ([], 0)
    assert record.lines == lines
    assert [entry["batch"] for entry in record.kept] == ["b1", "b2", "b4"]
    assert [entry["batch"] for entry in record.entries] == ["b1", "b2", "b3", "b4"]


def test_no_ledger_is_empty(tmp_path: Path) -> None:
    absent = Ledger(tmp_path / "ledger.jsonl")
    assert absent.end() is None
    assert absent.read().lines == absent.read().problems == []
    (tmp_path / "ledger.jsonl").touch()
    assert absent.end() is None
    assert absent.announce("note", None, {})["line"] == 1


def test_heads_are_what_the_history_may_be_at(ledger: Ledger) -> None:
    end = ledger.end()
    assert end is not None
    assert end.heads == (end.entry["hash"],)
    entry = ledger.announce("note", end.entry["hash"], {})
    open_end = ledger.end()
    assert open_end is not None
    assert open_end.heads == (end.entry["hash"], entry["hash"])
    assert ledger.read().up_to(entry["hash"])[-1] == entry
    assert ledger.read().up_to(end.entry["hash"])[-1] == end.entry
    ledger.close(entry, DROPPED)
    dropped = ledger.end()
    assert dropped is not None
    assert dropped.heads == (end.entry["hash"],)


def test_a_last_line_torn_anywhere_is_written_over(ledger: Ledger) -> None:
    text = ledger.path.read_bytes()
    start = text.rindex(b"\n", 0, -1) + 1
    for cut in range(start, len(text)):
        ledger.path.write_bytes(text[:cut])
        record, end = ledger.read(), ledger.end()
        assert record.problems == []
        assert record.torn == cut - start
        assert end is not None
        assert end.closing is None
        assert end.entry["batch"] == "b4"
    ledger.close(end.entry, KEPT)
    assert (ledger.read().problems, ledger.read().torn) == ([], 0)
    assert ledger.path.read_bytes()[:start] == text[:start]
    assert ledger.read().kept[-1]["batch"] == "b4"


def test_a_first_line_that_was_torn_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(b'{"line":1,"ev')
    ledger = Ledger(path)
    assert ledger.end() is None
    assert ledger.announce("note", None, {})["line"] == 1
    assert ledger.read().problems == []


def _said(text: bytes, /, **other: Any) -> bytes:
    """A line that says something else, with the hash that belongs to it."""
    changed = {**json.loads(text), **other}
    changed["hash"] = digest(changed)
    return json.dumps(changed, sort_keys=True, separators=(",", ":")).encode()


CHANGES: dict[str, tuple[Change, str]] = {
    "half a line": (lambda t: [*t[:3], t[3][:40], *t[4:]], "line 4 cannot be read"),
    "no UTF-8": (lambda t: [*t[:3], t[3][:-9] + b"\xff" + t[3][-8:], *t[4:]], "line 4 cannot"),
    "nested": (lambda t: [*t[:3], b"[" * 100_000, *t[4:]], "line 4 cannot be read"),
    "another document": (lambda t: [*t[:3], b'["a"]', *t[4:]], "line 4 is no line of a ledger"),
    "nothing": (lambda t: [*t[:3], b"", *t[4:]], "line 4 cannot be read"),
    "a number as text": (
        lambda t: [*t[:3], _said(t[3], line="4"), *t[4:]],
        "line 4 is no line of a ledger",
    ),
    "duplicated": (lambda t: [*t[:3], t[2], *t[3:]], "line 4 does not follow"),
    "swapped": (lambda t: [*t[:2], t[3], t[2], *t[4:]], "line 3 does not follow"),
    "removed": (lambda t: [*t[:2], *t[3:]], "line 3 does not follow"),
    "a change removed": (lambda t: [*t[:2], *t[4:]], "line 3 does not follow"),
    "the first removed": (lambda t: t[2:], "line 1 does not follow"),
    "edited": (lambda t: [*t[:2], t[2].replace(b"b2", b"b9"), *t[3:]], "line 3 was changed"),
    "edited with its hash": (
        lambda t: [*t[:2], _said(t[2], batch="b9"), *t[3:]],
        "line 4 does not follow",
    ),
    "written in another way": (
        lambda t: [*t[:2], t[2].replace(b":", b": "), *t[3:]],
        "line 3 was changed",
    ),
    "said twice": (
        lambda t: [*t[:2], t[2].replace(b"{", b'{"batch":"b9",', 1), *t[3:]],
        "line 3 was changed",
    ),
    "closed twice": (
        lambda t: [*t, _said(t[-1], line=9, previous=json.loads(t[-1])["hash"])],
        "line 9 does not follow",
    ),
    "closes another": (lambda t: [*t[:-1], _said(t[-1], of=5)], "line 8 does not follow"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_lines_are_named(ledger: Ledger, name: str) -> None:
    change, said = CHANGES[name]
    lines = ledger.path.read_bytes().splitlines()
    ledger.path.write_bytes(b"\n".join([*change(lines), b""]))
    assert [text for text in ledger.read().problems if text.startswith(said)]


NOT_AT_THE_END = {"the first removed", "closed twice", "closes another"}


@pytest.mark.parametrize("name", sorted(CHANGES.keys() - NOT_AT_THE_END))
def test_nothing_is_added_to_last_lines_that_were_changed(ledger: Ledger, name: str) -> None:
    lines = ledger.path.read_bytes().splitlines()
    # The change as it is at the end of the ledger.
    ledger.path.write_bytes(b"\n".join([*CHANGES[name][0](lines)[:4], b""]))
    before = ledger.path.read_bytes()
    assert damaged(ledger)
    with pytest.raises(StoreDamaged, match=r"ledger\.jsonl: .*last lines"):
        ledger.announce("note", None, {})
    assert ledger.path.read_bytes() == before


def test_lines_of_another_ledger_are_named(ledger: Ledger, tmp_path: Path) -> None:
    other = written(tmp_path / "other.jsonl", who="another").path.read_bytes().splitlines()
    own = ledger.path.read_bytes().splitlines()
    ledger.path.write_bytes(b"\n".join([*own[:4], *other[4:], b""]))
    assert ledger.read().problems == [
        "line 5 does not follow from the line before it: lines were changed or removed"
    ]


def test_what_a_changed_line_says_is_not_believed(ledger: Ledger) -> None:
    text = ledger.path.read_bytes()
    ledger.path.write_bytes(text.replace(b'"b2"', b'"b9"'))
    assert [entry["batch"] for entry in ledger.read().kept] == ["b1", "b4"]


class FullDisk:
    """os.write on a disk that takes so many bytes more."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.write = os.write

    def __call__(self, file: int, text: bytes) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = self.write(file, text[: self.room])
        self.room -= taken
        return taken


@pytest.mark.parametrize("room", [0, 1, 100])
def test_a_full_disk_leaves_no_half_line(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    before = ledger.path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", FullDisk(room))
        with pytest.raises(AuditError, match=r"ledger\.jsonl: cannot be written: No space left"):
            ledger.announce("note", None, {"batch": "b5"})
    assert ledger.path.read_bytes() == before
    assert ledger.announce("note", None, {"batch": "b5"})["line"] == 9
    assert ledger.read().problems == []


def test_a_write_that_takes_a_part_at_a_time_is_whole(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = os.write
    monkeypatch.setattr(os, "write", lambda file, text: whole(file, text[:7]))
    ledger.announce("note", None, {"batch": "b5"})
    assert ledger.read().problems == []
    assert ledger.read().entries[-1]["batch"] == "b5"


@pytest.mark.parametrize(
    "text", ["häßlich", "\ud800", "\x00\x1b[31m", "a\nb\r\u2028c", "\U0001f4a9" * 30_000]
)
def test_texts_come_back_as_they_were(ledger: Ledger, text: str) -> None:
    entry = ledger.announce("mark", None, {"text": text})
    ledger.close(entry, KEPT)
    record, end = ledger.read(), ledger.end()
    assert record.problems == []
    assert end is not None
    assert end.entry == record.kept[-1] == entry
    assert end.entry["text"] == text
    assert ledger.path.read_bytes().count(b"\n") == 10


@pytest.mark.parametrize("bytes_of_it", [1, 65_535, 65_536, 65_537, 500_000])
def test_long_lines_at_the_end(ledger: Ledger, bytes_of_it: int) -> None:
    entry = ledger.announce("act", None, {"text": "x" * bytes_of_it})
    assert ledger.end() is not None
    whole = ledger.path.read_bytes()
    ledger.path.write_bytes(whole[:-1])
    end, record = ledger.end(), ledger.read()
    assert end is not None
    assert end.entry["batch"] == "b4"
    assert record.torn == len(whole) - whole.rindex(b"\n", 0, -1) - 2
    assert ledger.announce("act", None, {"text": "x" * bytes_of_it})["line"] == entry["line"]
    assert ledger.read().problems == []


def test_a_ledger_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.mkdir()
    assert Ledger(path).read().problems == ["cannot be read: Is a directory"]


FACTS = st.dictionaries(
    st.sampled_from(["batch", "text", "n", "rows"]),
    st.text(max_size=20) | st.integers() | st.none() | st.lists(st.floats(allow_nan=False)),
)


@profile(max_examples=60)
@given(
    changes=st.lists(st.tuples(FACTS, st.sampled_from([KEPT, DROPPED])), min_size=1, max_size=5),
    opened=st.booleans(),
    data=st.data(),
)
def test_end_and_read_agree(
    tmp_path: Path, changes: list[tuple[Line, str]], opened: bool, data: st.DataObject
) -> None:
    path = tmp_path / "ledger.jsonl"
    path.unlink(missing_ok=True)
    ledger, head = Ledger(path), None
    for facts, how in changes:
        entry = ledger.announce("note", head, facts)
        ledger.close(entry, how)
        head = entry["hash"] if how == KEPT else head
    if opened:
        entry = ledger.announce("note", head, {})
    end, record = ledger.end(), ledger.read()
    assert record.problems == []
    assert end is not None
    assert end.last == record.lines[-1]
    assert end.entry == record.entries[-1] == entry
    assert (end.closing is None) == opened
    assert len(record.kept) == sum(how == KEPT for _, how in changes)
    # One byte of it is another: either is told, or a line that nobody waits for is gone.
    text = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(text) - 1))
    text[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(bytes(text))
    changed = ledger.read()
    assert changed.problems or changed.torn
    last = tuple(f"line {number} " for number in range(len(changed.lines) - 1, 20))
    if any(text.startswith(last) for text in changed.problems):
        assert damaged(ledger)
    if damaged(ledger):
        assert changed.problems
