"""What commands of the command line share: options, and how errors end a command."""

import json
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn

import click

FILE = click.Path(path_type=Path)
DAY = click.DateTime(["%Y-%m-%d"])
CONFIG = click.option(
    "--config", "-c", type=FILE, envvar="RANKAUDIT_CONFIG", help="Settings [audit.yaml]."
)
JSON = click.option("--json", "as_json", is_flag=True, help="End with one line of JSON.")
QUIET = click.option("--quiet", "-q", is_flag=True, help="Print errors only.")
INTERRUPTED = 1


def reports_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Turn errors that a user can cause into a message and the exit code they carry."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        from pipeline.errors import AuditError

        def told(text: str, code: int) -> NoReturn:
            click.echo(f"rankaudit: {safe(text)}", err=True)
            if kwargs.get("as_json"):
                click.echo(json.dumps({"error": text, "exit_code": code}))
            sys.exit(code)

        try:
            _check_texts(kwargs)
            command(*args, **kwargs)
        except AuditError as error:
            told(str(error), error.exit_code)
        except OSError as error:
            # A disk that is full or gone, a name that is too long, a file that is not ours.
            if error.strerror is None:
                raise
            where = "" if error.filename is None else f"{error.filename}: "
            told(f"{where}{error.strerror.lower()}", AuditError.exit_code)
        except KeyboardInterrupt:
            _interrupted()
        except RuntimeError as error:
            # Within a query, DuckDB notices Ctrl-C first and says so in its own way.
            if "interrupt" not in str(error).lower():
                raise
            _interrupted()

    return run


def _check_texts(given: dict[str, Any]) -> None:
    """SettingsError where an option is no text: bytes that are no UTF-8 come as half characters."""
    from pipeline.errors import SettingsError
    from pipeline.files import is_text

    for option in click.get_current_context().command.params:
        value = given.get(option.name or "")
        said = value if isinstance(value, tuple) else (value,)
        if not all(is_text(each) for each in said if isinstance(each, str)):
            raise SettingsError(f"{option.opts[0]}: must be UTF-8")


def _interrupted() -> None:
    click.echo(
        "\nrankaudit: interrupted. What is finished is kept, and nothing is half done; "
        "start the same command again.",
        err=True,
    )
    sys.exit(INTERRUPTED)


def safe(text: str) -> str:
    """``text`` without control characters, which could steer a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


def settings_of(config: Path | None) -> Any:
    """The settings that --config names, or those of this folder."""
    from pipeline.settings import load_settings

    return load_settings(config)
