"""Results as tables: of what was kept, and of nothing else."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from measured import table

from speed.data import FULL
from speed.entries import ENTRIES, SIZES
from speed.goals import GOALS, Goal, beside, gigabytes, numbers, short, spent, spread
from speed.rounds import Results

HEAD = """# Speed

Made by `make bench` from `results.json`; [docs/performance.md](../docs/performance.md) says what is
measured and how. Numbers are medians over rounds with their range. The scan is one query of DuckDB
over the six columns of the same file, with a count and five sums per group.
"""
OF_PEERS = """
Both get the same lists, and the last column says how far the numbers that they return are apart.
FairRankTune gets its frames ready made and is asked for one aggregation of nine metrics; here a
file is read and checked, and the same metrics get all their aggregations.
"""
MET = ("beyond", "met", "not met")
GROWTH = (
    ("rows x10", "rows-tenth", "rows-hundredth"),
    ("rows x10 again", "rows-all", "rows-tenth"),
    ("lists of 100 against 10", "length-100", "length-10"),
    ("lists of 1,000 against 100", "length-1000", "length-100"),
    ("20 groups against 2", "groups-20", "groups-2"),
    ("200 groups against 20", "groups-200", "groups-20"),
    ("100 slice values against 10", "values-100", "slices-1"),
    ("1 slice against none", "slices-1", "plain"),
    ("2 slices against none", "slices-2", "plain"),
    ("3 slices against none", "slices-3", "plain"),
    ("2 attributes against 1", "attributes-2", "plain"),
    ("4 attributes against 1", "attributes-4", "plain"),
)
"""What is compared with what."""
ADDED = {"slices-1": 1, "slices-2": 2, "slices-3": 3, "attributes-2": 1, "attributes-4": 3}
"""Slices or attributes that an entry has more than the plain one."""


def main_size(kept: Mapping[str, Results]) -> str:
    """The size that a page is about: the usual one, unless there is only another."""
    return "10M" if "10M" in kept or not kept else next(iter(kept))


def goals(kept: Mapping[str, Results]) -> str:
    """Each goal beside what was measured."""
    size, rows = main_size(kept), []
    for goal in GOALS:
        results = kept.get(goal.size if size == "10M" and goal.size else size, {})
        measured, met = _verdict(goal, results)
        if met in MET and size != "10M":
            # The goals are about more rows than these.
            met = ""
        rows.append([goal.text, goal.said(goal.reach), goal.said(goal.beyond), measured, met])
    return table(["goal", "to reach", "beyond", "measured", ""], rows)


def _verdict(goal: Goal, results: Results) -> tuple[str, str]:
    if "failed" in results.get(goal.entry, {}):
        return "-", "failed"
    values = numbers(results, goal.entry, goal.number)
    if not values:
        return "-", "not measured"
    return spread(values), goal.met(statistics.median(values))


def measurements(results: Results) -> str:
    """Every entry that has numbers: rows, seconds alone and with the process, rates, memory."""
    rows = []
    for name in _with_numbers(results):
        found = results[name]["rounds"]
        seconds = [spent(each) for each in found]
        # Of a difference, or beside another library, these say nothing.
        telling = ENTRIES[name].task not in ("intervals", "fairranktune", "quality", "start")
        rate = statistics.median(found[0]["rows"] / each for each in seconds)
        process = statistics.median(each["whole"] for each in found)
        floors = [other for other in ENTRIES[name].against if other.startswith("floor")]
        rows.append(
            [
                ENTRIES[name].text,
                f"{found[0]['rows']:,}",
                spread(seconds),
                short(process) if telling else "",
                spread(numbers(results, name, beside(floors[0]))) if floors else "",
                f"{rate:,.0f}" if telling else "",
                f"{max(map(gigabytes, found)):.2f}",
                str(len(found)),
            ]
        )
    heads = [
        "", "rows", "CPU s", "with start", "times the scan", "rows per CPU s", "peak GB", "rounds",
    ]  # fmt: skip
    return table(heads, rows)


def steps(results: Results) -> str:
    """What the steps of scoring files and of a batch take, as multiples of the scan."""
    rows = []
    for name in _with_numbers(results):
        entry = ENTRIES[name]
        if entry.suite not in ("ten", "run") or not entry.against:
            continue
        floor = entry.against[0]
        found = [each for each in results[name]["rounds"] if "steps" in each]
        for step in found[0]["steps"] if found else ():
            values = [each["steps"][step] / each["against"][floor] for each in found]
            seconds = statistics.median(each["steps"][step] for each in found)
            share = statistics.median(each["steps"][step] / each["cpu"] for each in found)
            rows.append([f"{entry.text}: {step}", short(seconds), spread(values), f"{share:.0%}"])
    return table(["step", "CPU s", "times the scan", "share"], rows)


def growth(results: Results) -> str:
    """What ten times as much takes, and what one more slice or attribute adds."""
    rows = []
    for text, name, other in GROWTH:
        values = numbers(results, name, beside(other))
        if not values:
            rows.append([text, "-", "-", ""])
            continue
        held = [
            statistics.median(numbers(results, each, gigabytes) or [float("nan")])
            for each in (name, other)
        ]
        added = ""
        if name in ADDED:
            added = spread(
                [
                    (each["cpu"] - each["against"]["plain"])
                    / each["against"]["floor-text"]
                    / ADDED[name]
                    for each in results[name]["rounds"]
                ]
            )
        rows.append([text, spread(values), short(held[0] / held[1]), added])
    heads = ["", "CPU seconds", "memory", "each one adds, in scans"]
    return table(heads, rows)


def peers(results: Results) -> str:
    """Other libraries on the same lists."""
    rows = []
    for name in _with_numbers(results):
        if ENTRIES[name].suite != "peers":
            continue
        found = results[name]["rounds"]
        for kind in ("", ", with conversion"):
            if f"ours{kind}" not in found[0]["steps"]:
                continue
            here, there = (
                [each["rows"] / each["steps"][who + kind] for each in found]
                for who in ("ours", "theirs")
            )
            rows.append(
                [
                    ENTRIES[name].text + kind,
                    f"{found[0]['rows']:,}",
                    f"{statistics.median(there):,.0f}",
                    f"{statistics.median(here):,.0f}",
                    spread([a / b for a, b in zip(here, there, strict=True)]),
                    f"{max(each['gap'] for each in found):.1e}",
                ]
            )
    heads = ["", "rows", "their rows per CPU s", "rows per CPU s here", "times", "largest gap"]
    return table(heads, rows)


def _with_numbers(results: Results) -> list[str]:
    return [name for name in ENTRIES if results.get(name, {}).get("rounds")]


def _origin(kept: Mapping[str, Results]) -> str:
    """Machine, versions, date and commit, in one line for all that was measured alike."""
    lines = []
    alike: dict[str, list[str]] = {}
    said: dict[str, Mapping[str, Any]] = {}
    for size, results in kept.items():
        for name, entry in results.items():
            key = str(sorted(entry["stamp"].items(), key=str))
            alike.setdefault(key, []).append(f"{size}: {name}")
            said[key] = entry["stamp"]
    for key, names in sorted(alike.items(), key=lambda each: -len(each[1])):
        stamp = said[key]
        machine, versions = stamp["machine"], stamp["versions"]
        of = "" if len(alike) == 1 else f" {_listed(names)}:"
        lines.append(
            f"-{of} {stamp['date']}, commit {stamp['commit']}, {machine['cpu']}, "
            f"{machine['cores']} cores, {machine['memory_gb']} GB, {machine['system']}; "
            + ", ".join(f"{name} {number}" for name, number in versions.items())
        )
    return "\n".join(lines) or "Nothing is measured yet."


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 6 else f"{len(names)} entries"


def _failures(kept: Mapping[str, Results]) -> Iterable[str]:
    for size, results in kept.items():
        for name, entry in results.items():
            if "failed" in entry:
                yield f"- {name}, {size}: `{entry['failed']}`"


def page(kept: Mapping[str, Results], plot: str) -> str:
    """The whole page; ``plot`` is where its picture lies."""
    size = main_size(kept)
    results = kept.get(size, {})
    rows = SIZES[size]
    parts = [HEAD, _origin(kept), f"\n## Goals\n\n{rows:,} rows, unless said.\n", goals(kept)]
    if rows != FULL:
        parts.append(f"\nThe goals are about {FULL:,} rows; these are {rows:,}.")
    failures = list(_failures(kept))
    if failures:
        parts += ["\n## Failed\n", *failures]
    parts += ["\n## Measurements\n", measurements(results)]
    for other in kept:
        if other != size:
            parts += [f"\n### {SIZES[other]:,} rows\n", measurements(kept[other])]
    parts += ["\n## Steps\n", steps(results), "\n## Other libraries\n", peers(results)]
    parts.append(OF_PEERS.rstrip())
    parts += ["\n## Growth\n", growth(results), f"\n![Growth]({plot})", ""]
    return "\n".join(parts)
