"""Somebody who wants to know about few, and has all that leaves the store: for docs/privacy.md.

Random batches are audited through Dagster, and read back from the published copy, the page,
exports, what commands print and write, and Dagster's events.  Every number goes into a linear
program; what it pins down of slices and groups of too few queries or items is found, as is every
name, id and value of them that stands anywhere.

Needs scipy, which the tests need.  Not here: what is left out, and why (``pipeline.privacy``).
"""

import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from datetime import date, timedelta
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

import click
import dagster as dg
import duckdb
import yaml
from click.testing import CliRunner
from dagster._serdes import serialize_value

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "helpers"))

from measured import fill, table
from stores import LENIENT, deliver
from suppressed_tables import Attacker, List, Number, Tables

from assets.definitions import definitions
from pipeline.cli.main import main as evenrank
from pipeline.privacy.small_cells import ALL, Place, hidden
from pipeline.settings.labels import JOIN
from pipeline.settings.load import load_settings
from pipeline.store.paths import store_of

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "privacy.md"
_EXACT = 12
"""Signs of a number that is no other by chance."""
Cell = tuple[Place, str, str]


@dataclass
class World:
    """A store's worth of random days, its settings, and what there is to find in it."""

    days: dict[str, Tables]
    settings: dict[str, Any]
    k: int


@dataclass
class Found:
    """What was looked for, and what of it was found."""

    sought: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)

    def add(self, what: str, sought: int, found: int) -> None:
        self.sought[what] += sought
        self.found[what] += found


def world(draw: Random, days: int) -> World:
    """Some people in many lists; stars who are all of their group on a device; groups of few."""
    k = draw.randint(3, 6)
    slices = ("device", "shop")[: draw.randint(1, 2)]
    joint = draw.random() < 0.5
    people = [
        (f"person-{n}-id", draw.choice("FFM"), draw.choice("xxyz"))
        for n in range(draw.randint(12, 60))
    ]
    stars = {device: draw.sample(people, draw.randint(1, 3)) for device in "abcd"}
    shy = draw.choice("abcd")
    first = date(2026, 1, 1)
    found = {
        (first + timedelta(at)).isoformat(): _day(draw, at, k, slices, people, stars, shy, joint)
        for at in range(days)
    }
    attributes: list[Any] = ["gender", "region", *([["gender", "region"]] if joint else [])]
    last = max(found)
    return World(
        found,
        {
            "logs": "logs/{batch}/*",
            "attributes": attributes,
            "slices": list(slices),
            "metrics": ["EXP", "nDCG"],
            "thresholds": {"EXP.MinMaxRatio": {"min": 0.95}},
            "privacy": {"min_cell": k},
            "schedule": {"start": min(found), "end": last},
            "trends": {"window": 8, "least": 4},
            "threads": 1,
            "evidence": LENIENT,
        },
        k,
    )


def _day(
    draw: Random,
    at: int,
    k: int,
    slices: tuple[str, ...],
    people: list[tuple[str, str, str]],
    stars: dict[str, list[tuple[str, str, str]]],
    shy: str,
    joint: bool,
) -> Tables:
    lists = []
    few = [
        (f"person-{at}-few-{n}-id", draw.choice("FM"), f"rare{at}")
        for n in range(draw.randint(0, k))
    ]
    for number in range(draw.choice([8, 30, 60, 90])):
        device = draw.choice("aaaabbbccd")
        parts = {"device": device, "shop": draw.choice("uuuuuvvw")}
        if draw.random() < 0.03:
            parts["device"] = f"nook{at}"
        pool = stars[device] if device == shy and draw.random() < 0.9 else people
        if few and draw.random() < 0.06:
            pool = [*few, *people[:3]]
        shown = draw.sample(pool, min(draw.randint(1, 4), len(pool)))
        lists.append(
            List(
                {name: parts[name] for name in slices},
                tuple((gender, region) for _, gender, region in shown),
                tuple(name for name, *_ in shown),
                f"query-{draw.randrange(60)}-id"
                if draw.random() < 0.5
                else f"query-{at}-{number}-id",
            )
        )
    attributes = ("gender", "region", *(["gender*region"] if joint else []))
    return Tables(tuple(lists), slices, attributes)


