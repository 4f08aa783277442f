"""Stores to draw: a month with incidents, hostile names, one batch, none, nothing, three years.

By hand, ``python tests/helpers/pages.py NAME FOLDER`` writes one with its ``audit.yaml``.
"""

import sys
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from logs import write
from stores import LENIENT, Rows, deliver, random_lists, ranking
from workers import made_once
from years import fill_years, years_lists

from pipeline.monitoring.alerts import mark
from pipeline.publish.copy import publish
from pipeline.runs.batches import backfill
from pipeline.settings.audit import Settings
from pipeline.settings.batch_keys import days
from pipeline.settings.load import load_settings
from pipeline.synthetic.marketplace import generate

Build = Callable[[Path], Settings]
MONTH = days(date(2026, 1, 1), date(2026, 1, 30))
UNFAIR, MISSING = "2026-01-19", "2026-01-24"
HOSTILE = (
    "</script><script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    "\"'><svg onload=window.pwned=1>",
    "{{7*7}}",
    "${window.pwned=1}",
    "javascript:window.pwned=1",
    "\u202egnp.exe\u202c",
    "zero\u200bwidth\u200d\ufeff",
    "n" * 300,
    "wide " * 60,
    "__proto__",
    "constructor",
    "🦊👩\u200d👩\u200d👧",
    "null",
    "__json__",
    "=cmd|' /C calc'!A0",
    "a.b[0]",
    "it's",
    "back\\slash",
    "<!--",
    "]]>",
    "&lt;b&gt;",
    "line\u2028end",
    "%s%n {0}",
)
"""Texts that harm a page, or a chart, that takes them for something else than text."""
HOSTILE_ATTRIBUTES = ("a.b[0]", "</script><script>window.pwned=1</script>", "__proto__")
HOSTILE_SLICES = (
    "<img src=x onerror=window.pwned=1>",
    'it\'s "back\\slash"',
    "constructor",
    "{{7+7}}\u202e\u200b",
)
HOSTILE_NIGHTS = days(date(2026, 1, 1), date(2026, 1, 7))
_SOME = ["EXP", "ARP", "AWRF(p=0.1)", "NDKL", "IAA", "nDCG@10", "GroupnDCG@10"]
_LIMITS = {
    "EXP.MinMaxRatio": {"min": 0.8, "attributes": ["gender", "region"]},
    "ARP.MinMaxRatio": {"min": 0.7, "attributes": ["gender", "region"], "slices": ["all"]},
}


def _audit(folder: Path, first: str, last: str | None, **said: Any) -> Settings:
    """Write audit.yaml, for batches of these nights, into ``folder``; its settings.

    Without a ``last`` night the audit goes on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "audit.yaml"
    schedule = {"start": first, "end": last}
    text = yaml.safe_dump(
        {"threads": 2, "schedule": schedule, **said}, allow_unicode=False, sort_keys=False
    )
    path.write_text(text, encoding="utf-8")
    return load_settings(path)


def _run(settings: Settings, nights: Iterable[str]) -> list[str]:
    """Audit these nights and publish; how each ended."""
    return [outcome.status for outcome in backfill(settings, [*nights])]


def month(folder: Path) -> Settings:
    """The synthetic month: its unfair day, a day with wrong rows, a missing one, two releases."""
    generate(folder, start=date(2026, 1, 1), days=len(MONTH), lists=120, items=400)
    settings = _audit(
        folder,
        MONTH[0],
        MONTH[-1],
        logs="logs/{batch}/*",
        items="items.parquet",
        attributes=["gender", "region"],
        slices=["device", "market"],
        metrics=_SOME,
        thresholds=_LIMITS,
        evidence={"resamples": 100, "noise_draws": 100},
        # The newest batch has a baseline again, although a release began a week before.
        trends={"least": 7},
    )
    found = _run(settings, MONTH)
    assert found.count("done") == len(MONTH) - 1
    mark(settings, "2026-01-08", "ranker v2")
    mark(settings, "2026-01-22", "ranker v3, candidate set of the spring")
    publish(settings)
    return settings


def _hostile_lists(night: int) -> Rows:
    """Every hostile text as a group, a slice's value and an id, some of them every night."""
    found: Rows = []
    count = len(HOSTILE)
    for at in range(2 * count):
        texts = [HOSTILE[(at + step) % count] for step in range(6)]
        rows = ranking(
            f"{HOSTILE[at % count]} {at}",
            [HOSTILE[(at * 5 + step * night) % 4] for step in range(6)],
            relevance=[(at + step + night) % 3 / 2 for step in range(6)],
            click=[(at * step) % 2 for step in range(6)],
            item_id=[f"{text} {step}" for step, text in enumerate(texts)],
        )
        for row, text in zip(rows, texts, strict=True):
            group = row.pop("gender")
            row[HOSTILE_ATTRIBUTES[0]] = text
            row[HOSTILE_ATTRIBUTES[1]] = group
            row[HOSTILE_ATTRIBUTES[2]] = HOSTILE[8 + at % 2]
            for step, name in enumerate(HOSTILE_SLICES):
                row[name] = HOSTILE[(at + step * 7) % count if step < 2 else (at + step) % 3]
            row["model_version"] = HOSTILE[min(night, 1)]
        found += rows
    return found


