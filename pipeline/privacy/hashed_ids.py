"""Ids as they are stored: as they were delivered, or as a keyed hash that nobody can turn back.

The hash is HMAC-SHA256 (RFC 2104) of the id in UTF-8, its first 128 bits in hex digits.  One id has
one hash, whatever column it stands in, so that lists which stand in for a query still do.

Not here: where the key comes from (``settings.id_key``).
"""

import hmac
from collections.abc import Callable

import duckdb
import pyarrow
from duckdb.func import ARROW

from pipeline.settings.audit import Settings
from pipeline.settings.id_key import key_from

_FUNCTION = "keyed_id"
_DIGITS = 32  # hex digits: 128 bits


def keyed_hash(key: bytes, text: str) -> str:
    """The hash that stands for an id, 32 hex digits.

    >>> keyed_hash(b"sixteen bytes or more", "q17")
    '16b148449dd1d7eca4da44d2437fb2e1'
    """
    return hmac.digest(key, text.encode("utf-8", "surrogatepass"), "sha256").hex()[:_DIGITS]


def check_key(settings: Settings) -> None:
    """SettingsError where ids are to be hashed and there is no key that can."""
    if settings.privacy.hash_ids:
        key_from(settings.privacy.key)


def hash_with_key(connection: duckdb.DuckDBPyConnection, settings: Settings) -> None:
    """Teach a session the hash of ``stored_id``; SettingsError without a key."""
    if not settings.privacy.hash_ids:
        return
    if connection.execute(
        "SELECT 1 FROM duckdb_functions() WHERE function_name = ?", [_FUNCTION]
    ).fetchall():
        connection.remove_function(_FUNCTION)
    connection.create_function(
        _FUNCTION, _hashes(key_from(settings.privacy.key)), ["VARCHAR"], "VARCHAR", type=ARROW
    )


def _hashes(key: bytes) -> Callable[[pyarrow.ChunkedArray], pyarrow.Array]:
    def hashes(texts: pyarrow.ChunkedArray) -> pyarrow.Array:
        return pyarrow.array(
            [None if text is None else keyed_hash(key, text) for text in texts.to_pylist()],
            pyarrow.string(),
        )

    return hashes


def is_hashed(settings: Settings, column: str) -> bool:
    """Whether ids of a column of the log are stored as hashes."""
    return column in settings.privacy.hash_ids


def stored_id(settings: Settings, column: str, text: str) -> str:
    """SQL of an id as it is stored, from the SQL of its text; null stays null."""
    return keyed(text) if is_hashed(settings, column) else text


def keyed(text: str) -> str:
    """SQL of the hash of a text, in a session that was taught it; null stays null."""
    return f"{_FUNCTION}({text})"
