"""The key of the hash of ids: where it comes from, and what may be said about it.

Not here: hashing (``privacy.hashed_ids``).
"""

import hmac
import os

from pipeline.errors import SettingsError
from pipeline.former_name import FINGERPRINT

LEAST_BYTES = 16
"""Bytes below which a key can be guessed; NIST SP 800-107 asks HMAC keys for 112 bits or more."""


def key_from(variable: str) -> bytes:
    """The key that a variable of the environment holds, without space around it.

    SettingsError where there is none or it is too short; the text never holds any of it.
    """
    key = os.environ.get(variable, "").strip().encode("utf-8", "surrogateescape")
    advice = "`openssl rand -hex 32` makes one; privacy.key in the settings names the variable"
    if not key:
        raise SettingsError(
            f"privacy.hash_ids: the environment variable {variable} holds no key; {advice}"
        )
    if len(key) < LEAST_BYTES:
        raise SettingsError(
            f"privacy.hash_ids: the key in {variable} has {len(key)} bytes; at least "
            f"{LEAST_BYTES} are needed. {advice}"
        )
    return key


def fingerprint(key: bytes) -> str:
    """Sixteen hex digits that tell keys apart, and tell nothing else about them."""
    return hmac.digest(key, FINGERPRINT, "sha256").hex()[:16]
