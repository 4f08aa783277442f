"""Which column of a delivered file holds what: names of the contract to names in the file."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from pipeline.errors import DataRefused, several
from pipeline.readers import Source
from pipeline.settings import Settings
from schemas.rules import LOGGED, REQUIRED


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
    by_name = {name: name for name in source.columns}
    found: dict[str, str] = {}
    for name in wanted:
        delivered = settings.columns.get(name, name)
        if delivered in by_name:
            found[name] = delivered
    return Layout(found, tuple(name for name in source.columns if name not in found.values()))


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
    for source in sources:
        here = layout(source, settings, [*logged, *settings.slices, *settings.attribute_columns])
        missing = [
            name
            for name in (*REQUIRED, *settings.slices, *settings.attribute_columns)
            if name not in here.found and name not in supplied
        ]
        if "rank" not in here.found and "score" not in here.found:
            missing.append("rank")
        missing += [name for name in settings.columns if name in logged and name not in here.found]
        for name in dict.fromkeys(missing):
            problems.append(f"{source.shown}: {_absent(name, here, settings)}")
        layouts.append(here)
    held = [frozenset(each.found) for each in layouts]
    if not problems and len(set(held)) > 1:
        differing = sorted(frozenset.union(*held) - frozenset.intersection(*held))
        problems.append(
            f"the files differ in columns: {', '.join(differing)} is only in some of them"
        )
    if problems:
        advice = "columns: in the settings maps names of the contract to names in the log."
        raise DataRefused(several("the log lacks columns", problems, advice))
    return layouts


def _absent(name: str, here: Layout, settings: Settings) -> str:
    delivered = settings.columns.get(name, name)
    text = f"no column {delivered!r}"
    if delivered != name:
        text += f" (for {name})"
    folded = {name.casefold(): name for name in here.ignored}
    near = get_close_matches(delivered.casefold(), folded, n=1)
    if near:
        return f"{text}; did you mean {folded[near[0]]!r}?"
    return f"{text}; the file has {', '.join(map(repr, here.columns))}"


def misspelt(here: Layout, wanted: Iterable[str]) -> list[tuple[str, str]]:
    """Optional columns that are absent while a column of nearly the same name is ignored."""
    pairs = []
    for name in wanted:
        if name not in here.found:
            near = get_close_matches(name, here.ignored, n=1, cutoff=0.8)
            pairs += [(name, near[0])] if near else []
    return pairs