def hostile(folder: Path) -> Settings:
    """Names of attributes, slices, groups, lists, items and releases that try to be more."""
    settings = _audit(
        folder,
        HOSTILE_NIGHTS[0],
        HOSTILE_NIGHTS[-1],
        attributes=[*HOSTILE_ATTRIBUTES, [*HOSTILE_ATTRIBUTES[1:]]],
        slices=[*HOSTILE_SLICES],
        metrics=["EXP", "NDKL", "nDCG@10"],
        thresholds={"EXP.MinMaxRatio": {"min": 0.9}},
        evidence=LENIENT,
        trends={"window": 8, "least": 4},
        gate={"window": 6, "least": 3},
    )
    for at, night in enumerate(HOSTILE_NIGHTS):
        rows = _hostile_lists(at)
        if at == 5:
            rows = [{**row, "rank": 0} for row in rows]
        write(rows, folder / "logs" / night / f"part{HOSTILE[1].replace('/', '')}.parquet")
    found = _run(settings, HOSTILE_NIGHTS)
    assert found.count("done") == len(HOSTILE_NIGHTS) - 1
    assert found[5] == "refused"
    mark(settings, HOSTILE_NIGHTS[1], " ".join(text for text in HOSTILE if text.isprintable()))
    publish(settings)
    return settings


def _plain(folder: Path, first: str, last: str | None) -> Settings:
    return _audit(
        folder,
        first,
        last,
        attributes=["gender"],
        slices=["device"],
        metrics=["EXP", "NDKL", "nDCG@10"],
        thresholds={"EXP.MinMaxRatio": {"min": 0.8}},
        evidence={**LENIENT, "resamples": 40},
    )


def one(folder: Path) -> Settings:
    """A history of a single batch."""
    settings = _plain(folder, MONTH[0], MONTH[0])
    deliver(folder, random_lists(1, 40), batch=MONTH[0])
    assert _run(settings, MONTH[:1]) == ["done"]
    return settings


def last_night(folder: Path) -> Settings:
    """An audit that goes on: it began last night, and tonight's batch is still to come."""
    night = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    settings = _plain(folder, night, None)
    deliver(folder, random_lists(1, 40), batch=night)
    assert _run(settings, [night]) == ["done"]
    return settings


def none(folder: Path) -> Settings:
    """A history that tells of a refused batch and one without data, and of no score."""
    settings = _plain(folder, MONTH[0], MONTH[2])
    deliver(folder, [{**row, "rank": 0} for row in random_lists(1)], batch=MONTH[0])
    assert set(_run(settings, MONTH[:2])) == {"refused", "no_data"}
    publish(settings)
    return settings


def nothing(folder: Path) -> Settings:
    """Settings, and no history at all."""
    return _plain(folder, MONTH[0], MONTH[0])


def years(folder: Path) -> Settings:
    """Three years, 40 slices: the last night is audited, those before it are made from it."""
    nights = days(date(2023, 1, 1), date(2025, 12, 30))
    settings = _audit(
        folder,
        nights[0],
        nights[-1],
        attributes=["seller", "region"],
        slices=["device", "market", "channel", "age"],
        metrics=["fairness", "nDCG@10", "RR", "GroupnDCG@10"],
        thresholds={
            "EXP.MinMaxRatio": {"min": 0.8},
            "ARP.MinMaxRatio": {"min": 0.7, "slices": ["all"]},
            "NDKL": {"max": 0.4, "slices": ["all"]},
        },
        evidence={**LENIENT, "resamples": 40, "noise_draws": 40},
    )
    write(years_lists(), folder / "logs" / nights[-1] / "part.parquet")
    assert _run(settings, nights[-1:]) == ["done"]
    fill_years(settings, nights)
    publish(settings)
    return settings


STORES: dict[str, Build] = {
    build.__name__: build for build in (month, hostile, one, last_night, none, nothing, years)
}


def shared(base: Path, name: str, finish: Callable[[Settings], object]) -> Settings:
    """The store ``name``, made and finished once for all workers of a test run."""
    folder = made_once(base, name, lambda folder: finish(STORES[name](folder)))
    return load_settings(folder / "audit.yaml")


if __name__ == "__main__":
    STORES[sys.argv[1]](Path(sys.argv[2]))
