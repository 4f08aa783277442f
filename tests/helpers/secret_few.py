"""A log that names few people, and a search for these names in whatever leaves the store."""

import json
from pathlib import Path
from typing import Any

import yaml
from stores import LENIENT, Rows, deliver, lists, ranking

DAYS = ("2026-01-05", "2026-01-06")
K = 5
NAMES = ("zebra", "kiosk", "4917012345678", "Ada Byron")
"""A group of few, a slice value of few, what may be a telephone number, and the id of a person."""
SETTINGS: dict[str, Any] = {
    "logs": "logs/{batch}/*",
    "attributes": ["gender", "region"],
    "slices": ["device"],
    "metrics": ["EXP", "nDCG"],
    "thresholds": {"EXP.MinMaxRatio": {"min": 0.99}},
    "rejects": {"policy": "drop_list", "max_rejected_share": 0.5},
    "privacy": {"min_cell": K},
    "schedule": {"start": DAYS[0], "end": DAYS[-1]},
    "threads": 1,
    "busy_seconds": 5,
    "evidence": LENIENT,
}


def log(*, more: int = 0) -> Rows:
    """One person in many lists on phones; a region of two lists; two lists of a device."""
    rows = lists(
        *(ranking(f"p{n}", "FMM", device="phone", region="x") for n in range(40 + more)),
        *(ranking(f"d{n}", "FMM", device="desk", region="y") for n in range(20)),
        *(ranking(f"t{n}", "FMM", device="tablet", region="y") for n in range(30)),
        *(ranking(f"k{n}", "FMM", device="kiosk", region="x") for n in range(2)),
        *(ranking(f"z{n}", "FMM", device="desk", region=["zebra", "y", "y"]) for n in range(2)),
    )
    for row in rows:
        if (row["gender"], row["device"]) == ("F", "phone"):
            row["item_id"] = "Ada Byron"
    # Its rank belongs to another column.
    return [*rows, *ranking("bad", "FM", device="desk", region="y", rank=["4917012345678", "2"])]


def write(folder: Path, **said: Any) -> Path:
    """Logs of some days and their settings; returns the settings' file."""
    for at, day in enumerate(DAYS):
        deliver(folder, log(more=at), batch=day)
    path = folder / "audit.yaml"
    path.write_text(yaml.safe_dump({**SETTINGS, **said}), encoding="utf-8")
    return path


def named(text: object) -> list[str]:
    """Those of the names that stand in a text, or in anything as JSON."""
    said = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False, default=str)
    return [name for name in NAMES if name in said]
