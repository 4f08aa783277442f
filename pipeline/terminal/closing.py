"""The end of a run over many batches: counts, what stands out, files, what to try next.

Not here: single batches and tables of scores (``printing``).
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metrics import WHOLE
from pipeline.formatting.evidence import apart_texts, thin_text
from pipeline.formatting.looks import signs_for, styled
from pipeline.formatting.numbers import counted
from pipeline.history.queries import breaches, judged_slices, verdicts
from pipeline.monitoring.alerts import alerts, gated_batches
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of
from pipeline.terminal.conclusions import print_conclusion
from pipeline.terminal.printing import BREACH_COLUMNS, console, print_scores, printable
from pipeline.terminal.series import print_watched
from schemas.columns import Row
from schemas.judged import group_names

if TYPE_CHECKING:
    from pipeline.runs.outcome import Outcome

_SHOWN = 12  # lines of a table: what follows it stays on the same screen
_APART_NAMED = 3  # sentences on batches and slices that disagree, of two lines each
_GATED_NAMED = 4  # names of gated batches that fit into a line or two
_WINDOWS_NAMED = 4
NO_THRESHOLDS = (
    "No thresholds are set, so nothing was judged; `evenrank suggest` proposes some, with reasons."
)
_UNTOLD = {
    "composition": "beyond a threshold, as lists in random order would be: not for their order",
    "undefined": "with a threshold, but without a value",
    "insufficient": "with a threshold, but with too little evidence for a verdict",
}
"""Verdicts that are neither ok nor a breach, and what that means."""


def untold_lines(judged: Mapping[str, int]) -> list[str]:
    """What is neither ok nor a breach in whole batches, from how many scores have each status."""
    return [
        f"[yellow]{counted(judged[status], 'score')} of whole batches {why}[/] (status {status})."
        for status, why in _UNTOLD.items()
        if judged.get(status)
    ]


def unjudged_lines(waiting: Sequence[Row], encoding: str) -> list[str]:
    """That no score of a batch could be judged, and which windows of several days could be."""
    windows = [row["text"].split("\n")[0] for row in waiting if row["kind"] == "window"]
    if not windows:
        return ["No score with a threshold could be judged."]
    sign = signs_for(encoding)["breach"]
    said = [styled("breach", f"{sign} {printable(text)}") for text in windows[:_WINDOWS_NAMED]]
    if len(windows) > _WINDOWS_NAMED:
        said.append(f"and {len(windows) - _WINDOWS_NAMED:,} more; `evenrank alerts` lists them")
    return [
        "No score of a batch alone could be judged. Over several days together:",
        *(f"  {line}" for line in said),
    ]


def closing(settings: Settings, outcomes: "Sequence[Outcome]", command: str = "") -> None:
    """The end of a run over many batches: counts, what stands out, files, what to try next."""
    out = console()
    counts = {
        status: sum(outcome.status == status for outcome in outcomes)
        for status in ("done", "unchanged", "no_data", "refused", "failed")
    }
    said = ", ".join(f"{n} {status.replace('_', ' ')}" for status, n in counts.items() if n)
    out.print(f"\n[bold]{counted(len(outcomes), 'batch')}[/]: {said or 'nothing to do'}")
    keys = [outcome.batch for outcome in outcomes]
    print_conclusion(out, settings, keys)
    breached, judged = breaches(settings, keys), verdicts(settings, keys, told=True)
    if breached:
        out.print()
        print_scores(out, breached[:_SHOWN], "Beyond their thresholds", BREACH_COLUMNS)
        if len(breached) > _SHOWN:
            out.print(f"  and {len(breached) - _SHOWN:,} more")
        for line in beside_breaches(settings, breached[:_SHOWN]):
            out.print(line)
    elif judged.get("ok") or judged.get("composition"):
        told = " that may be told" if settings.privacy.min_cell > 1 else ""
        out.print(f"No score{told} breaches its threshold.")
    elif settings.thresholds:
        for line in unjudged_lines(alerts(settings), out.encoding):
            out.print(line)
    else:
        out.print(NO_THRESHOLDS)
    print_watched(out, settings, keys)
    for line in untold_lines(judged):
        out.print(line)
    if gated := gated_batches(settings, keys):
        out.print(
            f"[yellow]{counted(len(gated), 'batch')} not judged[/], as a data gate is closed: "
            f"{', '.join(gated[:_GATED_NAMED])}{', ...' if len(gated) > _GATED_NAMED else ''}."
        )
    if waiting := alerts(settings):
        out.print(f"[red]{counted(len(waiting), 'alert')} open[/]; `evenrank alerts` lists them.")
    store = store_of(settings)
    out.print()
    for name, path in (
        ("History", store.history),
        ("Dashboards", store.dashboard),
        ("Page", store.report),
    ):
        if path.exists():
            out.print(f"{name:<12}{printable(_short(path))}")
    if command:
        out.print("\nNext")
        for line in _next(settings, breached, command):
            out.print(f"  {printable(line)}")


def beside_breaches(settings: Settings, breached: Sequence[Row]) -> list[str]:
    """Who is not judged in some breaches, and where whole batches and slices disagree."""
    thin = dict.fromkeys(name for row in breached for name in group_names(row["thin_groups"]))
    lines = [thin_text({"thin_groups": json.dumps(list(thin))})] if thin else []
    wholes: dict[tuple[str | None, ...], list[Row]] = {}
    for row in judged_slices(settings, breached):
        wholes.setdefault((row["batch"], row["attribute"], row["label"]), []).append(row)
    apart = [
        f"{label}{f' of {attribute}' if attribute else ''} of {batch}: {text}."
        for (batch, attribute, label), rows in sorted(wholes.items(), key=str, reverse=True)
        if rows[0]["slice"] == WHOLE
        for text in apart_texts(rows[0], rows[1:])
    ]
    lines += apart[:_APART_NAMED]
    if len(apart) > _APART_NAMED:
        lines.append(f"And {len(apart) - _APART_NAMED:,} more where batches and slices disagree.")
    return [printable(line) for line in lines]


def _next(settings: Settings, found: Sequence[Mapping[str, Any]], command: str) -> list[str]:
    first = found[0] if found else None
    config = f" --config {shlex.quote(str(command))}" if command != "audit.yaml" else ""
    about = f"--batch {first['batch']} --status breach" if first else "--slice all"
    proposals = [] if settings.thresholds else [f".venv/bin/evenrank suggest{config}"]
    return [
        f".venv/bin/evenrank history {about}{config}",
        *proposals,
        f".venv/bin/evenrank alerts --all{config}",
        f"make dev{' CONFIG=' + shlex.quote(str(command)) if config else ''}",
    ]


def _short(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
