"""Processes to be killed, cheaply: one that has imported everything forks a child per command.

The parent of all children is this file run as a script, with the calls of ``faults.c`` between it
and the system.  It never opens a database itself: threads do not survive a fork.  ``Children`` is
how tests speak to it; ``Plan`` what the next child is to meet.
"""

import errno
import json
import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any

COUNT, KILL, TEAR, FAIL, FULL, SIGNAL = range(6)
"""What becomes of the chosen call: as in ``faults.c``."""
_NUMBERS = struct.Struct("7q")
_NAME, _RECORDS, _SHOWN = 1024, 8192, 64
_SIZE = _NUMBERS.size + 2 * _NAME + _RECORDS * _SHOWN
_SOURCE = Path(__file__).with_name("faults.c")
_LONGEST = 120
"""Seconds after which a child is taken to hang, and ends by SIGALRM."""


def why_not() -> str | None:
    """Why children cannot be made to fail here; None where they can."""
    if not sys.platform.startswith("linux"):
        return "calls are intercepted on Linux only"
    return None if shutil.which("cc") else "there is no C compiler (cc)"


@dataclass(frozen=True)
class Plan:
    """What becomes of the ``at``-th call that changes a file below the store.

    ``late``: calls are counted only once the batch is computed.  ``journal``: what calls do is
    noted in that file.
    """

    mode: int = COUNT
    at: int = 0
    error: int = errno.EIO
    late: bool = False
    journal: Path | None = None


@dataclass(frozen=True)
class Ended:
    """How a child ended: what it said, the calls that it made, and how many of them failed."""

    code: int | None
    sign: int | None
    out: str
    err: str
    calls: tuple[str, ...]
    hit: int

    @property
    def killed(self) -> bool:
        """Whether it was killed as asked."""
        return self.sign == signal.SIGKILL


class Children:
    """Children that run commands of the command line in the folder of an audit.

    ``failing``: their calls can be made to fail, and are counted.
    """

    def __init__(self, folder: Path, *, failing: bool = True) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._plan = folder / "plan"
        self._said = folder / "said"
        self._plan.write_bytes(bytes(_SIZE))
        environment = {
            **os.environ,
            "EVENRANK_FAULTS": str(self._plan),
            "OPENBLAS_NUM_THREADS": "1",
            "COLUMNS": "80",
        }
        if failing:
            shim = environment["LD_PRELOAD"] = str(folder / "faults.so")
            command = ["cc", "-shared", "-fPIC", "-O1", "-o", shim, str(_SOURCE), "-ldl"]
            subprocess.run(command, check=True, timeout=60)
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self._map = _mapped(self._plan)
        self._heard()

    def __enter__(self) -> "Children":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._process:
            self._process.kill()
        self._map.close()

    def _heard(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the parent of all children has ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _asked(self, **said: Any) -> dict[str, Any]:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(said) + "\n")
        self._process.stdin.flush()
        return self._heard()

    def start(
        self, folder: Path, words: Sequence[str], plan: Plan | None = None, computed: str = ""
    ) -> int:
        """Start ``evenrank words`` in ``folder``; returns the process id.

        ``computed`` names a file in ``folder`` that is taken for what the batch computes.
        """
        said = plan or Plan()
        armed = int(plan is not None and not said.late)
        numbers = (armed, said.mode, said.at, said.error, 0, 0, int(said.journal is not None))
        names = (str(folder.resolve() / "store"), str(said.journal or ""))
        self._map[: _NUMBERS.size] = _NUMBERS.pack(*numbers)
        self._map[_NUMBERS.size : _NUMBERS.size + 2 * _NAME] = b"".join(
            name.encode().ljust(_NAME, b"\0") for name in names
        )
        started = self._asked(
            folder=str(folder), words=list(words), computed=computed, late=said.late
        )
        return int(started["pid"])

    def wait(self, pid: int) -> Ended:
        """Wait until a child has ended."""
        status = self._asked(wait=pid)["status"]
        out, err = (
            Path(f"{self._said}.{pid}.{name}").read_text(encoding="utf-8", errors="replace")
            for name in ("out", "err")
        )
        for name in ("out", "err"):
            Path(f"{self._said}.{pid}.{name}").unlink()
        _, _, _, _, count, hit, _ = _NUMBERS.unpack(self._map[: _NUMBERS.size])
        begin = _NUMBERS.size + 2 * _NAME
        calls = tuple(
            self._map[begin + at * _SHOWN : begin + (at + 1) * _SHOWN].rstrip(b"\0").decode()
            for at in range(min(count, _RECORDS))
        )
        self._map[begin : begin + len(calls) * _SHOWN] = bytes(len(calls) * _SHOWN)
        ended = os.WIFEXITED(status)
        return Ended(
            os.WEXITSTATUS(status) if ended else None,
            None if ended else os.WTERMSIG(status),
            out,
            err,
            calls,
            hit,
        )

    def run(
        self, folder: Path, words: Sequence[str], plan: Plan | None = None, computed: str = ""
    ) -> Ended:
        """Start a command and wait for its end."""
        return self.wait(self.start(folder, words, plan, computed))


