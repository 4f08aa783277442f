"""Which column of a delivered file holds what: names of the contract to names in the file.

Not here: which columns a file has (``headers``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from pipeline.errors import DataRefused, several
from pipeline.log.headers import known_names
from pipeline.log.sources import Source
from pipeline.settings.audit import Settings
from schemas.rules import LOGGED, REQUIRED

_NAMED = 20  # names in a message: a file may have thousands of columns
_LONGEST_NAME = 60  # characters of it: the rest of the line is for the message
NESTED = "is nested; write one text or number in each row"
_NESTED = ("STRUCT(", "MAP(", "UNION(", "VARIANT", "]")
"""What the types of columns begin or end with that hold more than one value in a row."""


@dataclass(frozen=True)
class Layout:
    """Which column of a source holds what: names of the contract to names in the file."""

    found: Mapping[str, str]
    ignored: tuple[str, ...]

    @property
    def columns(self) -> list[str]:
        """All columns of the file."""
        return sorted({*self.found.values(), *self.ignored})


def layout(source: Source, settings: Settings, wanted: Iterable[str]) -> Layout:
    """Where ``wanted`` columns of the contract stand in ``source``; some may be absent."""
    delivered_names: dict[str, str] = {}
    for name in wanted:
        delivered = settings.columns.get(name, name)
        if delivered in source.kinds:
            delivered_names[name] = delivered
    return Layout(
        delivered_names,
        tuple(name for name in source.columns if name not in delivered_names.values()),
    )


def log_layouts(
    sources: Iterable[Source], settings: Settings, from_items: Iterable[str]
) -> list[Layout]:
    """The layouts of a batch's log files.

    ``from_items`` are attribute columns that the item table supplies.  DataRefused lists every
    file and column that is missing, and the column that may have been meant.
    """
    logged = [column.name for column in LOGGED]
    supplied = set(from_items)
    layouts = []
    problems = []
    nested: list[str] = []
    for source in sources:
        mapping = layout(source, settings, [*logged, *settings.slices, *settings.attribute_columns])
        missing = [
            name
            for name in (*REQUIRED, *settings.slices, *settings.attribute_columns)
            if name not in mapping.found and name not in supplied
        ]
        if "rank" not in mapping.found and "score" not in mapping.found:
            missing.append("rank")
        missing += [
            name for name in settings.columns if name in logged and name not in mapping.found
        ]
        for name in dict.fromkeys(missing):
            problems.append(f"{source.shown}: {_absent(name, mapping, source, settings)}")
        nested += nested_columns(source, mapping)
        layouts.append(mapping)
    names_by_file = [frozenset(each.found) for each in layouts]
    if not problems and len(set(names_by_file)) > 1:
        differing = sorted(frozenset.union(*names_by_file) - frozenset.intersection(*names_by_file))
        problems.append(
            f"the files differ in columns: {', '.join(differing)} is only in some of them"
        )
    if problems:
        advice = "columns: in the settings maps names of the contract to names in the log."
        raise DataRefused(several("the log lacks columns", [*problems, *nested], advice))
    if nested:
        raise DataRefused(several("columns cannot be read", nested))
    return layouts


def nested_columns(source: Source, here: Layout) -> list[str]:
    """What is wrong with columns of which one row holds many values."""
    return [
        f"{source.shown}: {name} {NESTED}"
        for name, delivered in here.found.items()
        if source.kinds[delivered].startswith(_NESTED[:-1])
        or source.kinds[delivered].endswith(_NESTED[-1])
    ]


def _absent(name: str, mapping: Layout, source: Source, settings: Settings) -> str:
    delivered = settings.columns.get(name, name)
    text = f"no column {delivered!r}"
    if delivered != name:
        text += f" (for {name})"
    folded = {name.casefold(): name for name in mapping.ignored}
    near = get_close_matches(delivered.casefold(), folded, n=1)
    if near:
        return f"{text}; did you mean {folded[near[0]]!r}?"
    there = listed(source, mapping.columns, settings)
    return f"{text}; the file has {there}" if there else text


def listed(source: Source, names: Sequence[str], settings: Settings) -> str:
    """Names of columns of a text file or a table, cut where there are many, or where one is long.

    Empty where none of the file's names is known: what was taken for them may well be a row.
    """
    may_show = settings.privacy.show_values or source.format not in ("csv", "jsonl")
    if not may_show and not known_names(settings) & set(source.columns):
        return ""
    shown_names = [
        repr(name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME] + "...")
        for name in names[:_NAMED]
    ]
    more = [f"{len(names) - _NAMED:,} more"] if len(names) > _NAMED else []
    return ", ".join([*shown_names, *more])


def misspelt(here: Layout, wanted: Iterable[str]) -> list[tuple[str, str]]:
    """Optional columns that are absent while a column of nearly the same name is ignored."""
    pairs = []
    for name in wanted:
        if name not in here.found:
            near = get_close_matches(name, here.ignored, n=1, cutoff=0.8)
            pairs += [(name, near[0])] if near else []
    return pairs
