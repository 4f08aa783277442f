"""Which changes make days due again: those of what numbers are made with, and no others."""

import ast
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from logs import write
from places import ROOT, TESTS
from stores import DAY, LENIENT, Rows, random_lists

import metrics
from pipeline import version
from pipeline.version.digest import Form, digest, forms
from pipeline.version.modules import PACKAGES, Definition

Ran = list[tuple[str, int, list[list[str]]]]
FAMILIES = ["fairness", "quality", "comparison", "top_k", "list_native"]


@cache
def counted(root: Path = ROOT) -> Mapping[Definition, Form]:
    """What counts."""
    return forms(root, version.STARTS, version.LEFT_OUT)


@cache
def accounted() -> set[Definition]:
    """What counts, what is left out for a reason, and what only that needs."""
    return set(forms(ROOT, version.STARTS))


# -- what runs


def _rows(seed: int) -> Rows:
    """Lists with every column that a log may hold, and a few broken rows."""
    draw = random.Random(seed)
    rows = random_lists(seed, 12)
    for at, row in enumerate(rows):
        row |= {
            "item_id": f"i{at}",
            "query_id": f"query {row['list_id'][-1]}",
            "region": draw.choice(["north", "south"]),
            "model_version": "v2",
            "relevance": draw.choice([0.0, 0.25, 1.0]),
            "reference_rank": row["rank"],
            "propensity": 0.5,
            "predicted_click": draw.random(),
        }
    rows[3]["relevance"] = 7.0
    rows[9]["item_id"] = rows[8]["item_id"]
    rows[-1]["gender"] = None
    return rows


def _without(rows: Rows, *names: str) -> Rows:
    return [{name: row[name] for name in row if name not in names} for row in rows]


def _audit(folder: Path, **said: Any) -> Path:
    settings = {
        "attributes": ["gender", "region", ["gender", "region"]],
        "slices": ["device"],
        "metrics": ["fairness", "nDCG@10", "Skew@5"],
        "thresholds": {"EXP.MinMaxRatio": {"min": 0.99}, "NDKL": {"max": 0.01}},
        "rejects": {"policy": "drop_row", "max_rejected_share": 0.5},
        "threads": 1,
        "evidence": {**LENIENT, "resamples": 40, "noise_draws": 40},
        **said,
    }
    path = folder / "audit.yaml"
    path.write_text(yaml.safe_dump(settings), "utf-8")
    return path


def _with_item_table(folder: Path) -> Path:
    rows = _rows(1)
    attributes = ("gender", "region")
    items = {row["item_id"]: {name: row[name] for name in ("item_id", *attributes)} for row in rows}
    log = [{"request": row.pop("list_id"), **row} for row in _without(rows, *attributes)]
    write(list(items.values()), folder / "items.csv")
    write(log, folder / "logs" / DAY / "part.csv")
    return _audit(
        folder,
        metrics=FAMILIES,
        columns={"list_id": "request"},
        items="items.csv",
        privacy={"hash_ids": ["list_id", "item_id", "query_id"], "key": "AUDIT_KEY"},
        targets={"gender": {"F": 0.5, "M": 0.4, "X": 0.1}},
    )


def _without_ranks(folder: Path) -> Path:
    rows = _without([{**row, "score": -row["rank"]} for row in _rows(2)], "rank")
    write(rows[:30], folder / "logs" / DAY / "1.parquet")
    write(rows[30:], folder / "logs" / DAY / "2.parquet")
    return _audit(folder, unknown_group={"in_aggregations": True}, top_of_list="bad")


def _with_gaps(folder: Path) -> Path:
    rows = _without(_rows(3), "query_id", "model_version")
    write([row for row in rows if row["rank"] != 2], folder / "logs" / DAY / "part.jsonl.gz")
    return _audit(
        folder,
        ranks={"gaps": "compact"},
        rejects={"policy": "drop_list", "max_rejected_share": 0.9},
        missing_click="zero",
        missing_relevance="zero",
    )


