"""The text of a settings file as a mapping: plain YAML, each key once, nothing that runs or grows.

Not here: what the settings mean (``audit``, ``sections``).
"""

import re
from pathlib import Path
from typing import Any

import yaml

from pipeline.errors import SettingsError

_MOST_BYTES = 1_000_000  # settings are small: a larger file is something else
_DEEPEST = 20  # settings nest a few levels; deeper texts could exhaust the stack
_LARGEST = 2**63  # whole numbers that fit into 64 bits with a sign are below
_BROKEN = re.compile("[\0\ud800-\udfff]")
_ODD_TAGS = ("binary", "set", "omap", "pairs")
"""Types of YAML that no setting has; the order of a set is not even the same twice."""


class _Loader(yaml.SafeLoader):
    """Safe YAML in which a key stands once: the later of two would win in silence."""

    yaml_constructors = {  # noqa: RUF012
        tag: each
        for tag, each in yaml.SafeLoader.yaml_constructors.items()
        if tag is None or tag.rpartition(":")[2] not in _ODD_TAGS
    }

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """A node; ConstructorError where it lies too deep, before the parser runs out of stack."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _problem("is nested too deeply", self.get_mark())
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """A value; ConstructorError where the text is none of its type."""
        try:
            value = super().construct_object(node, deep)
        except (ValueError, KeyError, IndexError, AttributeError, OverflowError):
            kind = node.tag.rpartition(":")[2]
            raise _problem(f"is no {_KINDS.get(kind, kind)}", node.start_mark) from None
        if isinstance(value, str) and _BROKEN.search(value):
            raise _problem("holds a character that is no text", node.start_mark)
        if isinstance(value, int) and abs(value) >= _LARGEST:
            raise _problem("is a number too large", node.start_mark)
        return value

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping; ConstructorError if one of its keys stands twice."""
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise _problem(f"{cut(key.value)} stands twice", key.start_mark)
            seen.add(getattr(key, "value", None) if isinstance(key, yaml.ScalarNode) else id(key))
        return super().construct_mapping(node, deep)


_KINDS = {"int": "whole number", "float": "number", "bool": "true or false", "timestamp": "date"}


def _problem(text: str, mark: Any) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, text, mark)


def cut(text: str, most: int = 100) -> str:
    """``text`` in at most ``most`` characters."""
    return text if len(text) <= most else text[: most - 3] + "..."


def read_text(file: Path, missing: str = "") -> dict[Any, Any]:
    """What a settings file says, empty for an empty one.

    SettingsError where it cannot be read, is no YAML or is no mapping; ``missing`` says what to do
    where there is no such file.
    """
    try:
        with file.open("rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise SettingsError(
                f"{file}: larger than {_MOST_BYTES:,} bytes, so these are no settings"
            )
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        raise SettingsError(f"{file}: no such file{missing}") from None
    except OSError as error:
        raise SettingsError(f"{file}: {(error.strerror or 'cannot be read').lower()}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{file}: cannot be read as UTF-8 text") from None
    try:
        document = yaml.load(text, _Loader)  # a SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or getattr(error, "reason", None)
        raise SettingsError(f"{file}{where}: {cut(problem or 'not valid YAML')}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise SettingsError(
            f"{file}: settings are 'name: value' lines, not a {type(document).__name__}"
        )
    return document