def write(folder: Path, of: World) -> Path:
    """Logs and settings of a world; returns the settings' file."""
    for day, tables in of.days.items():
        rows = [
            {
                "list_id": f"list-{number}-id",
                "query_id": each.query,
                "item_id": item,
                "rank": rank,
                "relevance": (rank * 7 + number) % 2,
                "gender": gender,
                "region": region,
                **each.slices,
            }
            for number, each in enumerate(tables.lists)
            for rank, (item, (gender, region)) in enumerate(
                zip(each.items, each.rows, strict=True), start=1
            )
        ]
        deliver(folder, rows, batch=day)
    path = folder / "audit.yaml"
    path.write_text(yaml.safe_dump(of.settings), encoding="utf-8")
    return path


def events(file: Path, of: World) -> tuple[str, dict[str, dict[Number, int]]]:
    """Everything that Dagster keeps of a run over all days; and the counts that it shows."""
    days = sorted(of.days)
    with dg.DagsterInstance.ephemeral() as instance, redirect_stderr(StringIO()):
        result = (
            definitions(file)
            .resolve_job_def("audit")
            .execute_in_process(
                instance=instance,
                tags={
                    "dagster/asset_partition_range_start": days[0],
                    "dagster/asset_partition_range_end": days[-1],
                },
                raise_on_error=False,
                run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            )
        )
        failed = [event for event in result.all_events if event.is_step_failure]
        assert result.success, [event.step_failure_data.error for event in failed]
        text = "\n".join(serialize_value(entry) for entry in instance.all_logs(result.run_id))
    counts: dict[str, dict[Number, int]] = {day: {} for day in days}
    for event in result.all_events:
        if event.is_step_materialization and event.asset_key.to_user_string() == "ranking_log":
            said = event.materialization.metadata
            for what, name in (("lists", "lists"), ("rows", "dagster/row_count")):
                if name in said:
                    counts[str(event.partition)][what, ALL, "", ""] = said[name].value
    return text, counts


def printed(file: Path, of: World) -> Iterator[tuple[str, str]]:
    """What commands print and write."""
    days = sorted(of.days)
    runner = CliRunner()
    summary = file.parent / "summary.json"
    batches = [word for day in days for word in ("--batch", day)]
    log = next((file.parent / "logs" / days[-1]).iterdir())
    last = ("--batch", days[-1])
    for words in (
        ("run", *batches, "--summary", str(summary), "--no-notify"),
        ("run", *batches, "--json", "--no-notify"),
        ("run", *last, "--force", "--log", "--no-notify"),
        ("run", *last, "--force", "--no-notify", "--fail-on", "breach"),
        ("history", "--from", days[0], "--json"),
        ("history", "--from", days[0], "--format", "csv"),
        ("history", "--trend"),
        ("alerts", "--all"),
        ("explain", *last, "--score", "EXP.MinMaxRatio"),
        ("explain", *last, "--score", "EXP.MinMaxRatio", "--attribute", "region", "--json"),
        ("compare", days[-2], days[-1], "--json"),
        ("compare", days[-2], days[-1]),
        ("score", str(log)),
        ("score", str(log), "--json"),
        ("check", str(log)),
        ("check", str(log), "--json"),
    ):
        ended = runner.invoke(evenrank, [*words, "--config", str(file)])
        assert ended.exception is None or isinstance(ended.exception, SystemExit), ended.exception
        yield " ".join(words[:1] + words[-1:]), ended.output
    yield "summary", summary.read_text("utf-8")


def copied(path: Path) -> tuple[str, dict[str, dict[Number, int]]]:
    """Everything in the published copy as text; and its counts by batch."""
    counts: dict[str, dict[Number, int]] = {}
    texts = []
    with duckdb.connect(str(path), read_only=True) as connection:

        def rows(query: str) -> list[dict[str, Any]]:
            return list(connection.sql(query).to_arrow_table().to_pylist())

        for (name,) in connection.sql("SELECT name FROM (SHOW TABLES)").fetchall():
            texts += [json.dumps(row, default=str) for row in rows(f'FROM "{name}"')]
        for row in rows("FROM v_batches"):
            here = counts.setdefault(row["batch"], {})
            _note(here, ALL, "", "", row, lists="lists", rows_accepted="rows")
        scores = rows("FROM v_history")
        groups = rows("FROM v_groups")
    _read_scores(counts, scores)
    for row in groups:
        place = Place(row["slice"], row["slice_value"])
        key = (place, row["attribute"], row["group_value"])
        _note(counts[row["batch"]], *key, row, n="rows", lists="lists", queries="queries")
    return "\n".join(texts), counts


