"""What is measured: each entry is one task on one log, beside what it is compared with."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

SIZES = {"tiny": 2_000, "small": 100_000, "10M": 10_000_000, "100M": 100_000_000}
"""Rows by size; the tiny one is there to see that all runs."""
STARTS = 9
"""Runs of a command that is over in a second; their clock is what counts."""
RESAMPLES = 1000
MEMORY_LIMIT = "1GB"
"""What DuckDB may hold where the memory of a large batch is measured."""
FAMILIES = ("quality", "top_k", "list_native")


@dataclass(frozen=True)
class Entry:
    """One thing to measure.

    ``against`` are entries whose numbers of the same round go with it; they run before it,
    and take part in as many rounds or more.  ``rounds`` replaces the number of rounds that was
    asked for, where it is not None, and ``most`` bounds it.  ``sizes`` are those at which it runs
    when nothing is named; it can be named at every size.
    """

    name: str
    suite: str
    text: str
    task: str
    log: str
    given: Mapping[str, Any] = field(default_factory=dict)
    against: tuple[str, ...] = ()
    rounds: int | None = None
    most: int | None = None
    sizes: tuple[str, ...] = ("tiny", "small", "10M")
    peer: str | None = None
    """The environment of its own that it runs in."""


def _floors() -> Iterable[Entry]:
    for log, text in (
        ("integer", "integer ids"),
        ("text", "text ids"),
        ("shuffled", "text ids, shuffled"),
    ):
        said = {"text": log != "integer"}
        yield Entry(f"floor-{log}", "scan", f"floor, {text}", "floor", log, said, sizes=())


def _scans() -> Iterable[Entry]:
    yield Entry(
        "histogram", "scan", "rank histogram, one query", "histogram", "integer",
        against=("floor-integer",),
    )  # fmt: skip
    for log, text in (
        ("integer", "integer ids"),
        ("text", "text ids"),
        ("shuffled", "text ids, shuffled"),
    ):
        floor = (f"floor-{log}",)
        yield Entry(f"decode-{log}", "scan", f"decoded alone, {text}", "decode", log, against=floor)
        yield Entry(f"ten-{log}", "ten", f"ten metrics, {text}", "score", log, against=floor)
        yield Entry(f"check-{log}", "check", f"rules and gate, {text}", "check", log, against=floor)


def _runs() -> Iterable[Entry]:
    floor = ("floor-text",)
    lines = {"lines": ["threads: 2"]}
    yield Entry("run", "run", "evenrank run, whole process", "run", "text", lines, floor)
    yield Entry("steps", "run", "the same, step by step", "steps", "text", lines, floor)


def _intervals() -> Iterable[Entry]:
    for log, lists in (("lists-1k", "1,000"), ("lists-10k", "10,000"), ("lists-100k", "100,000")):
        yield Entry(
            f"intervals-{log[6:]}", "intervals",
            f"intervals, {RESAMPLES:,} resamples, {lists} lists of 20",
            "intervals", log, {"resamples": RESAMPLES},
        )  # fmt: skip


def _starts() -> Iterable[Entry]:
    score = ["score", "FILE", "--attribute", "grp", "--quiet", "--json"]
    for name, text, arguments in (
        ("help", "evenrank --help", ["--help"]),
        ("score-1000", "evenrank score, 1,000 rows", score),
    ):
        given = {"arguments": arguments}
        yield Entry(name, "start", text, "start", "thousand", given, rounds=STARTS)


def _growth() -> Iterable[Entry]:
    def entry(name: str, text: str, log: str, *before: str, **settings: Any) -> Entry:
        against = ("floor-text", *before)
        return Entry(name, "growth", text, "score", log, {"settings": settings}, against, most=3)

    yield entry("rows-hundredth", "a hundredth of the rows", "hundredth")
    yield entry("rows-tenth", "a tenth of the rows", "tenth", "rows-hundredth")
    yield entry("rows-all", "all rows", "text", "rows-tenth")
    yield entry("length-10", "lists of 10", "short")
    yield entry("length-100", "lists of 100", "text", "length-10")
    yield entry("length-1000", "lists of 1,000", "long", "length-100")
    yield entry("plain", "4 groups, 1 attribute, no slices", "wide")
    yield entry("groups-2", "2 groups", "wide", attributes=["grp2"])
    yield entry("groups-20", "20 groups", "wide", "groups-2", "plain", attributes=["grp20"])
    yield entry("groups-200", "200 groups", "wide", "groups-20", attributes=["grp200"])
    for count in (1, 2, 3):
        names = [f"slice{j}" for j in range(1, count + 1)]
        text = f"{count} slice{'s' if count > 1 else ''} of 10 values"
        yield entry(f"slices-{count}", text, "wide", "plain", slices=names)
    yield entry(
        "values-100", "1 slice of 100 values", "wide", "slices-1", "plain", slices=["slice100"]
    )
    for count in (2, 4):
        names = ["grp", *(f"attribute{j}" for j in range(2, count + 1))]
        yield entry(f"attributes-{count}", f"{count} attributes", "wide", "plain", attributes=names)


def _peers() -> Iterable[Entry]:
    yield Entry(
        "fairranktune", "peers", "FairRankTune 0.0.7, orders of one pool", "fairranktune", "pool",
        most=5, peer="fairranktune",
    )  # fmt: skip
    for name in ("pytrec_eval", "ranx"):
        yield Entry(
            f"quality-{name}", "peers", f"quality metrics, {name}", "quality", "tenth",
            {"library": name}, peer="quality",
        )  # fmt: skip


def _on_request() -> Iterable[Entry]:
    for log in ("text", "shuffled"):
        yield Entry(
            f"memory-{log}", "memory", f"ten metrics, {log}, memory_limit {MEMORY_LIMIT}", "score",
            log, {"settings": {"memory_limit": MEMORY_LIMIT}}, (f"floor-{log}",), most=1,
            sizes=("100M",),
        )  # fmt: skip
    yield Entry("jobs", "jobs", "backfill of 30 batches", "jobs", "tenth", {"days": 30}, most=3,
                sizes=())  # fmt: skip
    for name in FAMILIES:
        settings = {"settings": {"metrics": [name]}}
        yield Entry(f"family-{name}", "families", f"metrics of {name}", "score", "text", settings,
                    ("floor-text",), sizes=())  # fmt: skip


ENTRIES = {
    entry.name: entry
    for made in (
        _floors, _scans, _runs, _intervals, _starts, _growth, _peers, _on_request,
    )
    for entry in made()
}  # fmt: skip
SUITES = tuple(dict.fromkeys(entry.suite for entry in ENTRIES.values()))


def chosen(size: str, only: Iterable[str]) -> list[Entry]:
    """Entries to run, what they are compared with before them; LookupError names what is none."""
    asked = list(only)
    unknown = [name for name in asked if name not in ENTRIES and name not in SUITES]
    if unknown:
        raise LookupError(", ".join(unknown))
    names = [
        entry.name
        for entry in ENTRIES.values()
        if (entry.name in asked or entry.suite in asked if asked else size in entry.sizes)
    ]
    wanted: dict[str, None] = {}

    def add(name: str) -> None:
        for other in ENTRIES[name].against:
            add(other)
        wanted[name] = None

    for name in names:
        add(name)
    return [ENTRIES[name] for name in wanted]
