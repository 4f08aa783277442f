"""Whatever is delivered or set: an answer or an explained refusal, and nobody's words in it.

``FUZZ_EXAMPLES=20000 HYPOTHESIS_PROFILE=explore`` looks for more; what was found stands in
``bad_inputs.py``, or here as an example.
"""

import gzip
import io
import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow
import pyarrow.parquet
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from stores import audit

from pipeline.errors import AuditError, SettingsError
from pipeline.runs.in_memory import check_files
from pipeline.settings.audit import Settings
from pipeline.settings.load import load_settings

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "40"))
SECRETS = ("anna@example", "zebra-finch", "wormwood")
"""Parts of every list id, item id and query of the files that are spoilt here."""
ROWS: list[dict[str, Any]] = [
    {
        "list_id": f"anna@example.{at}",
        "item_id": f"zebra-finch {at}/{rank}",
        "rank": rank,
        "relevance": rank % 2,
        "query_id": f"wormwood, {at}",
        "gender": "FMX"[rank % 3],
    }
    for at in range(3)
    for rank in range(1, 4)
]


def _csv() -> bytes:
    lines = [",".join(ROWS[0])]
    lines += [",".join(f'"{value}"' for value in row.values()) for row in ROWS]
    return ("\n".join(lines) + "\n").encode()


def _parquet(**options: Any) -> bytes:
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), file, **options)
    return file.getvalue()


_JSON = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
WHOLE = {
    "log.csv": _csv(),
    "log.jsonl": _JSON,
    "log.parquet": _parquet(),
    "plain.parquet": _parquet(use_dictionary=False, compression="none"),
    "log.csv.gz": gzip.compress(_csv(), mtime=0),
    "log.jsonl.gz": gzip.compress(_JSON, mtime=0),
}
_PIECES = [
    *(b'"', b",", b"\n", b"\r", b"\r\n", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"'"),
    *(b"{", b"}", b"[", b":", b"null", b"true", b"NaN", b"Infinity", b"\\ud800", b"\\", b" "),
    *(b"-1", b"1e999", b"9" * 30, b"0.5", b"1_0", b";", b"\t", b"=1+1", b"$", b"*", b"x" * 300),
    *(b"rank", b"list_id", b'"rank": 1,', b"\n\n", b'""', b"\xe2\x80\xae", b"\x1b[31m", b"PAR1"),
]


