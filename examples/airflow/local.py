"""An Airflow 3 for one person or one test, which listens on 127.0.0.1 only.

`airflow standalone` will not do: its scheduler serves logs on every address of the machine.
Needs nothing beyond Python's own library, so that any Python can start it.

Run as a program it is the demo of `make airflow-demo`: logs of five days, and last night audited.
"""

import argparse
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COMPONENTS = {
    "api-server": ("api-server", "--host", "127.0.0.1", "--workers", "1"),
    # Its log server would listen everywhere.
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
}
"""What an executor on the same machine needs; a triggerer is for tasks that defer."""
_STOPPING = 60.0
_POLL = 0.25
_ATTEMPTS = 5


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on at the moment."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Local:
    """Airflow with its database, logs and settings in ``home``; `with` starts and ends it.

    Takes the folder of Airflow's commands, Airflow Variables by name, and further settings as
    environment variables.
    """

    def __init__(
        self,
        home: Path,
        commands: Path,
        *,
        variables: Mapping[str, str],
        settings: Mapping[str, str] | None = None,
        port: int | None = None,
    ) -> None:
        self.home = home
        self.commands = commands
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("AIRFLOW") and name not in ("PYTHONPATH", "VIRTUAL_ENV")
        }
        self.environment = {
            **inherited,
            "PATH": f"{commands}{os.pathsep}{inherited.get('PATH', os.defpath)}",
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(HERE / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__PARALLELISM": "2",
            # SQLite takes one writer at a time; others wait this long, in seconds.
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}?timeout=60",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__API__BASE_URL": self.url,
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
            **{f"AIRFLOW_VAR_{name.upper()}": value for name, value in variables.items()},
            **(settings or {}),
        }
        self._running: list[subprocess.Popen[bytes]] = []
        self._sessions: set[int] = set()

    def prepare(self) -> None:
        """Make the database, which also writes the secrets that the components share."""
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.call("db", "migrate")

    def call(self, *words: str, expected: int = 0) -> str:
        """What an Airflow command prints; RuntimeError if it ends with another exit code.

        SQLite may refuse to write while a component does, which changes nothing: the command is
        called again then.
        """
        for _ in range(_ATTEMPTS):
            ended = subprocess.run(
                [self.commands / "airflow", *words],
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            if ended.returncode == expected or "database is locked" not in ended.stdout:
                break
        if ended.returncode != expected:
            raise RuntimeError(f"airflow {' '.join(words)}: {ended.returncode}\n{ended.stdout}")
        return ended.stdout

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Rows of a query on Airflow's database."""
        path = f"file:{self.home / 'airflow.db'}?mode=ro"
        with closing(sqlite3.connect(path, uri=True, timeout=30)) as connection:
            return connection.execute(query, values).fetchall()

    def wait(self, until: Callable[[], bool], what: str, seconds: float = 300) -> None:
        """Return once ``until`` holds; RuntimeError after ``seconds``, or if a component ended."""
        end = time.monotonic() + seconds
        while not until():
            ended = [each.args for each in self._running if each.poll() is not None]
            if ended or time.monotonic() > end:
                raise RuntimeError(f"{what}: not within {seconds:g} s; ended: {ended}; {self.home}")
            time.sleep(_POLL)

    def answers(self) -> bool:
        """Whether the server takes connections."""
        with socket.socket() as trying:
            return trying.connect_ex(("127.0.0.1", self.port)) == 0

    def knows(self, dag: str) -> bool:
        """Whether a DAG was read, so that commands about it work."""
        return bool(self.rows("SELECT 1 FROM serialized_dag WHERE dag_id = ?", dag))

    def processes(self) -> list[int]:
        """What runs of the components that were started, with their tasks and audits."""
        listed = subprocess.run(["ps", "-A", "-o", "pid="], stdout=subprocess.PIPE, check=True)
        found = []
        for process in map(int, listed.stdout.split()):
            try:
                if os.getsid(process) in self._sessions:
                    found.append(process)
            except ProcessLookupError:
                continue
        return found

    def __enter__(self) -> Self:
        """Start the components, each as the head of a session: tasks leave its process group."""
        self.prepare()
        for name, words in COMPONENTS.items():
            with (self.home / f"{name}.log").open("wb") as log:
                self._running.append(
                    subprocess.Popen(
                        [self.commands / "airflow", *words],
                        env=self.environment,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                )
            self._sessions.add(self._running[-1].pid)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End every process; what does not end when asked to is killed."""
        # The server goes last: tasks that are ending still report to it.
        for each in reversed(self._running):
            each.terminate()
            try:
                each.wait(_STOPPING)
            except subprocess.TimeoutExpired:
                each.kill()
                each.wait()
        self._running.clear()
        for process in self.processes():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def demo(folder: Path, evenrank: Path, commands: Path, port: int) -> None:
    """Write logs of five days into ``folder``, start Airflow on them, and wait for Ctrl-C."""
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    first = yesterday - timedelta(days=4)
    if not (folder / "audit.yaml").exists():
        made = ("generate", "--out", folder, "--start", first, "--days", "5", "--lists", "300")
        subprocess.run([evenrank, *map(str, made)], check=True)
        said = (ROOT / "audit.yaml").read_text("utf-8")
        kept = [line for line in said.splitlines() if not line.startswith("  end:")]
        text = "\n".join(kept).replace("start: 2026-01-01", f"start: {first}")
        (folder / "audit.yaml").write_text(text + "\n", "utf-8")
    variables = {"evenrank_bin": str(evenrank), "evenrank_home": str(folder)}
    with Local(folder / "airflow", commands, variables=variables, port=port) as airflow:
        print("Starting Airflow; this takes half a minute.", flush=True)
        airflow.wait(lambda: airflow.answers() and airflow.knows("evenrank_nightly"), "starting")
        airflow.call("dags", "unpause", "--yes", "evenrank_nightly")
        users = airflow.home / "simple_auth_manager_passwords.json.generated"
        name, password = next(iter(json.loads(users.read_text("utf-8")).items()))
        print(
            f"\nAirflow is at {airflow.url}/dags/evenrank_nightly\n"
            f"  user {name}, password {password}\n"
            f"It audits {yesterday}. For the days before: Trigger, Backfill, {first} to\n"
            f"{yesterday}; or look at what a run gave back: audit, XCom.\n"
            f"Results and their page: {folder / 'store'}\n"
            f"Ctrl-C ends everything; the folder stays.",
            flush=True,
        )
        try:
            signal.pause()
        except KeyboardInterrupt:
            print("\nEnding Airflow.", flush=True)


def main() -> None:
    """Read the command line and run the demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where logs, results and Airflow's files go")
    parser.add_argument("--evenrank", type=Path, default=ROOT / ".venv" / "bin" / "evenrank")
    parser.add_argument("--commands", type=Path, default=ROOT / ".venv-airflow" / "bin")
    parser.add_argument("--port", type=int, default=8080)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with socket.socket() as trying:
        trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trying.bind(("127.0.0.1", given.port))
        except OSError:
            sys.exit(f"Port {given.port} is taken; choose another with --port.")
    demo(given.folder.absolute(), given.evenrank.absolute(), given.commands.absolute(), given.port)


if __name__ == "__main__":
    main()