def _mapped(path: Path) -> mmap.mmap:
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), _SIZE)


# -- the other side: the parent of all children


def _serve() -> None:
    """Fork a child per request, and say how it ended when asked."""
    # What commands import when they need it.
    for name in ("monitoring.alerts", "runs.batches", "terminal.printing"):
        import_module(f"pipeline.{name}")
    import_module("pandera.strategies.pandas_strategies")
    from pipeline.cli.main import main
    from pipeline.runs import finish
    from pipeline.version import code_version

    code_version()
    # The page is made of what is published by then; a second of charts would double each trial.
    finish.renew_report = lambda *_: None  # type: ignore[assignment]
    plan = _mapped(Path(os.environ["EVENRANK_FAULTS"]))
    said = Path(os.environ["EVENRANK_FAULTS"]).with_name("said")
    print("{}", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            print(json.dumps({"status": status}), flush=True)
            continue
        pid = os.fork()
        if pid:
            print(json.dumps({"pid": pid}), flush=True)
            continue
        signal.alarm(_LONGEST)
        for number, name in ((1, "out"), (2, "err")):
            file = os.open(f"{said}.{os.getpid()}.{name}", os.O_WRONLY | os.O_CREAT, 0o600)
            os.dup2(file, number)
        os.chdir(request["folder"])
        if request["computed"]:
            _compute_at_once(Path(request["computed"]))
        if request["late"]:
            _arm_late(plan)
        code = 1
        try:
            main(request["words"], standalone_mode=True)
        except SystemExit as end:
            code = int(end.code or 0) if not isinstance(end.code, str) else 1
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            # Not the end of the parent: nothing that it would do at its end is this one's.
            os._exit(code)


def _compute_at_once(computed: Path) -> None:
    """Take a file that was computed before for what this run computes."""
    import pipeline.runs.batches
    import pipeline.runs.workers
    from pipeline.store.paths import store_of

    def ingest_batch(settings: Any, batch: str, run_id: str, **_: bool) -> None:
        store_of(settings).make()
        shutil.copyfile(computed, store_of(settings).staged(batch, run_id))

    for module in (pipeline.runs.batches, pipeline.runs.workers):
        module.new_run_id = lambda: computed.stem  # type: ignore[attr-defined]
    pipeline.runs.workers.ingest_batch = ingest_batch  # type: ignore[assignment]
    pipeline.runs.workers.score_batch = lambda *_: []


def _arm_late(plan: mmap.mmap) -> None:
    """Count calls from the moment on at which a batch is computed."""
    import pipeline.runs.workers

    last = pipeline.runs.workers.score_batch

    def score_batch(*given: Any) -> Any:
        found = last(*given)
        plan[:8] = struct.pack("q", 1)
        return found

    pipeline.runs.workers.score_batch = score_batch


if __name__ == "__main__":
    _serve()
