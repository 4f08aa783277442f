"""Ranking quality beside trec_eval and ranx, on the same lists.

Here, pytrec_eval and ranx each compute the metrics that they share with this project, in turns and
in processes of their own.  What is reported are CPU seconds, and their ratios inside a turn, which
a busy machine moves far less than it moves the clock.  Two things are measured: the metrics alone,
and with the conversion of flat arrays to what each library takes (dictionaries, for the other two).
Values are compared as well: a ratio of different numbers would mean nothing.

The other libraries live in an interpreter of their own: ``--oracle-python``, with
pytrec_eval-terrier, ranx and numpy installed.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import numpy as np

GROUPS = ("A", "B", "C")
RELEVANT = 2
DEPTHS = (100, 20)
CHUNK = 200_000
TREC = {
    "P@10": "P_10",
    "R@10": "recall_10",
    "AP": "map",
    "AP@10": "map_cut_10",
    "RR": "recip_rank",
    "hit@10": "success_10",
    "nDCG": "ndcg",
    "nDCG@10": "ndcg_cut_10",
}
RANX = {
    "P@10": "precision@10-l2",
    "R@10": "recall@10-l2",
    "F1@10": "f1@10-l2",
    "AP": "map-l2",
    "AP@10": "map@10-l2",
    "RR": "mrr-l2",
    "hit@10": "hit_rate@10-l2",
    "nDCG": "ndcg",
    "nDCG@10": "ndcg@10",
    "nDCG(gain=exp)@10": "ndcg_burges@10",
}

OURS = """
import json, sys, time
import numpy as np
from metrics import Grouping, Rankings, parse_measure
from metrics.quality import QUALITY_METRICS

asked, chunk = json.loads(sys.argv[1]), int(sys.argv[2])
found = np.load("lists.npz")
grade, group, depth = found["grade"], found["group"], int(found["depth"])
labels = asked or [metric.usual.label for metric in QUALITY_METRICS]
measures = [parse_measure(label) for label in labels]
names = tuple(found["groups"].tolist())


