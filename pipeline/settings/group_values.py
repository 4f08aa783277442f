"""``values``: which delivered values of an attribute are other ways to write one of its groups.

Here: the texts of that setting, tidied as delivered ones are, and what can be wrong with them.  Not
here: delivered values themselves (``log.values``), and other settings that name groups (``audit``).
"""

import unicodedata
from collections.abc import Mapping

from metrics import UNKNOWN
from pipeline.settings.text import cut

_OUTSIDE = ("Z", "Cc", "Cf", "Co")
"""Begin the Unicode categories of what is trimmed around a value."""
_SHOWN = 60  # characters of a value in a message


def tidied(text: str) -> str:
    """A value as it is compared: NFC, without surrounding space, unknown where empty.

    The same as ``log.values.tidy`` makes of a delivered one.
    """
    text = unicodedata.normalize("NFC", text)
    kept = [at for at, each in enumerate(text) if not _is_outside(each)]
    return text[kept[0] : kept[-1] + 1] if kept else UNKNOWN


def _is_outside(character: str) -> bool:
    return unicodedata.category(character).startswith(_OUTSIDE)


def tidied_groups(groups: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The groups that values of one attribute count as, both tidied, and what is wrong with them.

    A value may count as ``unknown``, which is to say that it is none.  No value at all counts as
    no group: nobody said which.
    """
    found: dict[str, str] = {}
    problems = []
    for delivered, named in groups.items():
        value, group = tidied(delivered), tidied(named)
        if any(unicodedata.category(each) == "Cs" for each in value + group):
            problems.append(f"{shown(value)}: {shown(group)} holds a character that is no text")
        elif value == UNKNOWN:
            problems.append(f"rows without a value stay {UNKNOWN!r}; leave {delivered!r} out")
        elif value in found:
            problems.append(f"{shown(value)} stands twice")
        elif group == UNKNOWN and UNKNOWN not in named:
            problems.append(f"{shown(value)} counts as nothing; name a group, or {UNKNOWN!r}")
        elif group == value:
            problems.append(f"{shown(value)} counts as itself; leave it out")
        found[value] = group
    for value, group in found.items():
        if group in found and group != value:
            said = f"{shown(value)} counts as {shown(group)}, and that as {shown(found[group])}"
            last = _last(found, value)
            problems.append(
                f"{said}: a circle; one of them has to stand for itself"
                if last is None
                else f"{said}; name the last one: {shown(value)} counts as {shown(last)}"
            )
    return found, problems


def _last(groups: Mapping[str, str], value: str) -> str | None:
    """Where a chain of values ends; None where it does not."""
    passed = {value}
    while value in groups:
        value = groups[value]
        if value in passed:
            return None
        passed.add(value)
    return value


def folded(text: str) -> str:
    """What is left of a text without case, width, space around it and what cannot be seen."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    seen = (each for each in plain if unicodedata.category(each) not in ("Cc", "Cf"))
    return " ".join("".join(seen).split())


def shown(text: str) -> str:
    """A value as messages quote it."""
    return repr(cut(text, _SHOWN))
