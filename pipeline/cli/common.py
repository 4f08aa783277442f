"""What commands of the command line share: options, and how errors end a command.

Not here: what one command alone needs, and the errors themselves (``pipeline.errors``).
"""

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import click

FILE = click.Path(path_type=Path)
DAY = click.DateTime(["%Y-%m-%d"])
CONFIG = click.option(
    "--config", "-c", type=FILE, envvar="EVENRANK_CONFIG", help="Settings [audit.yaml]."
)
JSON = click.option("--json", "as_json", is_flag=True, help="End with one line of JSON.")
QUIET = click.option("--quiet", "-q", is_flag=True, help="Print errors only.")
INTERRUPTED = 1
"""As of any error without an exit code of its own: scripts may start the command again."""
_KEPT = "What is finished is kept, and nothing is half done; start the same command again."


def examples(*lines: str) -> str:
    """The end of a command's help: lines as somebody would type them, never broken."""
    shown = [f"  {line}" for text in lines for line in text.split("\n")]
    return "\n".join(["\b", "Example:" if len(lines) == 1 else "Examples:", *shown])


def reports_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Turn errors that a user can cause into a message and the exit code they carry."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            _check_texts(kwargs)
            with _notes_on_stderr(quiet=bool(kwargs.get("quiet"))):
                command(*args, **kwargs)
        except (Exception, KeyboardInterrupt) as error:
            found = explained(error)
            if found is None:
                raise
            text, code = found
            if kwargs.get("log"):
                from pipeline.terminal.log_lines import PROGRAM, log_line

                click.echo(
                    log_line(PROGRAM, "error", {"exit_code": code, "message": text}), err=True
                )
            else:
                # After Ctrl-C, the terminal has shown ^C in this line.
                start = "\n" if code == INTERRUPTED and is_interrupt(error) else ""
                click.echo(f"{start}evenrank: {safe(text)}", err=True)
            if kwargs.get("as_json"):
                click.echo(json.dumps({"error": text, "exit_code": code}))
            sys.exit(code)

    return run


@contextmanager
def _notes_on_stderr(*, quiet: bool) -> Iterator[None]:
    """Meanwhile, what is under way is said on the error stream, unless ``quiet``."""
    from pipeline.terminal.notes import notes_to

    def say(_: int, text: str) -> None:
        from pipeline.terminal.printing import telling

        telling(quiet=quiet)(text)

    with notes_to(say):
        yield


def is_interrupt(error: BaseException) -> bool:
    """Whether somebody wanted the command to end."""
    # Within a query, DuckDB notices Ctrl-C first and says so in its own way.
    return isinstance(error, KeyboardInterrupt) or (
        isinstance(error, RuntimeError) and "interrupt" in str(error).lower()
    )


def explained(error: BaseException) -> tuple[str, int] | None:
    """What to say of an error, and the exit code; None of one that no user can cause."""
    from pipeline.errors import AuditError, Terminated

    if isinstance(error, AuditError):
        return str(error), error.exit_code
    if isinstance(error, Terminated):
        return f"ended by SIGTERM. {_KEPT}", error.exit_code
    if is_interrupt(error):
        return f"interrupted. {_KEPT}", INTERRUPTED
    # Whoever read the output has enough, as head does: click ends without a word.
    if isinstance(error, BrokenPipeError):
        return None
    if isinstance(error, OSError) and error.strerror is not None:
        # A disk that is full or gone, a name that is too long, a file that is not ours.
        where = "" if error.filename is None else f"{error.filename}: "
        return f"{where}{error.strerror.lower()}", AuditError.exit_code
    return None


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Meanwhile, SIGTERM ends the work as Ctrl-C does: Terminated.

    Further ones are ignored, as schedulers send them to a process and its parents alike.
    """
    from pipeline.errors import Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    terminated = False

    def end(number: int, frame: object) -> None:
        nonlocal terminated
        terminated = True
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        if terminated and is_interrupt(error):
            raise Terminated from error
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _check_texts(given: dict[str, Any]) -> None:
    """SettingsError where an option is no text: bytes that are no UTF-8 come as half characters."""
    from pipeline.errors import SettingsError
    from pipeline.log.files import is_text

    for option in click.get_current_context().command.params:
        value = given.get(option.name or "")
        said = value if isinstance(value, tuple) else (value,)
        if not all(is_text(each) for each in said if isinstance(each, str)):
            raise SettingsError(f"{option.opts[0]}: must be UTF-8")


def safe(text: str) -> str:
    """``text`` without control characters, which could steer a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


def settings_of(config: Path | None) -> Any:
    """The settings that --config names, or those of this folder."""
    from pipeline.settings.load import load_settings

    return load_settings(config)
