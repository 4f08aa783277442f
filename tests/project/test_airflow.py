"""The DAGs of examples/airflow, run by an Airflow 3 in an environment of its own."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from airflows import COMMANDS, DAGS, LOCAL, ROOT, airflow, listening, need_airflow
from stores import LENIENT, deliver, in_history, random_lists, ranking, whole_history

from pipeline.cli.run import run as run_command
from pipeline.errors import NoData
from pipeline.runs.batches import backfill
from pipeline.settings.audit import Settings
from pipeline.settings.batch_keys import days
from pipeline.settings.load import load_settings

pytestmark = pytest.mark.airflow

NIGHTS = days(date(2026, 1, 5), date(2026, 1, 9))
GOOD, MISSING, REFUSED, UNFAIR, OTHER = NIGHTS
GAP = "2026-01-10"
FROM_THE_PAGE, OF_THE_PAGE = "2026-01-11", "2026-01-12"
"""Days from which on docs/airflow.md speaks of the demo's, and the one that it tries."""
SETTINGS = f"""\
attributes: [gender]
slices: [device]
metrics: [EXP, NDKL]
thresholds:
  EXP.MinMaxRatio: {{min: 0.999}}
evidence: {json.dumps(LENIENT | {"decide_by": "point"})}
threads: 1
"""
NIGHTLY, BASH = "evenrank_nightly", "evenrank_bash"
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    need_airflow()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Settings and logs: one night without, one that is refused."""
    return deliver_nights(tmp_path / "audit")


def deliver_nights(folder: Path) -> Path:
    for seed, night in enumerate(NIGHTS):
        rows = random_lists(seed)
        if night == REFUSED:
            rows = ranking("broken", "FM", relevance=1.2)
        if night != MISSING:
            deliver(folder, rows, batch=night)
    (folder / "audit.yaml").write_text(SETTINGS, "utf-8")
    return folder


def after(night: str) -> str:
    """When a night's audit starts: at three of the day after."""
    day = date.fromisoformat(night)
    return f"{date.fromordinal(day.toordinal() + 1)}T03:00:00+00:00"


def tasks(home: Any) -> list[tuple[str, str, int]]:
    """Tasks of the audit by the day of their batch: state, and number of the last try."""
    found: list[tuple[str, str, int]] = home.rows(
        "SELECT substr(r.data_interval_start, 1, 10), t.state, t.try_number FROM task_instance t "
        "JOIN dag_run r USING (dag_id, run_id) WHERE t.task_id = 'audit' ORDER BY 1"
    )
    return found


def statuses(settings: Settings) -> dict[str, str]:
    rows = in_history(settings, "SELECT batch, status FROM batches")
    return {row["batch"]: row["status"] for row in rows}


# -- single nights

TRIED: list[tuple[str, str, dict[str, Any], tuple[str, int], str]] = [
    (NIGHTLY, GOOD, {}, ("success", 1), f"{GOOD} done "),
    (NIGHTLY, MISSING, {}, ("failed", 2), f"exit code 1\n{MISSING}: no files"),
    (NIGHTLY, GAP, {"require_data": False}, ("skipped", 1), f"{GAP} no_data "),
    (NIGHTLY, REFUSED, {}, ("failed", 1), "the data was refused; the batch keeps its last good"),
    (NIGHTLY, UNFAIR, {"fail_on": ["breach"]}, ("failed", 1), "fairness gate failed; the scores"),
    (BASH, OTHER, {}, ("success", 1), ""),
]
"""DAG, night, what the run is given; state of its task, number of tries, and what the log says."""
ENDED = "-- ended: "
SEVERAL = f"""
import json, sys
from airflow.__main__ import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["airflow", *words]
    ended = None
    try:
        main()
    except SystemExit as end:
        ended = end.code
    print("{ENDED}", ended, sep="", flush=True)
"""
"""Runs several commands of Airflow in one process: most of their time goes into starting it."""


def inside(home: Any, program: str, *words: str) -> str:
    """What a program prints that Airflow's Python runs."""
    return subprocess.run(
        [COMMANDS / "python", "-c", program, *words],
        env=home.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    ).stdout


