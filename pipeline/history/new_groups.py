"""Remarks on groups that no other batch has: often known ones that somebody wrote otherwise.

Here: which they are, which known one each resembles, and what to do.  Not here: scores, which never
depend on other batches, and a group that is missing (``monitoring.missing_groups``).
"""

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from itertools import groupby

import duckdb
import yaml

from metrics import UNKNOWN, WHOLE
from pipeline.formatting.numbers import counted
from pipeline.history.opening import HISTORY_DATABASE
from pipeline.settings.audit import Settings
from pipeline.settings.group_values import folded, shown
from pipeline.settings.labels import JOIN
from pipeline.store.batch_files import DATABASE
from schemas.columns import literal

_REMARKS = 10
"""Groups of one attribute that are remarked on one by one: with more, the column is another."""
_LONGEST = 100
"""Characters of a group that is compared with others: a longer one is a text of its own."""
_CLOSE = 0.85
"""Likeness from which on one is taken for the other misspelt: one letter of six may be missing.

``male`` and ``female`` are alike by 0.8."""


def remarks_on_new_groups(
    connection: duckdb.DuckDBPyConnection, settings: Settings, batch: str
) -> tuple[str, ...]:
    """Remarks on groups of the attached batch file that no other batch has.

    Later batches count as well as earlier ones, so that days can be run in any order.
    """
    known_groups = f"{HISTORY_DATABASE}.group_history WHERE batch <> ?"
    rows = connection.execute(
        "FROM (SELECT attribute, group_value, "
        f"max(n) FILTER (slice = {literal(WHOLE)}) FROM {DATABASE}.group_history "
        f"WHERE NOT contains(attribute, {literal(JOIN)}) GROUP BY ALL) "
        f"ANTI JOIN (FROM {known_groups}) USING (attribute, group_value) "
        f"WHERE attribute IN (SELECT attribute FROM {known_groups}) ORDER BY ALL",
        [batch, batch],
    ).fetchall()
    remarks: list[str] = []
    for attribute, found in groupby(rows, key=lambda row: str(row[0])):
        new_groups = {str(group): int(n or 0) for _, group, n in found}
        if settings.privacy.min_cell > 1:
            # Which group it is, and of how few, is what a small cell keeps back.
            remarks.append(
                f"{attribute}: a group that no other batch has; "
                "if it is another way to write a known one, say so under `values` in the settings"
            )
            continue
        known = {
            str(group)
            for (group,) in connection.execute(
                f"SELECT DISTINCT group_value FROM {known_groups} AND attribute = ?",
                [batch, attribute],
            ).fetchall()
        }
        for group in list(new_groups)[:_REMARKS]:
            remarks.append(
                f"{attribute}: no other batch has the group {shown(group)} "
                f"({counted(new_groups[group], 'row')}){_advice(settings, attribute, group, known)}"
            )
        if len(new_groups) > _REMARKS:
            more = counted(len(new_groups) - _REMARKS, "more group")
            remarks.append(f"{attribute}: no other batch has {more}")
    return tuple(remarks)


def _advice(settings: Settings, attribute: str, group: str, known: Collection[str]) -> str:
    """Which known group a new one resembles and what to write, to follow the remark on it."""
    counts_as: Mapping[str, str] = settings.values.get(attribute, {})
    if group == UNKNOWN or group in settings.groups.get(attribute, ()):
        return ""
    # Groups that count as others by now are no groups any more.
    present = {counts_as.get(each, each) for each in known} - {group}
    near = resembled(group, present)
    if near is None or group in counts_as.values():
        return ""
    said = _as_yaml({attribute: {group: near}})
    return f", which resembles {shown(near)}. If they mean the same: `values: {said}`"


def _as_yaml(said: Mapping[str, Mapping[str, str]]) -> str:
    """What a settings file would say, in one line."""
    for style in (None, '"'):
        text = yaml.safe_dump(
            said,
            default_flow_style=True,
            default_style=style,
            allow_unicode=True,
            width=10_000,
        ).strip()
        # Only in double quotes are line ends written as such.
        if "\n" not in text:
            break
    return text


def resembled(group: str, known: Collection[str]) -> str | None:
    """The one of ``known`` that ``group`` may be another way to write; None where none is.

    The same but for case, width, space and what cannot be seen; or one begins with the other, of
    no more than one; or nearly the same letters.  Numbers in them are the same.

    >>> resembled("Female", ["F", "M"]), resembled("femal", ["female", "male"])
    ('F', 'female')
    >>> resembled("male", ["female"]), resembled("18-34", ["18-24"])
    (None, None)
    """
    if len(group) > _LONGEST:
        return None
    own = folded(group)
    candidates = {
        name: plain
        for name in sorted(known)
        if len(name) <= _LONGEST
        and _numbers(plain := folded(name)) == _numbers(own)
        and name != UNKNOWN
    }
    if own == UNKNOWN:
        return UNKNOWN
    for name, plain in candidates.items():
        if plain == own:
            return name
    begins = [
        name
        for name, plain in candidates.items()
        if plain and own and (plain.startswith(own) or own.startswith(plain))
    ]
    if begins:
        return begins[0] if len(begins) == 1 else None
    names = {plain: name for name, plain in candidates.items()}
    close = get_close_matches(own, names, n=1, cutoff=_CLOSE)
    return names[close[0]] if close else None


def _numbers(text: str) -> list[str]:
    return re.findall(r"\d+", text)
