"""Commands that run at once, and readers of the published copy that look on."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crash_children import Children, Ended
from stores import LENIENT, deliver, random_lists

WORDS = tuple[str, ...]
_SETTINGS = """\
attributes: [gender]
metrics: [EXP]
threads: 1
schedule: {{start: 2026-01-01}}
busy_seconds: {busy}
evidence: {evidence}
"""
READER = """
import json, os, sys, duckdb
path = sys.argv[1]
seen, failures, looks, last = [], [], 0, 0
print("ready", flush=True)
while not os.path.exists(path + ".stop"):
    try:
        with duckdb.connect(path, read_only=True) as connection:
            (line,) = connection.execute("SELECT line FROM ledger_head").fetchone()
            torn = connection.execute(
                "SELECT batch FROM v_batches AS done WHERE revision > 0 AND NOT EXISTS (FROM "
                "v_history AS scores WHERE (scores.batch, scores.revision, scores.run_id) = "
                "(done.batch, done.revision, done.run_id))"
            ).fetchall()
    except Exception as error:
        failures.append(str(error))
    else:
        if torn:
            failures.append(f"without scores: {torn}")
        if line < last:
            failures.append(f"line {line} after {last}")
        last = line
        looks += 1
        if line not in seen:
            seen.append(line)
print(json.dumps({"seen": seen, "failures": failures, "looks": looks}))
"""
HOLDER = """
import sys, duckdb
with duckdb.connect(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""
DAGSTER = """
import sys
import dagster as dg
from pathlib import Path
from assets.definitions import definitions
with dg.DagsterInstance.ephemeral() as instance:
    job = definitions(Path(sys.argv[1])).resolve_job_def("audit")
    print("ready", flush=True)
    sys.stdin.readline()
    for batch in sys.argv[2:]:
        result = job.execute_in_process(
            instance=instance,
            partition_key=batch,
            raise_on_error=False,
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )
        print(result.success, flush=True)
"""


def make_audit(folder: Path, days: int, *, busy: float = 60) -> list[str]:
    """An audit with as many days of logs; returns its batches."""
    folder.mkdir(parents=True)
    text = _SETTINGS.format(busy=busy, evidence=LENIENT)
    (folder / "audit.yaml").write_text(text, encoding="utf-8")
    batches = [f"2026-01-{day:02}" for day in range(1, days + 1)]
    for seed, batch in enumerate(batches):
        deliver(folder, random_lists(seed), batch=batch)
    return batches


def at_once(children: Children, folder: Path, commands: Sequence[WORDS]) -> list[Ended]:
    """Start all commands, and wait for all."""
    started = [children.start(folder, words) for words in commands]
    return [children.wait(pid) for pid in started]


@contextmanager
def process(code: str, *words: object) -> Iterator[subprocess.Popen[str]]:
    """A process that says when it is ready, and ends when its input does."""
    child = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        try:
            assert child.stdout
            assert child.stdout.readline()
            yield child
        finally:
            child.kill()


@contextmanager
def reader(dashboard: Path) -> Iterator[dict[str, Any]]:
    """Somebody who reads the published copy all the time; what they saw is there at the end."""
    report: dict[str, Any] = {}
    stop = dashboard.with_name(dashboard.name + ".stop")
    with process(READER, dashboard) as child:
        try:
            yield report
        finally:
            stop.touch()
            out, _ = child.communicate(timeout=60)
            stop.unlink()
        report.update(json.loads(out.splitlines()[-1]))


def publish_before_a_reader(
    children: Children, folder: Path, batch: str, times: int
) -> tuple[list[Ended], dict[str, Any]]:
    """Publish so many times, after a change each, while somebody reads."""
    ended = []
    with reader(folder / "store" / "dashboard.duckdb") as report:
        for turn in range(times):
            # It writes, assesses and publishes; somebody else publishes at the same time.
            words = ("mark", "--quiet", "--batch", batch, "--text", f"release {turn}")
            ended += at_once(children, folder, [words, ("publish", "--quiet")])
    return ended, report
