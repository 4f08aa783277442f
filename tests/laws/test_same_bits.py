"""The same rows give the same bits: whatever the threads, the order, the files or the format."""

import os
import subprocess
import sys
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from cases import some
from count_tables import from_files
from logs import DAY, every_measure, same, scored, scored_files, write

from metrics import METRICS

LABELS = [measure.label for measure in every_measure(p=0.3, decay=0.9, k=10, metrics=METRICS)]
LISTS, DEPTH = 4_500, 30
"""Two row groups of DuckDB and more, so that several threads have work at once."""

Table = pyarrow.Table
Bits = dict[Any, Any]


def log(lists: int, depth: int, seed: int = 5) -> Table:
    """A log whose relevance and clicks need all 17 digits."""
    chance = np.random.default_rng(seed)
    rows = lists * depth
    groups = np.array(["a", "b", "c", "Zoë", "東京", None], dtype=object)
    return pyarrow.table(
        {
            "list_id": np.repeat([f"list {number}" for number in range(lists)], depth),
            "item_id": np.concatenate(
                [chance.choice(4 * depth, depth, replace=False) for _ in range(lists)]
            ).astype(str),
            "rank": np.tile(np.arange(1, depth + 1), lists),
            "relevance": chance.random(rows) ** 4,
            "click": chance.random(rows) / 3,
            "query_id": np.repeat([f"query {number % 7}" for number in range(lists)], depth),
            "reference_rank": np.concatenate([chance.permutation(depth) + 1 for _ in range(lists)]),
            "propensity": 1 / (1 + chance.random(rows)),
            "predicted_click": chance.random(rows),
            "group": groups[chance.integers(0, len(groups), rows)],
            "device": np.repeat(np.array(["app", "web"])[np.arange(lists) % 2], depth),
        }
    )


def shuffled(table: Table) -> Table:
    return table.take(np.random.default_rng(9).permutation(table.num_rows))


EVIDENCE = {"resamples": 60, "noise_draws": 200}
scored_table = partial(scored, metrics=LABELS, slices=["device"], settings={"evidence": EVIDENCE})
scored_log = partial(scored_files, metrics=LABELS, slices=["device"], evidence=EVIDENCE)


@pytest.fixture(scope="module")
def large() -> Table:
    return log(LISTS, DEPTH)


@pytest.fixture(scope="module")
def whole(large: Table, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Bits]:
    path = write(large, tmp_path_factory.mktemp("large") / "log.parquet")
    return path, same(scored_log([path], threads=1))


@pytest.mark.parametrize("threads", some([2, 4], few=1))
def test_threads(whole: tuple[Path, Bits], threads: int) -> None:
    path, expected = whole
    assert same(scored_log([path], threads=threads)) == expected


def test_row_order(large: Table, whole: tuple[Path, Bits], tmp_path: Path) -> None:
    path = write(shuffled(large), tmp_path / "log.parquet")
    assert same(scored_log([path], threads=2)) == whole[1]


def test_many_files(large: Table, whole: tuple[Path, Bits], tmp_path: Path) -> None:
    # Of unequal length, with lists torn apart between them.
    mixed = shuffled(large)
    cuts = [0, 1, 1000, 100_000, mixed.num_rows]
    paths = [
        write(mixed.slice(start, end - start), tmp_path / f"part-{number}.parquet")
        for number, (start, end) in enumerate(pairwise(cuts))
    ]
    assert same(scored_log(paths[::-1], threads=4)) == whole[1]


@pytest.fixture(scope="module")
def small() -> tuple[Table, Bits]:
    table = log(40, 12)
    return table, same(scored_table(table))


FORMATS = ["parquet", "csv", "jsonl", "csv.gz", "jsonl.gz"]


@pytest.mark.parametrize("suffix", some(FORMATS, few=3))
def test_formats(small: tuple[Table, Bits], tmp_path: Path, suffix: str) -> None:
    table, expected = small
    assert same(scored_log([write(table, tmp_path / f"log.{suffix}")])) == expected


def test_formats_mixed(small: tuple[Table, Bits], tmp_path: Path) -> None:
    table, expected = small
    paths = [
        write(table.slice(start, 160), tmp_path / name)
        for start, name in ((0, "b.csv"), (160, "c.parquet"), (320, "a.jsonl.gz"))
    ]
    assert same(scored_log(paths)) == expected


def test_attributes_from_the_item_table(small: tuple[Table, Bits], tmp_path: Path) -> None:
    table = small[0]
    items = sorted(set(table["item_id"].to_pylist()))
    rows = [{"item_id": item, "group": "abc"[int(item) % 3]} for item in items]
    group_of = {row["item_id"]: row["group"] for row in rows}
    bare = table.drop_columns(["group"])
    full = bare.append_column(
        "group", pyarrow.array([group_of[item] for item in bare["item_id"].to_pylist()])
    )
    pool = write(rows, tmp_path / "items.csv")
    logged = scored_log([write(full, tmp_path / "full.parquet")], pool)
    joined = scored_log([write(bare, tmp_path / "bare.csv")], pool)
    assert same(joined) == same(logged)


@pytest.mark.slow
def test_another_process(small: tuple[Table, Bits], tmp_path: Path) -> None:
    # Sets iterate in another order there.
    path = write(small[0], tmp_path / "log.parquet")
    program = (
        "import sys; from pathlib import Path; from test_same_bits import *; "
        "print(sorted(map(repr, same(scored_log([Path(sys.argv[1])])).items())))"
    )
    folders = [str(Path(__file__).parent), *filter(None, sys.path)]
    said = {"PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(folders)}
    answer = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        capture_output=True, text=True, check=True, env={**os.environ, **said}, timeout=120,
    )  # fmt: skip
    assert answer.stdout.strip() == str(sorted(map(repr, small[1].items())))


