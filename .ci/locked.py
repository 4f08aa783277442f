"""What a lock says: every pin with its hashes, and who asks for it.

What belongs here: reading a lock that ``make lock`` wrote.  Used by the audit of known
vulnerabilities, the software bill of materials and the tests.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements.lock"


@dataclass(frozen=True)
class Pin:
    """One package of a lock; ``via`` are the names of those that need it, "" for the project."""

    requirement: Requirement
    options: tuple[str, ...]
    via: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name as indexes spell it."""
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> str:
        return str(self.requirement.specifier).removeprefix("==")

    @property
    def hashes(self) -> list[str]:
        """SHA-256 of every file that may be installed, in hexadecimal digits."""
        marked = [option.removeprefix("--hash=") for option in self.options]
        return [digest for kind, _, digest in (mark.partition(":") for mark in marked) if digest]

    def here(self, platform: dict[str, str] | None = None) -> bool:
        """Whether it is installed on a platform: this one, or one given by its markers."""
        marker = self.requirement.marker
        return marker is None or marker.evaluate(platform)


def pins_of(text: str) -> list[Pin]:
    """Every pin of a lock, in its order."""
    found: list[Pin] = []
    for part in re.split(r"\n(?=[^\s#])", f"\n{text}"):
        lines = part.strip().splitlines()
        stated = [line for line in lines if not line.lstrip().startswith("#")]
        if not stated:
            continue
        pin, *options = re.split(r"\s+(?=--)", " ".join(stated).replace("\\", " ").strip())
        comments = " ".join(line.strip(" #") for line in lines if line.lstrip().startswith("#"))
        found.append(
            Pin(Requirement(pin.strip()), tuple(o.strip() for o in options), _via(comments))
        )
    return found


def _via(comments: str) -> tuple[str, ...]:
    _, _, names = comments.partition("via ")
    own = re.sub(r"\S+ \(pyproject\.toml\)|-r \S+", ".", names)
    return tuple("" if name == "." else canonicalize_name(name) for name in own.split())


def needed_by(pins: Sequence[Pin], names: set[str]) -> set[str]:
    """``names`` and everything that these need in turn."""
    found: set[str] = set()
    wanted = set(names)
    while wanted:
        found |= wanted
        wanted = {pin.name for pin in pins if wanted & set(pin.via)} - found
    return found