def commands_of_the_page() -> list[list[str]]:
    text = (ROOT / "docs" / "airflow.md").read_text("utf-8")
    return [shlex.split(line)[1:] for line in text.splitlines() if line.startswith("airflow ")]


def test_single_nights(folder: Path) -> None:
    """And the commands of docs/airflow.md, which leave a backfill that waits for a scheduler."""
    home = airflow(folder, "airflow")
    home.prepare()
    deliver(folder, random_lists(9), batch=OF_THE_PAGE)
    words = [
        ("dags", "test", dag, after(night), "--conf", json.dumps(conf))
        for dag, night, conf, *_ in TRIED
    ]
    told_by_the_page = commands_of_the_page()
    assert {each[0] for each in told_by_the_page} == {"variables", "dags", "backfill", "pools"}
    printed = inside(home, SEVERAL, json.dumps([*words, *told_by_the_page]))
    ended = [each for each in tasks(home) if each[0] < FROM_THE_PAGE]
    parts = printed.split(ENDED)
    assert [part.splitlines()[0] for part in parts[len(TRIED) + 1 :]] == (
        ["None"] * len(told_by_the_page)
    ), printed
    waiting = [day for day, state in runs(home).items() if state == "queued"]
    assert sorted(waiting) == [f"2026-01-{day}" for day in (17, 18, 19, 20)]
    for at, (_, night, _, told, text) in enumerate(TRIED):
        assert (night, *told) in ended, printed
        assert text in parts[at], printed
        assert parts[at + 1].startswith("DagRun failed" if told[0] == "failed" else "None"), printed
    assert len(ended) == len(TRIED)
    done = [night for _, night, _, told, _ in TRIED if told[0] == "success"] + [OF_THE_PAGE]
    assert [each["batches"][0]["batch"] for each in handed_on(home)] == done
    assert statuses(load_settings(folder / "audit.yaml")) == {
        GOOD: "done",
        MISSING: "no_data",
        GAP: "no_data",
        REFUSED: "refused",
        UNFAIR: "done",
        OTHER: "done",
        OF_THE_PAGE: "done",
    }


ENDING = """
import sys
from evenrank_nightly import _start
print("code", _start([sys.executable, "-uc", sys.argv[1]], "."))
"""
SLOW = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
print("begun")
time.sleep(600)
"""


def test_what_ends_the_task_ends_the_audit(tmp_path: Path) -> None:
    """The signal reaches the task alone, as with Airflow before its tasks had process groups."""
    environment = airflow(tmp_path, "airflow").environment | {"PYTHONPATH": str(DAGS)}
    with subprocess.Popen(
        [COMMANDS / "python", "-uc", ENDING, SLOW],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as task:
        assert task.stdout
        try:
            assert task.stdout.readline() == "begun\n"
            task.terminate()
            assert task.stdout.readline() == "code 143\n"
        finally:
            task.kill()


PROVIDER = """
import json, sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from airflow.sdk import BaseOperator

class Pod(BaseOperator):
    def __init__(self, *, image, cmds, arguments, volumes, volume_mounts, do_xcom_push,
                 skip_on_exit_code, termination_grace_period, **more):
        super().__init__(**more)
        self.arguments, self.skip = arguments, skip_on_exit_code

def part(**said):
    return said

models = SimpleNamespace(
    V1Volume=part, V1VolumeMount=part, V1PersistentVolumeClaimVolumeSource=part
)
package = "airflow.providers.cncf"
for name, said in {
    package: {}, package + ".kubernetes": {}, package + ".kubernetes.operators": {},
    package + ".kubernetes.operators.pod": {"KubernetesPodOperator": Pod},
    "kubernetes": {}, "kubernetes.client": {"models": models},
}.items():
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    vars(module).update(said)
    sys.modules[name] = module