AUDITS: tuple[Callable[[Path], Path], ...] = (_with_item_table, _without_ranks, _with_gaps)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Every function that ran for three batches that differ in all that deliveries can."""
    folders = {made: tmp_path_factory.mktemp(made.__name__.strip("_")) for made in AUDITS}
    settings = [str(made(folder)) for made, folder in folders.items()]
    done = subprocess.run(
        [sys.executable, str(TESTS / "helpers" / "traced.py"), DAY, *settings],
        env={**os.environ, "PYTHONPATH": str(ROOT), "AUDIT_KEY": "0123456789abcdef" * 2},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: Ran = json.loads(done.stdout)
    return found


@cache
def _top_level(module: str) -> list[tuple[int, int, list[str]]]:
    """First line, last line and names of each definition of a module."""
    found = []
    for statement in ast.parse(_file(ROOT, module).read_bytes()).body:
        first = min([statement, *getattr(statement, "decorator_list", ())], key=lambda n: n.lineno)
        targets = getattr(statement, "targets", [getattr(statement, "target", None)])
        names = [node.id for node in targets if isinstance(node, ast.Name)]
        names += [element.id for node in targets for element in getattr(node, "elts", ())]
        name = getattr(statement, "name", None)
        found.append((first.lineno, statement.end_lineno or 0, [name] if name else names))
    return found


def _file(root: Path, module: str) -> Path:
    place = root.joinpath(*module.split("."))
    package = place / "__init__.py"
    return package if package.is_file() else place.with_suffix(".py")


def _needed(ran: Ran) -> set[Definition]:
    """Definitions that ran, and those that they read."""
    needed = set()
    for file, line, read in ran:
        parts = Path(file).relative_to(ROOT).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        at = [names for first, last, names in _top_level(module) if first <= line <= last]
        assert len(at) == 1
        needed |= {Definition(module, name) for name in at[0]}
        for owner, name in read:
            if any(name in names for *_, names in _top_level(owner)):
                needed.add(Definition(owner, name))
    return needed


def test_whatever_runs_for_a_batch_counts_or_is_left_out_for_a_reason(ran: Ran) -> None:
    needed = _needed(ran)
    assert len(needed) > 500
    assert needed - accounted() == set()
    # Without its modules one by one, the same would be noticed.
    assert {each.module for each in needed} >= {
        *(
            "pipeline.log.column_mapping",
            "pipeline.log.headers",
            "pipeline.settings.audit",
            "pipeline.log.sources",
        ),
        *(
            "pipeline.log.ingest",
            "pipeline.counts.count",
            "pipeline.scores.scoring",
            "pipeline.scores.evidence.noise_floor",
        ),
        *("pipeline.scores.verdicts", "pipeline.scores.digests", "metrics.base", "schemas.rules"),
    }


def test_each_name_that_is_left_out_is_that_of_one_definition() -> None:
    names = Counter(each.name for each in accounted())
    assert {name: names[name] for name in version.LEFT_OUT} == dict.fromkeys(version.LEFT_OUT, 1)


def test_no_module_of_metrics_and_none_that_reads_deliveries_is_left_out() -> None:
    behind = {each.module for each in accounted() - set(counted())}
    whole = behind - {each.module for each in counted()}
    assert whole == {
        *(
            "pipeline.store.memory",
            "pipeline.store.checkpoints",
            "pipeline.history.commits",
            "pipeline.history.ledger",
            "pipeline.history.ledger_state",
            "pipeline.history.holdings",
            "pipeline.history.proof",
            "pipeline.runs.leftovers",
            "pipeline.store.living",
            "pipeline.store.seen",
        ),
        *("metrics", "pipeline.version", "pipeline.version.digest", "pipeline.version.modules"),
    }


# -- what changes the version, and what does not


def _copy(folder: Path) -> Path:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=lambda _, names: _no_source(names))
    return folder


def _no_source(names: list[str]) -> set[str]:
    return {name for name in names if "." in name and not name.endswith(".py")} | {"__pycache__"}


def _edited(root: Path, module: str, *changes: tuple[str, str]) -> None:
    path = _file(root, module)
    text = path.read_text("utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text, "utf-8")


class _Remarked(ast.NodeTransformer):
    """Gives everything another docstring; what is written out again has no comments left."""

    def visit(self, node: ast.AST) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
            if ast.get_docstring(node, clean=False) is not None:
                del node.body[0]
            node.body.insert(0, ast.Expr(ast.Constant("Another remark.")))
        return node


def test_remarks_layout_and_order_change_nothing(tmp_path: Path) -> None:
    root = _copy(tmp_path)
    for path in root.rglob("*.py"):
        tree = _Remarked().visit(ast.parse(path.read_bytes()))
        tree.body.reverse()
        path.write_text(ast.unparse(tree), "utf-8")
    assert counted(root) == counted()


def test_moves_and_aliases_change_nothing(tmp_path: Path) -> None:
    root = _copy(tmp_path)
    _edited(root, "metrics.aggregations", ("import numpy as np", "import numpy"), ("np.", "numpy."))
    _edited(
        root,
        "metrics.base",
        ("Reason", "why.Reason"),
        ("from metrics.reasons import why.Reason", "from metrics import reasons as why"),
    )
    path = _file(root, "pipeline.log.column_mapping")
    kept, moved = path.read_text("utf-8").split("def misspelt", 1)
    path.write_text(f"{kept}\nfrom pipeline.log.elsewhere import nearly as misspelt\n", "utf-8")
    moved = moved.replace("Layout", "layouts.Layout")
    moved = moved.replace("get_close_matches", "difflib.get_close_matches")
    path.with_name("elsewhere.py").write_text(
        "import difflib\nfrom collections.abc import Iterable\n"
        "from pipeline.log import column_mapping as layouts\n"
        f"def nearly{moved}",
        "utf-8",
    )
    assert Definition("pipeline.log.elsewhere", "nearly") in counted(root)
    assert digest(counted(root)) == digest(counted())


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("pipeline.log.column_mapping", "cutoff=0.8", "cutoff=0.7"),
        ("pipeline.log.column_mapping", "name not in here.found", "name in here.found"),
        ("pipeline.counts.stored_counts", "SELECT ", "SELECT DISTINCT "),
        ("metrics.aggregations", "@dataclass(frozen=True)", "@dataclass"),
    ],
)
def test_whatever_could_change_a_number_changes_the_version(
    tmp_path: Path, module: str, old: str, new: str
) -> None:
    root = _copy(tmp_path)
    _edited(root, module, (old, new))
    assert digest(counted(root)) != digest(counted())


def _changed(definition: ast.stmt, draw: random.Random) -> bool:
    """Change a number, a text or an operator; False where there is none to change."""
    texts = {id(node.value) for node in ast.walk(definition) if isinstance(node, ast.Expr)}
    places = [
        node
        for node in ast.walk(definition)
        if isinstance(node, ast.BinOp | ast.Compare)
        or (isinstance(node, ast.Constant) and node.value is not None and id(node) not in texts)
    ]
    if not places:
        return False
    node = draw.choice(places)
    if isinstance(node, ast.BinOp):
        node.op = ast.Mod() if isinstance(node.op, ast.Sub) else ast.Sub()
    elif isinstance(node, ast.Compare):
        node.ops[0] = ast.Eq() if isinstance(node.ops[0], ast.NotEq) else ast.NotEq()
    elif isinstance(node.value, str):
        node.value += "x"
    elif isinstance(node.value, int | float):
        node.value = 7 if node.value is True else -node.value - 1
    else:
        node.value = "other"
    return True


def test_a_change_in_any_definition_of_any_module_changes_the_version(tmp_path: Path) -> None:
    root, draw = _copy(tmp_path), random.Random(1)
    changed = set()
    for module in sorted({each.module for each in counted()}):
        path = _file(root, module)
        tree = ast.parse(path.read_bytes())
        for statement, (_, _, names) in zip(tree.body, _top_level(module), strict=True):
            here = {Definition(module, name) for name in names} & set(counted())
            if here and _changed(statement, draw):
                changed |= here
        path.write_text(ast.unparse(tree), "utf-8")
    # All others are made of names only.
    assert len(changed) > 0.8 * len(counted())
    assert {each.module for each in changed} == {each.module for each in counted()}
    others = counted(root)
    assert [each for each in changed if others[each].words == counted()[each].words] == []
    for each in {each.module: each for each in changed}.values():
        assert digest({**counted(), each: others[each]}) != digest(counted())


# -- the version itself


@pytest.mark.parametrize("python", ["python3.12", "python3.13", "python3.14"])
def test_every_python_makes_the_same_digest(python: str) -> None:
    if shutil.which(python) is None or subprocess.run([python, "-V"], check=False).returncode:
        pytest.skip(f"no {python} here")
    program = (
        "import sys; from pathlib import Path; from pipeline.version.digest import digest, forms; "
        "root, starts, left_out = sys.argv[1:]; "
        "print(digest(forms(Path(root), starts.split(), left_out.split())))"
    )
    done = subprocess.run(
        [python, "-c", program, str(ROOT), " ".join(version.STARTS), " ".join(version.LEFT_OUT)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == digest(counted())


def test_the_version_is_noted_for_the_source_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    whole = digest(counted())
    assert version._digest(ROOT) == whole
    (note,) = tmp_path.rglob("code_version")
    read, noted = note.read_text().split()
    assert noted == whole
    note.write_text(f"{read} noted\n")
    assert version._digest(ROOT) == "noted"
    for other in (f"{read[1:]}0 noted\n", "", "x"):
        note.write_text(other)
        assert version._digest(ROOT) == whole


def test_the_version_names_the_release_and_the_digest() -> None:
    assert version.code_version() == f"{metrics.__version__}+{digest(counted())[:8]}"