def _read_scores(counts: dict[str, dict[Number, int]], scores: list[dict[str, Any]]) -> None:
    for row in scores:
        place = Place(row["slice"], row["slice_value"])
        here = counts.setdefault(row["batch"], {})
        _note(here, place, "", "", row, rows="rows", lists="lists", queries="queries")


def _note(
    into: dict[Number, int], place: Place, attribute: str, group: str, row: Any, **said: str
) -> None:
    for name, what in said.items():
        if row[name] is not None:
            known = into.setdefault((what, place, attribute, group), row[name])
            assert known == row[name], (place, attribute, group, what, known, row[name])


def _with_zeros(tables: Tables, counts: dict[Number, int]) -> dict[Number, int]:
    """Of blocks that are told, groups that are not there have nothing."""
    told = {(place, attribute) for _, place, attribute, _ in counts if attribute}
    return counts | {
        ("rows", place, attribute, group): 0
        for place, attribute in told
        for group in tables.groups(attribute)
        if ("rows", place, attribute, group) not in counts
    }


def _kind(attribute: str) -> str:
    if not attribute:
        return "slices of a day"
    return "groups of intersections, of a day" if JOIN in attribute else "groups of a day"


def _cells(numbers: Any) -> set[Cell]:
    return {number[1:] for number in numbers}


def attack(of: World, known: dict[str, dict[Number, int]], into: Found) -> None:
    """Solve for what is about few, day by day, and add it up over windows of days."""
    pinned: dict[str, set[Cell]] = {}
    for day, tables in of.days.items():
        small = tables.small(of.k)
        numbers = _with_zeros(tables, known.get(day, {}))
        solved = Attacker(tables, numbers.items()).pinned(small) if small else []
        pinned[day] = _cells(solved)
        sought = Counter(_kind(attribute) for _, attribute, _ in _cells(small))
        found = Counter(_kind(attribute) for _, attribute, _ in pinned[day])
        for kind, count in sought.items():
            into.add(kind, count, found[kind])
        by_queries = hidden(*_query_sizes(tables), of.k)
        before = Attacker(tables, tables.published(by_queries)).pinned(small) if small else []
        into.add("the same, were queries alone counted", len(_cells(small)), len(_cells(before)))
    _windows(of, pinned, into)


def _query_sizes(tables: Tables) -> Any:
    return (
        {place: tables.people[place, "", ""][0] for place in tables.places},
        {
            block: {
                group: tables.people[block.place, block.attribute, group][0] for group in groups
            }
            for block, groups in tables.cells.items()
        },
    )


def _windows(of: World, pinned: dict[str, set[Cell]], into: Found) -> None:
    """Cells of several days that are about few in all: found if they are on each of them."""
    days = sorted(of.days)
    who = {day: _who(tables) for day, tables in of.days.items()}
    for width in (2, 3, 7, len(days)):
        for start in range(len(days) - width + 1):
            window = days[start : start + width]
            people: dict[Cell, tuple[set[str], set[str]]] = {}
            for day in window:
                for cell, (queries, items) in who[day].items():
                    both = people.setdefault(cell, (set(), set()))
                    both[0].update(queries)
                    both[1].update(items)
            few = [cell for cell, both in people.items() if min(map(len, both)) < of.k]
            found = [
                cell
                for cell in few
                if all(cell in pinned[day] for day in window if cell in who[day])
            ]
            into.add("slices and groups of windows of days", len(few), len(found))


def _who(tables: Tables) -> dict[Cell, tuple[set[str], set[str]]]:
    found: dict[Cell, tuple[set[str], set[str]]] = {}
    for each in tables.lists:
        places = [ALL, *(Place(name, value) for name, value in each.slices.items())]
        for item, row in zip(each.items, each.rows, strict=True):
            cells = [("", "")]
            cells += [(name, JOIN.join(row[n] for n in at)) for name, at in tables.columns.items()]
            for place in places:
                for cell in cells:
                    both = found.setdefault((place, *cell), (set(), set()))
                    both[0].add(each.query)
                    both[1].add(item)
    return found


