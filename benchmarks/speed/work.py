"""What is measured, each in a process of its own: ``python -m speed.work TASK GIVEN``.

A task gets a mapping (one JSON document) and its last line of output is another: ``cpu`` are CPU
seconds of all threads in the work itself, ``whole`` those of the process with all that it does
before, ``wall`` seconds on the clock, ``peak`` the most memory it held, in bytes.  A task first
does its work on a tiny log, so that what Python loads late is no part of ``cpu``.
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from speed.peers import fairranktune, quality

THREADS = 2
SCANS = 3
"""Times that a scan is repeated in its process; the median counts."""
FIRST_DAY = date(2026, 1, 1)
COMMAND = (sys.executable, "-c", "from pipeline.cli.main import main; main(prog_name='evenrank')")

Given = Mapping[str, Any]
Numbers = dict[str, Any]


class Spent:
    """CPU seconds of named steps."""

    def __init__(self) -> None:
        self.steps: dict[str, float] = {}

    def timed(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """``work``, with what it costs added to a step."""

        def run(*given: Any, **named: Any) -> Any:
            start = time.process_time()
            try:
                return work(*given, **named)
            finally:
                self.steps[name] = self.steps.get(name, 0.0) + time.process_time() - start

        return run


def peak_bytes() -> int:
    """The most memory that this process held; not that of the one that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _repeated(columns: str, path: str, groups: str) -> Numbers:
    """CPU seconds of one grouped query over a file, the median of some runs."""
    import duckdb

    connection = duckdb.connect(config={"threads": THREADS})
    query = f"SELECT {groups}, {columns} FROM read_parquet(?) GROUP BY {groups}"
    seconds = []
    for _ in range(SCANS):
        start = time.process_time()
        connection.execute(query, [path]).fetchall()
        seconds.append(time.process_time() - start)
    middle = statistics.median(seconds)
    return {"cpu": middle, "whole": time.process_time() - sum(seconds) + middle}


def floor(given: Given) -> Numbers:
    """One scan of the six columns, with a count and five sums per group."""
    from speed.data import FLOOR_COLUMNS

    sums = ", ".join(
        f"sum(length({name}))" if given["text"] and name.endswith("_id") else f"sum({name})"
        for name in FLOOR_COLUMNS
    )
    return _repeated(f"count(*), {sums}", given["file"], "grp")


def histogram(given: Given) -> Numbers:
    """The rank histogram of one attribute, straight from the file."""
    from pipeline.counts.rank_counts import histogram_sums

    return _repeated(histogram_sums(_settings(given)), given["file"], "grp, rank")


def decode(given: Given) -> Numbers:
    """The physical limit: the six columns as arrays, decoded by pyarrow, and nothing done."""
    import pyarrow.parquet as pq

    from speed.data import FLOOR_COLUMNS

    seconds = []
    with pq.ParquetFile(given["file"]) as file:
        group = file.metadata.row_group(0)
        columns = [group.column(at) for at in range(group.num_columns)]
        encoded = [
            column.path_in_schema
            for column in columns
            if column.physical_type == "BYTE_ARRAY" and "PLAIN" not in column.encodings
        ]
    for _ in range(SCANS):
        start = time.process_time()
        with pq.ParquetFile(given["file"], read_dictionary=encoded, pre_buffer=False) as file:
            names = [*FLOOR_COLUMNS, "grp"]
            for _ in file.iter_batches(122_880, columns=names, use_threads=False):
                pass
        seconds.append(time.process_time() - start)
    middle = statistics.median(seconds)
    return {"cpu": middle, "whole": time.process_time() - sum(seconds) + middle}


def _settings(given: Given, **more: Any) -> Any:
    from pipeline.runs.in_memory import NO_EVIDENCE
    from pipeline.settings.load import settings_from

    said = {
        "attributes": ["grp"],
        "threads": THREADS,
        "evidence": NO_EVIDENCE,
        **given.get("settings", {}),
        **more,
    }
    return settings_from(said, folder=Path())


@contextmanager
def _steps_of_scoring() -> Iterator[Spent]:
    """What reading and counting cost while files are scored."""
    from pipeline.runs import in_memory

    spent = Spent()
    with ExitStack() as stack:
        for step, name in (("ingest", "ingest"), ("measure", "count_batch")):
            if hasattr(in_memory, name):
                work = spent.timed(step, getattr(in_memory, name))
                stack.enter_context(patch.object(in_memory, name, work))
        yield spent


def score(given: Given) -> Numbers:
    """Scores of files, without a store: rows are read, checked, counted and scored."""
    from pipeline.runs.in_memory import score_files

    score_files(_settings(given), [Path(given["tiny"])], None)
    with _steps_of_scoring() as spent:
        start = time.process_time()
        found = score_files(_settings(given), [Path(given["file"])], None)
        cpu = time.process_time() - start
    rest = cpu - sum(spent.steps.values())
    return {
        "cpu": cpu,
        "steps": {**spent.steps, "score": rest},
        "rows": found.ingested.rows_accepted,
        "scores": _scores(found) if given.get("scores") else {},
    }


