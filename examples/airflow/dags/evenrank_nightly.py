"""Audits yesterday's rankings every night, and looks at the whole store every week.

One task for each settings file.

Evenrank runs in an environment of its own; what it needs to know are three Airflow Variables, or
environment variables of the same names after AIRFLOW_VAR_:

- evenrank_bin: its command, as in /opt/evenrank/.venv/bin/evenrank
- evenrank_home: the folder in which it is started, where relative paths begin
- evenrank_configs: settings files as a JSON list, by default ["audit.yaml"]

docs/airflow.md says how to set it up, and how to backfill.
"""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from airflow.sdk import Asset, CronDataIntervalTimetable, Param, Variable, dag, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

HISTORY = Asset(name="evenrank_history", uri="evenrank://history")
"""Has an event for every batch whose scores were stored; DAGs can be scheduled on it."""

DEFAULTS = {
    # Logs come late and stores are busy: four more attempts within about two hours.
    "retries": int(os.environ.get("EVENRANK_RETRIES", "4")),
    "retry_delay": timedelta(seconds=int(os.environ.get("EVENRANK_RETRY_SECONDS", "300"))),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(hours=1),
}
NO_DATA, BUSY = 4, 75
FINAL = {
    2: "the settings or the call cannot be used",
    3: "the data was refused; the batch keeps its last good result",
    5: "a fairness gate failed; the scores are stored",
}
"""Exit codes that another attempt does not change."""
_OF_PYTHON = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}


def _start(command: list[str], home: str) -> int:
    """The exit code of a command, whose output goes to the log of the task.

    Airflow ends a task by SIGTERM and, seconds later, SIGKILL.  The command hears of it too: an
    audit that is told to stop leaves its batch as it was.
    """
    # Airflow's packages would stand before those of the command's own environment.
    env = {name: value for name, value in os.environ.items() if name not in _OF_PYTHON}
    child: subprocess.Popen[str] | None = None

    def stop(*_: object) -> None:
        if child:
            child.terminate()

    before = signal.signal(signal.SIGTERM, stop)
    try:
        child = subprocess.Popen(
            command, cwd=home, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        for line in child.stdout or ():
            print(line, end="")
        return child.wait()
    finally:
        stop()
        signal.signal(signal.SIGTERM, before)


def _said(summary: dict[str, Any]) -> str:
    """What went wrong, in a line or a few."""
    batches = summary.get("batches", [])
    worst = [
        f"{batch['batch']}: {score['label']} of {score['attribute']} is {score['value']:.3g}, "
        f"worst off {score['worst_group']}"
        for batch in batches
        for score in batch["worst"]
    ]
    told = [f"{batch['batch']}: {batch['message']}" for batch in batches if batch["message"]]
    # Why a gate failed: breaches, of which the worst are named, or that nothing was judged.
    why = [*summary.get("failed_on", ()), *worst]
    return "\n".join([text for text in (summary.get("error"), *told) if text] or why)


@dag(
    # Named, since "@daily" has no interval in Airflow 3: its data_interval_start is the night of
    # the run.  Here it is the night before, so that the batch is the day that has ended.
    schedule=CronDataIntervalTimetable("0 3 * * *", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    default_args=DEFAULTS,
    params={
        "require_data": Param(
            None,
            type=["null", "boolean"],
            description="Whether a day without logs fails; by default in all but backfills.",
        ),
        "fail_on": Param(
            [],
            type="array",
            items={"enum": ["breach", "shift", "missing", "gate"]},
            description="What fails the task although its scores are stored.",
        ),
    },
    tags=["evenrank"],
    doc_md=__doc__,
)
def evenrank_nightly() -> None:
    """One task finds the settings files, and one task audits by each of them."""

    @task
    def settings_files() -> list[str]:
        return Variable.get("evenrank_configs", default=["audit.yaml"], deserialize_json=True)

    @task(outlets=[HISTORY], map_index_template="{{ task.op_kwargs['config'] }}")
    def audit(
        config: str,
        data_interval_start: datetime | None = None,
        dag_run: Any = None,
        params: Any = None,
        outlet_events: Any = None,
    ) -> dict[str, Any]:
        """The summary of the audit, which is all that goes to XCom."""
        assert data_interval_start
        required = params["require_data"]
        if required is None:
            required = dag_run.run_type != "backfill"
        with TemporaryDirectory() as folder:
            written = Path(folder, "summary.json")
            command = [
                Variable.get("evenrank_bin", default="evenrank"),
                "run",
                "--log",
                # The zone of the schedule in the settings says which day that is.
                f"--batch={data_interval_start.isoformat()}",
                f"--config={config}",
                f"--summary={written}",
                *(["--require-data"] if required else []),
                *(f"--fail-on={kind}" for kind in params["fail_on"]),
            ]
            code = _start(command, Variable.get("evenrank_home", default="."))
            summary = json.loads(written.read_text("utf-8")) if written.exists() else {}
        if code == NO_DATA:
            raise AirflowSkipException(_said(summary))
        if code in FINAL:
            raise AirflowFailException(f"{FINAL[code]} (exit code {code})\n{_said(summary)}")
        if code:
            # 75 is a store that another process held for too long.
            raise AirflowException(f"exit code {code}\n{_said(summary)}")
        outlet_events[HISTORY].extra = {
            "config": config,
            **{
                batch["batch"]: {name: batch[name] for name in ("revision", "breaches", "gated")}
                for batch in summary["batches"]
            },
        }
        return summary

    start: Callable[..., Any] = audit.expand
    start(config=settings_files())


@dag(
    schedule=CronDataIntervalTimetable("0 9 * * 0", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    default_args=DEFAULTS,
    tags=["evenrank"],
    doc_md=__doc__,
)
def evenrank_weekly() -> None:
    """One task finds the settings files, and one task reads the whole store of each of them."""

    @task
    def settings_files() -> list[str]:
        return Variable.get("evenrank_configs", default=["audit.yaml"], deserialize_json=True)

    @task(map_index_template="{{ task.op_kwargs['config'] }}")
    def verify(config: str) -> None:
        command = [
            Variable.get("evenrank_bin", default="evenrank"),
            "verify",
            f"--config={config}",
        ]
        code = _start(command, Variable.get("evenrank_home", default="."))
        if code == BUSY:
            raise AirflowException(f"the store is in use (exit code {code})")
        if code not in (0, NO_DATA):
            raise AirflowFailException(f"exit code {code}: the log of this task says what is wrong")

    start: Callable[..., Any] = verify.expand
    start(config=settings_files())


evenrank_nightly()
evenrank_weekly()