def search(of: World, file: Path, texts: dict[str, str], into: Found) -> None:
    """Look for names, ids and values of few in everything."""
    names = set()
    for tables in of.days.values():
        for (place, attribute, group), sizes in tables.people.items():
            if min(sizes) < of.k and attribute in ("region",) and place == ALL:
                names.update([group] if group.startswith("rare") else [])
            if min(sizes) < of.k and not attribute and place.slice_value.startswith("nook"):
                names.add(place.slice_value)
    ids = {item for tables in of.days.values() for each in tables.lists for item in each.items}
    ids |= {each.query for tables in of.days.values() for each in tables.lists}
    for what, pattern, wanted in (
        ("names of few", r"[a-z]+\d+", names),
        ("ids of people and queries", r"(?:person|query)-[\w-]+-id", ids),
        ("values of few", r"-?\d[\d.e+-]*", set(_values(of, file))),
    ):
        seen = {name: wanted & set(re.findall(pattern, text)) for name, text in texts.items()}
        for name, here in seen.items():
            if here:
                click.echo(f"  found in {name}: {sorted(here)}", err=True)
        into.add(what, len(wanted), len(set().union(*seen.values())))


def _values(of: World, file: Path) -> Iterator[str]:
    """Values of groups of few that no cell that is told has as well."""
    store = store_of(load_settings(file))
    with duckdb.connect(str(store.dashboard), read_only=True) as connection:
        told = {
            value
            for query in ("SELECT value FROM v_groups", "SELECT value FROM v_history")
            for (value,) in connection.sql(query).fetchall()
        }
    with duckdb.connect(str(store.history), read_only=True) as connection:
        rows = connection.sql(
            "SELECT batch, slice, slice_value, attribute, group_value, value FROM group_history"
        ).fetchall()
    for batch, name, part, attribute, group, value in rows:
        sizes = of.days[batch].people.get((Place(name, part), attribute, group))
        if sizes and min(sizes) < of.k and value not in told and len(repr(value)) >= _EXACT:
            yield repr(value)


def merged(*known: dict[str, dict[Number, int]]) -> dict[str, dict[Number, int]]:
    """What several sources tell; they agree."""
    every: dict[str, dict[Number, int]] = {}
    for source in known:
        for day, counts in source.items():
            here = every.setdefault(day, {})
            for number, count in counts.items():
                assert here.setdefault(number, count) == count, (day, number)
    return every


def attacked(seed: int, days: int) -> Found:
    """What is sought and found in one store."""
    into, of = Found(), world(Random(seed), days)
    with tempfile.TemporaryDirectory() as folder:
        file = write(Path(folder), of)
        texts = {}
        texts["Dagster"], of_dagster = events(file, of)
        texts |= dict(printed(file, of))
        store = store_of(load_settings(file))
        texts["copy"], of_copy = copied(store.dashboard)
        texts["page"] = store.report.read_text("utf-8")
        exported: dict[str, dict[Number, int]] = {}
        _read_scores(exported, json.loads(texts["history --json"])["scores"])
        attack(of, merged(of_dagster, of_copy, exported), into)
        search(of, file, texts, into)
    return into


@click.command()
@click.option("--stores", default=30, help="Stores [30].")
@click.option("--days", default=20, help="Days of each [20].")
@click.option("--seed", default=1, help="Seed [1].")
@click.option("--jobs", default=1, help="Stores at once [1].")
@click.option("--quick", is_flag=True, help="One store of four days.")
@click.option("--document", type=click.Path(path_type=Path), default=DOCUMENT)
def main(stores: int, days: int, seed: int, jobs: int, quick: bool, document: Path) -> None:
    """Attack random stores, and write the table of docs/privacy.md."""
    into = Found()
    if quick:
        stores, days = 1, 4
    seeds = [1000 * seed + number for number in range(stores)]
    with ProcessPoolExecutor(jobs, get_context("spawn")) as workers:
        each_store = workers.map(attacked, seeds, [days] * stores)
        for number, store in enumerate(each_store, start=1):
            into.sought += store.sought
            into.found += store.found
            click.echo(f"{number} of {stores}: {into}", err=True)
    measured = table(
        ["what is about too few", "sought", "found"],
        [[what, f"{count:,}", f"{into.found[what]:,}"] for what, count in into.sought.items()],
    )
    fill(document, [("few people", measured)])


if __name__ == "__main__":
    main()