def rankings(grade, group, click, propensity, predicted):
    rows = len(grade)
    none = np.zeros(rows, dtype=np.int64)
    starts = np.arange(0, rows, depth)
    return Rankings(
        starts=starts,
        rank=np.tile(np.arange(1, depth + 1), rows // depth),
        relevance=grade.astype(np.float64),
        relevant=grade >= int(found["relevant"]),
        click=click,
        reference_rank=none,
        reference_length=np.zeros(len(starts), dtype=np.int64),
        propensity=propensity,
        predicted_click=predicted,
        grouping=Grouping(names, group, np.ones(len(names), dtype=bool)),
    )


columns = [found[name] for name in ("grade", "group", "click", "propensity", "predicted")]
step = max(1, chunk // depth) * depth
begun = time.process_time()
each = dict.fromkeys(labels, 0.0)
kept = {label: [] for label in labels}
for at in range(0, len(grade), step):
    lists = rankings(*(column[at : at + step] for column in columns))
    for label, measure in zip(labels, measures, strict=True):
        start = time.process_time()
        value = measure.list_functions[None](lists, measure.given).value
        each[label] += time.process_time() - start
        kept[label].append(value)
whole = time.process_time() - begun
means = {}
for label in labels:
    values = np.concatenate(kept[label])
    means[label] = float(np.nanmean(values)) if values.ndim == 1 else None
print(json.dumps({"alone": sum(each.values()), "whole": whole, "each": each, "means": means}))
"""

INPUTS = """
import json, sys, time
import numpy as np

asked = json.loads(sys.argv[1])
found = np.load("lists.npz")
grade, depth, relevant = found["grade"], int(found["depth"]), int(found["relevant"])
rows = grade.reshape(-1, depth)
binary, graded = (rows >= relevant).any(axis=1), (rows > 0).any(axis=1)


def mean(label, values):
    # Over the lists that have a value here: elsewhere the others count 0.
    return float(np.array(values)[graded if label.startswith("nDCG") else binary].mean())


def dictionaries(rows):
    items = [f"d{at:04}" for at in range(depth)]
    falling = [float(depth - at) for at in range(depth)]
    qrels, run = {}, {}
    for number, grades in enumerate(rows.tolist()):
        qrels[f"q{number:07}"] = dict(zip(items, grades))
        run[f"q{number:07}"] = dict(zip(items, falling))
    return qrels, run

"""

PYTREC = (
    INPUTS
    + """
import pytrec_eval

begun = time.process_time()
qrels, run = dictionaries(rows)
names = set(asked.values())
of_grades = {name for name in names if name.startswith("ndcg")}
# The level from which an item is relevant is not to touch the gains of nDCG.
evaluators = [
    pytrec_eval.RelevanceEvaluator(qrels, measures, relevance_level=level)
    for measures, level in ((names - of_grades, relevant), (of_grades, 1))
]
start = time.process_time()
results = [evaluator.evaluate(run) for evaluator in evaluators]
done = time.process_time()
means = {}
for label, name in asked.items():
    found = results[name in of_grades]
    means[label] = mean(label, [found[query][name] for query in qrels])
print(json.dumps({"alone": done - start, "whole": done - begun, "means": means}))
"""
)

RANX_SCRIPT = (
    INPUTS
    + """
from ranx import Qrels, Run, evaluate

small, fake = dictionaries(rows[:2])
evaluate(Qrels(small), Run(fake), list(asked.values()))
begun = time.process_time()
qrels, run = dictionaries(rows)
qrels, run = Qrels(qrels), Run(run)
start = time.process_time()
results = evaluate(qrels, run, list(asked.values()), return_mean=False)
done = time.process_time()
means = {label: mean(label, results[name]) for label, name in asked.items()}
print(json.dumps({"alone": done - start, "whole": done - begun, "means": means}))
"""
)


def spent_by(python: str, script: str, folder: Path, *given: object) -> dict:
    """What a script in a process of its own says it spent, and found."""
    # One thread: with more, the waiting of threads for one another would count as work.
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_NUM_THREADS": "1",
        "NUMBA_CACHE_DIR": str(folder / "numba"),
    }
    done = subprocess.run(
        [python, "-W", "ignore", "-c", script, *(json.dumps(each) for each in given)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise click.ClickException(done.stderr.strip()[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def write_lists(folder: Path, rows: int, depth: int, seed: int) -> int:
    """Lists of one length, graded 0 to 4, a quarter of the items relevant; returns the rows."""
    generator = np.random.default_rng(seed)
    rows -= rows % depth
    grade = generator.choice(5, size=rows, p=(0.6, 0.15, 0.1, 0.1, 0.05))
    np.savez(
        folder / "lists.npz",
        grade=grade,
        depth=depth,
        relevant=RELEVANT,
        group=generator.integers(0, len(GROUPS), rows),
        groups=np.array(GROUPS),
        click=np.where(generator.random(rows) < 0.5, np.nan, generator.random(rows) < 0.2),
        propensity=generator.uniform(0.05, 1.0, rows),
        predicted=generator.random(rows),
    )
    return rows


def spread(values: list[float], digits: int = 3) -> str:
    """Median and range."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def compare(ours: dict, theirs: dict, name: str) -> float:
    """The largest relative gap between means; an error where they are not the same numbers."""
    gap = max(
        abs(ours["means"][label] - value) / abs(value) for label, value in theirs["means"].items()
    )
    if gap > 1e-9:
        raise click.ClickException(f"{name} found other values: {theirs['means']}")
    return gap


def report(every: list[dict], turns: dict[str, list[tuple[dict, dict]]]) -> None:
    """What the turns over one shape of lists found."""
    click.echo("  CPU seconds: median and range")
    click.echo(f"  all {len(every[0]['each'])} metrics: {spread([e['alone'] for e in every])}")
    for name, pairs in turns.items():
        gap = max(compare(mine, theirs, name) for mine, theirs in pairs)
        shared = len(pairs[0][0]["each"])
        click.echo(f"  the {shared} shared with {name}; largest relative gap {gap:.1e}")
        for part, text in (("alone", "metrics alone"), ("whole", "with conversion")):
            here = [mine[part] for mine, _ in pairs]
            there = [theirs[part] for _, theirs in pairs]
            ratios = [b / a for a, b in zip(here, there, strict=True)]
            click.echo(f"    {text}: here {spread(here)}, {name} {spread(there)}")
            click.echo(f"    {name} over here: {spread(ratios, 1)}")
    click.echo("  by metric")
    for label in sorted(every[0]["each"], key=lambda label: -every[0]["each"][label]):
        click.echo(f"    {label:<26} {spread([each['each'][label] for each in every])}")


@click.command()
@click.option("--rows", default=1_000_000, show_default=True, help="Rows of each shape.")
@click.option("--repeats", default=5, show_default=True, help="Turns.")
@click.option("--chunk", default=CHUNK, show_default=True, help="Rows taken at a time, here.")
@click.option("--seed", default=1, show_default=True)
@click.option("--oracle-python", help="An interpreter with pytrec_eval-terrier and ranx.")
def main(rows: int, repeats: int, chunk: int, seed: int, oracle_python: str | None) -> None:
    """Measure the metrics of ranking quality beside pytrec_eval and ranx."""
    others = {"pytrec_eval": (PYTREC, TREC), "ranx": (RANX_SCRIPT, RANX)} if oracle_python else {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for depth in DEPTHS:
            written = write_lists(folder, rows, depth, seed)
            every: list[dict] = []
            turns: dict[str, list[tuple[dict, dict]]] = {each: [] for each in others}
            for _ in range(repeats):
                every.append(spent_by(sys.executable, OURS, folder, [], chunk))
                for each, (script, names) in others.items():
                    mine = spent_by(sys.executable, OURS, folder, list(names), chunk)
                    turns[each].append((mine, spent_by(str(oracle_python), script, folder, names)))
            click.echo(f"{written:,} rows in {written // depth:,} lists of {depth}")
            report(every, turns)


if __name__ == "__main__":
    main()