def reading(name: str, data: bytes) -> str:
    """What is said of a file: an explained refusal, or what was found in it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        try:
            found = check_files(
                audit(Path(folder), rejects={"max_rejected_share": 1.0}), [path], None
            )
        except AuditError as error:
            return str(error)
    assert found.rows_read == found.rows_accepted + found.rows_rejected
    return repr((found.rules, found.notes))


@st.composite
def spoilt(draw: st.DrawFn) -> tuple[str, bytes]:
    """A name and the bytes of a file that was whole before some of it was changed."""
    name = draw(st.sampled_from(sorted(WHOLE)))
    packed = name.endswith(".gz") and draw(st.booleans())
    data = gzip.decompress(WHOLE[name]) if packed else WHOLE[name]
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.sampled_from([0, 0, 1, 1, 2, 5, 20, 200])))
        data = data[:at] + draw(_changes(data[at:end])) + data[end:]
    return name, gzip.compress(data, mtime=0) if packed else data


def _changes(part: bytes) -> st.SearchStrategy[bytes]:
    flipped = bytes([part[0] ^ 1 << len(part) % 8]) + part[1:] if part else b""
    return st.one_of(
        st.sampled_from(_PIECES), st.binary(max_size=8), st.sampled_from([b"", part * 2, flipped])
    )


@settings(max_examples=EXAMPLES)
@given(spoilt())
def test_a_spoilt_file_is_read_or_refused_and_never_quoted(file: tuple[str, bytes]) -> None:
    said = reading(*file)
    assert said
    for secret in SECRETS:
        assert secret not in said


@settings(max_examples=EXAMPLES)
@given(
    name=st.sampled_from(sorted(WHOLE)),
    data=st.one_of(
        st.binary(max_size=200),
        st.lists(st.sampled_from(_PIECES), max_size=30).map(b"".join),
        st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass")),
    ),
)
def test_any_bytes_are_read_or_refused(name: str, data: bytes) -> None:
    assert reading(name, data)


# -- settings


_VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(),
        st.text(max_size=12),
        st.dates().map(str),
        st.sampled_from(
            [
                "{batch}",
                "EXP",
                "EXP@10",
                "EXP.MinMaxRatio",
                "gender",
                "all",
                "1GB",
                "UTC",
                "~x",
                "*",
            ]
        ),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


def _paths(model: Any, before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for name, field in model.model_fields.items():
        here = (*before, name)
        inner = getattr(field.annotation, "model_fields", None)
        found += [here, *(_paths(field.annotation, here) if inner else [])]
    return found


_PATHS = [path for path in _paths(Settings) if path != ("folder",)]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """YAML of settings, some of which say something else than they should."""
    said: dict[str, Any] = {"attributes": ["gender"], "slices": ["device"]}
    for _ in range(draw(st.integers(1, 4))):
        *parents, last = draw(st.sampled_from(_PATHS))
        place = said
        for name in parents:
            inner = place.setdefault(name, {})
            if not isinstance(inner, dict):
                inner = place[name] = {}
            place = inner
        place[last] = draw(_VALUES)
    return yaml.safe_dump(said, allow_unicode=draw(st.booleans()))


_WORDS = [
    *("attributes", "slices", "limits", "schedule", "start", "thresholds", "targets", "logs", ":"),
    *(": ", "\n", "\n  ", "- ", "[", "]", "{", "}", ", ", "&a ", "*a", "<<: ", "!!set ", "!!int "),
    *(
        "!!python/name:os.system ",
        "!!binary ",
        "!!timestamp ",
        "? ",
        "| ",
        "> ",
        "'",
        '"',
        "#",
        "%",
    ),
    *("2026-13-45", "0x", "1e9", ".nan", "-.inf", "null", "yes", "\t", "---", "...", "=", "@", "`"),
    *(
        '"\\ud800"',
        '"\\0"',
        "\0",
        "\x85",
        "\u2028",
        "\ufeff",
        "9" * 30,
        "1:2:3",
        "gender",
        "!",
        "~",
    ),
]


def load(data: bytes) -> Settings | None:
    """What a file of settings gives: settings, or an explained refusal."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "audit.yaml"
        path.write_bytes(data)
        try:
            return load_settings(path)
        except SettingsError as error:
            said = str(error)
    assert said.startswith(str(path))
    assert len(said) < 20_000
    return None


def _uses(found: Settings) -> None:
    """What every command does with settings, before it looks at any data."""
    assert len(found.config_hash) == 16
    assert found.measures
    assert found.path(found.store)


@settings(max_examples=EXAMPLES)
@given(mutated())
def test_settings_are_taken_or_refused(text: str) -> None:
    found = load(text.encode())
    if found is not None:
        _uses(found)


@settings(max_examples=EXAMPLES * 2)
@given(
    st.one_of(
        st.lists(st.sampled_from(_WORDS), max_size=30).map("".join),
        st.lists(st.sampled_from(_WORDS), max_size=12).map(lambda w: "attributes: " + "".join(w)),
        st.text(max_size=60).map(lambda text: "attributes: [g]\n" + text),
    )
)
@example("attributes: [" * 3000)
@example("attributes: !!int ''")
@example("schedule: {start: 2026-13-45}")
def test_any_text_is_settings_or_refused(text: str) -> None:
    found = load(text.encode("utf-8", "surrogatepass"))
    if found is not None:
        _uses(found)


@settings(max_examples=EXAMPLES)
@given(st.binary(max_size=60))
def test_any_bytes_are_settings_or_refused(data: bytes) -> None:
    found = load(data)
    assert found is None or found.attributes
