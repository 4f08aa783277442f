"""Other libraries on the same lists: their environments, and the tasks that compare with them.

A ratio of different numbers would mean nothing, so what both return is compared first.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

ENVIRONMENTS = {
    "fairranktune": ("FairRankTune==0.0.7", "numpy==2.2.6", "pandas==2.3.3"),
    "quality": ("pytrec_eval-terrier==0.5.11", "ranx==0.3.21"),
}
AGREEMENT = 1e-9
"""The largest relative gap between values that count as the same."""


def _metric(name: str, *parameters: float, frames: tuple[str, ...] = (), summed: bool = False,
            one_list: bool = False) -> dict[str, Any]:  # fmt: skip
    return {
        "name": name,
        "parameters": list(parameters),
        "frames": frames,
        "summed": summed,
        "one_list": one_list,
    }


METRICS = {
    "EXP": _metric("EXP", summed=True),
    "EXPU": _metric("EXPU", frames=("relevance",)),
    "EXPRU": _metric("EXPRU", frames=("relevance", "click")),
    "AWRF(p=0.1)": _metric("AWRF", 0.1, summed=True),
    "ERBE(decay=0.75)": _metric("ERBE", 0.75, summed=True),
    "ERBP(decay=0.75)": _metric("ERBP", 0.75, summed=True),
    "ERBR(decay=0.75)": _metric("ERBR", 0.75, frames=("relevance",)),
    "ARP": _metric("ARP", summed=True),
    "NDKL": _metric("NDKL", one_list=True),
}
"""What FairRankTune computes of many lists; where it adds lists up, a mean is taken here.

Of IAA it reads the first list only, so that one is no part of the comparison.
"""


def python_of(cache: Path, name: str) -> Path:
    """The interpreter of an environment, there or not."""
    return cache / "peers" / name / "bin" / "python"


def build(cache: Path, tell: Callable[[str], None]) -> None:
    """Make the environments that are missing; CalledProcessError where that fails."""
    for name, requirements in ENVIRONMENTS.items():
        mark = cache / "peers" / name / ".ready"
        if mark.exists() and mark.read_text("utf-8") == "\n".join(requirements):
            continue
        tell(f"making an environment with {', '.join(requirements)}")
        folder = cache / "peers" / name
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        python = str(python_of(cache, name))
        subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], check=True)
        mark.write_text("\n".join(requirements), "utf-8")


def _document(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.strip()[-1000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def fairranktune(given: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics that both have, of orders of one pool: here from the file, there from frames."""
    settings = {"metrics": list(METRICS)}
    asked = {**given, "scores": True, "settings": settings}
    ours = _document([sys.executable, "-m", "speed.work", "score", json.dumps(asked)])
    with tempfile.TemporaryDirectory(prefix="evenrank-bench-") as name:
        lists = Path(name) / "lists.npz"
        _write_lists(Path(given["file"]), lists)
        script = str(Path(__file__).with_name("theirs.py"))
        theirs = _document(
            [given["python"], "-W", "ignore", script, str(lists), json.dumps(METRICS)]
        )
    gaps = list(_gaps(ours["scores"], theirs["values"]))
    if not all(gap <= AGREEMENT for gap in gaps):
        raise SystemExit(f"values differ by up to {max(gaps):.1e} of themselves")
    cpu = sum(theirs["seconds"].values())
    return {
        "cpu": cpu,
        "steps": {"ours": ours["cpu"], "theirs": cpu},
        "rows": ours["rows"],
        "gap": max(gaps),
        "versions": theirs["versions"],
    }


def _write_lists(log: Path, path: Path) -> None:
    import duckdb
    import numpy as np

    columns = {"items": "item_id", "relevance": "relevance", "click": "click", "group": "grp"}
    said = ", ".join(f'{column} AS "{name}"' for name, column in columns.items())
    with duckdb.connect() as connection:
        found = connection.execute(
            f"SELECT list_id, {said} FROM read_parquet(?) ORDER BY list_id, rank", [str(log)]
        ).fetchnumpy()
    lists = len(np.unique(found["list_id"].astype(str)))
    texts = {name: found[name].astype(str).reshape(lists, -1) for name in ("items", "group")}
    rates = {name: np.asarray(found[name]).reshape(lists, -1) for name in ("relevance", "click")}
    np.savez(path, items=texts["items"], group=texts["group"], **rates)


def _gaps(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[float]:
    """Relative gaps between what was found here and there, one per number."""
    here = {(metric, group): value for metric, group, value in ours["groups"]}
    for label, found in theirs.items():
        if isinstance(found, float):
            yield abs(ours["values"][label] / found - 1)
            continue
        times = ours["lists"] if METRICS[label]["summed"] else 1
        for group, value in found.items():
            yield abs(here[label, group] * times / value - 1)


def quality(given: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics of ranking quality that a library shares, on the same arrays."""
    from quality import CHUNK, DEPTHS, OURS, PYTREC, RANX, RANX_SCRIPT, TREC, compare, spent_by
    from quality import write_lists as write

    script, names = {"pytrec_eval": (PYTREC, TREC), "ranx": (RANX_SCRIPT, RANX)}[given["library"]]
    # A folder that stays, for what ranx compiles once.
    folder = Path(given["folder"]) / "quality"
    folder.mkdir(parents=True, exist_ok=True)
    rows = write(folder, given["rows"], DEPTHS[0], seed=1)
    ours = spent_by(sys.executable, OURS, folder, list(names), CHUNK)
    theirs = spent_by(given["python"], script, folder, names)
    return {
        "cpu": theirs["alone"],
        "steps": {
            "ours": ours["alone"],
            "theirs": theirs["alone"],
            "ours, with conversion": ours["whole"],
            "theirs, with conversion": theirs["whole"],
        },
        "rows": rows,
        "gap": compare(ours, theirs, given["library"]),
    }
