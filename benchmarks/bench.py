"""How much work an audit is, beside the least that any tool must do.

The floor is one DuckDB scan of the log's columns with a count and sums per group.  Floor and audit
run in turn, in processes of their own, and what is reported is the ratio of their CPU seconds,
which a busy machine moves far less than it moves the clock.
"""

import json
import platform
import statistics
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

import click

SETTINGS = """
logs: logs/{batch}/*
items: items.parquet
attributes: [gender, region]
slices: [device, market]
threads: 2
metrics: [{metrics}]
"""
BATCH = "2026-01-01"
STEPS = ("ingest", "measure", "score", "merge", "publish")

FLOOR = """
import time, duckdb
connection = duckdb.connect(config={"threads": 2})
start = time.process_time()
connection.execute(
    "SELECT device, count(*), sum(rank), sum(relevance), sum(click), sum(length(item_id)), "
    "sum(length(list_id)) FROM read_parquet('logs/*/*.parquet') GROUP BY device"
).fetchall()
print('{"floor": %r}' % (time.process_time() - start))
"""
AUDIT = """
import json, resource, sys, time
from pathlib import Path
from pipeline.batch import ingest_batch, measure_batch, new_run_id, promote, score_batch
from pipeline.history import merge
from pipeline.publish import publish
from pipeline.settings import load_settings

settings, batch, run_id = load_settings(Path("audit.yaml")), sys.argv[1], new_run_id()
spent = {}
for name, step in (
    ("ingest", lambda: ingest_batch(settings, batch, run_id)),
    ("measure", lambda: measure_batch(settings, batch, run_id)),
    ("score", lambda: score_batch(settings, batch, run_id)),
    ("merge", lambda: (promote(settings, batch, run_id), merge(settings, batch, force=True))),
    ("publish", lambda: publish(settings)),
):
    start = time.process_time()
    step()
    spent[name] = time.process_time() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
spent["peak"] = peak * (1 if sys.platform == "darwin" else 1024)
print(json.dumps(spent))
"""


def spent_by(script: str, folder: Path) -> dict[str, float]:
    """What a script in a process of its own says it spent."""
    done = subprocess.run(
        [sys.executable, "-c", script, BATCH],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):8.1f}   ({min(values):.1f} to {max(values):.1f})"


@click.command()
@click.option("--lists", default=50_000, show_default=True, help="Lists, of 19 rows on average.")
@click.option("--repeats", default=5, show_default=True, help="Interleaved runs of each.")
@click.option("--metrics", default="fairness", show_default=True, help="Labels and families.")
def main(lists: int, repeats: int, metrics: str) -> None:
    """Measure one batch, step by step, as multiples of a plain scan."""
    from pipeline.synthetic.marketplace import generate

    with tempfile.TemporaryDirectory(prefix="rankaudit-bench-") as name:
        folder = Path(name)
        written = generate(folder, start=date.fromisoformat(BATCH), days=1, lists=lists)
        (folder / "audit.yaml").write_text(SETTINGS.replace("{metrics}", metrics), encoding="utf-8")
        click.echo(f"{written.rows:,} rows in {lists:,} lists; Python {platform.python_version()}")
        floors, audits = [], []
        for turn in range(repeats):
            floors.append(spent_by(FLOOR, folder)["floor"])
            audits.append(spent_by(AUDIT, folder))
            click.echo(f"  run {turn + 1} of {repeats}", err=True)
    ratios = {
        step: [audit[step] / floor for audit, floor in zip(audits, floors, strict=True)]
        for step in STEPS
    }
    ratios["in all"] = [sum(each) for each in zip(*ratios.values(), strict=True)]
    click.echo("CPU seconds as multiples of one scan with a count and sums: median and range")
    for step, values in ratios.items():
        click.echo(f"  {step:<8} {spread(values)}")
    whole = statistics.median(sum(audit[step] for step in STEPS) for audit in audits)
    click.echo(f"  {written.rows / whole:,.0f} rows per CPU second")
    click.echo(f"  peak memory {max(audit['peak'] for audit in audits) / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