def test_a_second_run(small: tuple[Table, Bits]) -> None:
    assert same(scored_table(small[0])) == small[1]


# --- The tables that scores are made of


SPLIT = (0, 1, 1000, 7_000)
"""Where a log is cut into files, lists torn apart between them."""


def tables(
    folder: Path, table: Table, *, files: bool = False, suffix: str = "parquet", **said: Any
) -> dict[str, str]:
    """Every count table of a log, to the bit, measured from one file or from several."""
    cuts = [*(SPLIT if files else SPLIT[:1]), table.num_rows]
    paths = [
        write(table.slice(start, end - start), folder / "logs" / DAY / f"{number}.{suffix}")
        for number, (start, end) in enumerate(pairwise(cuts))
    ]
    found = from_files(folder, paths, slices=["device"], metrics=LABELS, **said)
    # A double's repr says all its bits.
    return {name: repr(rows) for name, rows in found.items()}


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Table, dict[str, str]]:
    table = log(600, 20)
    return table, tables(tmp_path_factory.mktemp("counted"), table, threads=1)


WAYS = list(product([1, 2, 4], [False, True], [False, True]))


@pytest.mark.parametrize(("threads", "mixed", "files"), some(WAYS, few=4))
def test_tables(
    counted: tuple[Table, dict[str, str]], threads: int, mixed: bool, files: bool, tmp_path: Path
) -> None:
    table, expected = counted
    log_of = shuffled(table) if mixed else table
    assert tables(tmp_path, log_of, files=files, threads=threads) == expected


@pytest.mark.parametrize("suffix", ["csv", "jsonl.gz"])
def test_tables_of_formats(
    counted: tuple[Table, dict[str, str]], suffix: str, tmp_path: Path
) -> None:
    table, expected = counted
    assert tables(tmp_path, shuffled(table), files=True, suffix=suffix, threads=2) == expected


@pytest.mark.parametrize("chunk_rows", [777, 5_000])
def test_tables_of_chunks(
    counted: tuple[Table, dict[str, str]],
    chunk_rows: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("one_pass", "list_stats"):
        monkeypatch.setattr(f"pipeline.counts.{module}.CHUNK_ROWS", chunk_rows)
    table, expected = counted
    assert tables(tmp_path, shuffled(table), threads=2) == expected


# -- processors

PROCESSORS = {
    "as it is": "",
    "without AVX-512": "X86_V4 AVX512_ICL AVX512_SPR AVX512F AVX512CD AVX512_SKX AVX512_CLX "
    "AVX512_CNL",
    "without AVX2": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR AVX2 FMA3 AVX512F AVX512CD AVX512_SKX "
    "AVX512_CLX AVX512_CNL ASIMDHP ASIMDDP ASIMDFHM SVE VSX3 VSX4",
}
"""Features that numpy is to make no use of, by the names of all its versions."""
OLD_LIBRARY = "glibc.cpu.hwcaps=-AVX512F,-AVX2,-AVX2_Usable,-FMA,-FMA_Usable,-FMA4"
"""Features that the C library is to make no use of, for its logarithms and exponentials."""
_ON_A_PROCESSOR = """
import hashlib, sys, warnings
import numpy as np
sys.path[:0] = {paths!r}
from count_tables import from_files
from logs import every_measure, same, scored_files
from metrics import METRICS
from pathlib import Path
from pipeline.trends.charts import charts, p_values
from pipeline.trends.residuals import standardised
from scipy.special import log_ndtr
numbers = np.random.default_rng(1).random(100_000) + 1e-3
functions = (np.log, np.log2, np.log1p, np.exp, np.exp2, np.expm1, log_ndtr)
own = [hashlib.sha256(each(numbers).tobytes()).hexdigest() for each in functions]
labels = [each.label for each in every_measure(p=0.3, decay=0.9, k=10, metrics=METRICS)]
log = [Path({log!r})]
scores = same(scored_files(log, metrics=labels, slices=["device"], evidence={evidence!r}))
values = np.random.default_rng(2).normal(size=(60, 30))
where = np.ones(values.shape, dtype=bool)
found = standardised(values, where, np.arange(60) % 7, window=28, least=7, weeks=2, hold=7)
stood = charts(found.residual, where, smoothing=0.2, drift=0.5, window=28)
p = p_values(found.residual, stood.ewma, stood.cusum, 0.5)
for said in (own, (scores, found.residual.tobytes(), p.tobytes())):
    print(hashlib.sha256(repr(said).encode()).hexdigest())
"""


@pytest.mark.slow
def test_processors(tmp_path: Path) -> None:
    """Every score of every metric, with intervals, noise floors and trends, on any of them."""
    path = write(log(300, DEPTH), tmp_path / "log.parquet")
    helpers = [str(Path(__file__).parents[1] / "helpers"), str(Path(__file__).parents[2])]
    program = _ON_A_PROCESSOR.format(paths=helpers, log=str(path), evidence=EVIDENCE)
    of_libraries, of_ours = {}, {}
    there = {name: {"NPY_DISABLE_CPU_FEATURES": said} for name, said in PROCESSORS.items()}
    there["an old C library"] = {"GLIBC_TUNABLES": OLD_LIBRARY}
    for name, said in there.items():
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program],
            env=os.environ | said, check=True, capture_output=True, text=True,
        )  # fmt: skip
        of_libraries[name], of_ours[name] = done.stdout.split()[-2:]
    assert len(set(of_ours.values())) == 1, of_ours
    alike = [name for name in list(there)[1:] if of_libraries[name] == of_libraries["as it is"]]
    if alike:
        pytest.skip(f"the libraries compute alike here as it is and with {', '.join(alike)}")