def _scores(found: Any) -> Numbers:
    """Values by label, and those of groups, for comparison with another library."""
    return {
        "values": {
            row["metric"] + (f".{row['aggregation']}" if row["aggregation"] else ""): row["value"]
            for row in found.scores
        },
        "groups": [(row["metric"], row["group_value"], row["value"]) for row in found.groups],
        "lists": found.ingested.lists,
    }


def check(given: Given) -> Numbers:
    """Every rule of rows and lists, the gate included; accepted rows are stored."""
    from pipeline.runs.in_memory import check_files

    check_files(_settings(given), [Path(given["tiny"])], None)
    start = time.process_time()
    found = check_files(_settings(given), [Path(given["file"])], None)
    return {"cpu": time.process_time() - start, "rows": found.rows_accepted}


def intervals(given: Given) -> Numbers:
    """What intervals add to the scoring of counts."""
    from pipeline.runs.in_memory import score_files
    from pipeline.scores.evidence.randomness import poisson_weights

    def scoring(resamples: int, path: str) -> float:
        poisson_weights.cache_clear()
        evidence = {"resamples": resamples, "noise_draws": 0}
        with _steps_of_scoring() as spent:
            start = time.process_time()
            score_files(_settings(given, evidence=evidence), [Path(path)], None)
            return time.process_time() - start - sum(spent.steps.values())

    scoring(given["resamples"], given["tiny"])
    without, with_them = (scoring(count, given["file"]) for count in (0, given["resamples"]))
    return {"cpu": with_them - without, "steps": {"without": without, "with": with_them}}


@contextmanager
def _project(given: Given, days: int) -> Iterator[Path]:
    """A folder with settings and a log for each of some days, all the same file."""
    with tempfile.TemporaryDirectory(prefix="evenrank-bench-") as name:
        folder = Path(name)
        for day in range(days):
            log = folder / "logs" / str(FIRST_DAY + timedelta(day)) / "log.parquet"
            log.parent.mkdir(parents=True)
            # A symbolic link that leads out of the folder would be refused.
            log.hardlink_to(Path(given["file"]))
        lines = ["logs: logs/{batch}/*", "attributes: [grp]", *given.get("lines", ())]
        (folder / "audit.yaml").write_text("\n".join([*lines, ""]), "utf-8")
        yield folder


def _command(folder: Path, *arguments: str) -> Numbers:
    """What a command of the project costs, as a process of its own."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [*COMMAND, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise SystemExit(f"evenrank {arguments[0]} ended with {done.returncode}: {said[-1000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    unit = 1 if sys.platform == "darwin" else 1024
    return {"cpu": cpu, "whole": cpu, "wall": wall, "peak": after.ru_maxrss * unit}


def run(given: Given) -> Numbers:
    """``evenrank run`` of one batch, from the start of the process to its end."""
    with _project(given, 1) as folder:
        return _command(folder, "run", "--batch", str(FIRST_DAY), "--quiet")


def steps(given: Given) -> Numbers:
    """The same batch, step by step in this process."""
    from pipeline.history.merging import merge
    from pipeline.publish.copy import publish
    from pipeline.runs.steps import ingest_batch, measure_batch, score_batch
    from pipeline.settings.load import load_settings
    from pipeline.store.batch_files import new_run_id

    def batch(path: str) -> dict[str, float]:
        with _project({**given, "file": path}, 1) as folder:
            settings = load_settings(folder / "audit.yaml")
            key, run_id, spent = str(FIRST_DAY), new_run_id(), Spent()
            spent.timed("ingest", ingest_batch)(settings, key, run_id)
            spent.timed("measure", measure_batch)(settings, key, run_id)
            spent.timed("score", score_batch)(settings, key, run_id)
            spent.timed("merge", merge)(settings, key, run_id, force=True)
            spent.timed("publish", publish)(settings)
        return spent.steps

    batch(given["tiny"])
    found = batch(given["file"])
    return {"cpu": sum(found.values()), "steps": found}


def start(given: Given) -> Numbers:
    """A command that hardly does anything: what a process costs before it works."""
    arguments = [given["file"] if each == "FILE" else each for each in given["arguments"]]
    with tempfile.TemporaryDirectory(prefix="evenrank-bench-") as name:
        return _command(Path(name), *arguments)


def jobs(given: Given) -> Numbers:
    """A backfill of some days, one batch at a time and two."""
    last = FIRST_DAY + timedelta(given["days"] - 1)
    found = {}
    for count in ("1", "2"):
        with _project(given, given["days"]) as folder:
            days = ("--from", str(FIRST_DAY), "--to", str(last))
            found[count] = _command(folder, "backfill", *days, "--jobs", count, "--quiet")
    return {
        **found["2"],
        "rows": given["rows"] * given["days"],
        "steps": {f"wall{count}": each["wall"] for count, each in found.items()},
    }


TASKS: dict[str, Callable[[Given], Numbers]] = {
    task.__name__: task
    for task in (
        floor, histogram, decode, score, check, intervals, run, steps, start, jobs, fairranktune,
        quality,
    )
}  # fmt: skip


def main() -> None:
    """Do one task and print its numbers."""
    begun = time.monotonic()
    found = TASKS[sys.argv[1]](json.loads(sys.argv[2]))
    usual = {"wall": time.monotonic() - begun, "peak": peak_bytes(), "whole": time.process_time()}
    print(json.dumps({**usual, **found}))


if __name__ == "__main__":
    main()