import evenrank_pod
[task] = evenrank_pod.pod_dag.tasks
print(json.dumps([task.arguments[0], task.skip]))
"""


def test_the_pod_is_told_what_the_command_knows(tmp_path: Path) -> None:
    """With stand-ins for Kubernetes: what would run there, without running it."""
    home = airflow(tmp_path, "airflow")
    home.environment["PYTHONPATH"] = str(DAGS)
    line, skipped = json.loads(inside(home, PROVIDER).splitlines()[-1])
    assert skipped == NoData.exit_code
    words = shlex.split(re.sub(r"{{.*?}}", "", line))
    assert words[:3] == ["exec", "evenrank", "run"]
    known = {option for each in run_command.params for option in each.opts}
    assert {word for word in words if word.startswith("--")} <= known
    assert "'' if dag_run.run_type == 'backfill' else '--require-data'" in line


def handed_on(home: Any) -> list[dict[str, Any]]:
    """What the audits gave to XCom: their summaries, and nothing that grows with the data."""
    rows = home.rows("SELECT value FROM xcom WHERE task_id = 'audit' AND key = 'return_value'")
    texts = [value for (value,) in rows]
    assert all(len(text) < 4096 for text in texts)
    found = [json.loads(text) for text in texts]
    # BashOperator hands on its last line as it is.
    found = [json.loads(each) if isinstance(each, str) else each for each in found]
    return found


# -- a backfill by the scheduler


@pytest.fixture
def running(folder: Path) -> Iterator[Any]:
    """An Airflow that starts with a backfill of a DAG that is paused."""
    create = ["backfill", "create", "--dag-id", NIGHTLY, "--max-active-runs", "2"]
    create += ["--from-date", NIGHTS[0], "--to-date", f"{NIGHTS[-1]}T03:00:00+00:00"]
    home = airflow(folder, "airflow")
    home.prepare()
    printed = inside(home, SEVERAL, json.dumps([["dags", "reserialize"], create]))
    assert printed.count(f"{ENDED}None\n") == 2, printed
    with home:
        home.wait(lambda: home.answers() and home.knows(NIGHTLY), "starting")
        yield home


def runs(home: Any) -> dict[str, str]:
    """States of the runs by their day."""
    return dict(home.rows("SELECT substr(data_interval_start, 1, 10), state FROM dag_run"))


@linux
def test_a_backfill_gives_the_history_of_evenrank_backfill(
    folder: Path, tmp_path: Path, running: Any
) -> None:
    beats = "SELECT latest_heartbeat FROM job WHERE job_type = 'SchedulerJob'"
    running.wait(lambda: bool(running.rows(beats)), "a scheduler")
    before = running.rows(beats)
    running.wait(lambda: running.rows(beats) != before, "a round of the scheduler")
    assert runs(running) == dict.fromkeys(NIGHTS, "queued")

    running.call("dags", "unpause", "--yes", NIGHTLY)
    running.wait(lambda: not {"queued", "running"} & {*runs(running).values()}, "the backfill")
    assert listening(running.processes()) == {"0100007F"}
    states = dict.fromkeys(NIGHTS, "success") | {MISSING: "skipped", REFUSED: "failed"}
    assert tasks(running) == [(night, states[night], 1) for night in NIGHTS]
    assert runs(running) == states | {MISSING: "success"}
    scored = [night for night in NIGHTS if states[night] == "success"]
    assert sorted(each["batches"][0]["batch"] for each in handed_on(running)) == scored
    events = [json.loads(extra) for (extra,) in running.rows("SELECT extra FROM asset_event")]
    assert sorted(night for extra in events for night in extra if night in NIGHTS) == scored

    other = load_settings(deliver_nights(tmp_path / "other") / "audit.yaml")
    list(backfill(other, NIGHTS))
    own = load_settings(folder / "audit.yaml")
    assert statuses(own) == statuses(other)
    assert whole_history(own) == whole_history(other)
    hashes = "SELECT batch, result_hash FROM batches WHERE result_hash IS NOT NULL ORDER BY batch"
    assert in_history(own, hashes) == in_history(other, hashes)
    assert len(in_history(own, hashes)) == len(scored)

    assert len(running.processes()) >= len(LOCAL.COMPONENTS)
    running.stop()
    assert running.processes() == []
