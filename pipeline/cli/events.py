"""What a command that computes batches says meanwhile and at its end, to people and schedulers.

Not here: the lines (``terminal``), and what is computed (``runs``).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.common import ended_by_sigterm, explained, safe
from pipeline.errors import AuditError, GateFailed

if TYPE_CHECKING:
    from pipeline.runs.outcome import Outcome


_REASONS = 10  # lines why a run fails: what follows it stays on the same screen


class Events:
    """What has happened so far: outcomes of batches, and in the end an exit code and its reasons.

    ``log``: each is told as a line on stderr, and no text for people is.  ``settings`` are set as
    soon as they are known.
    """

    def __init__(self, *, log: bool, quiet: bool) -> None:
        self.log = log and not quiet
        self.silent = log or quiet
        self.settings: Any = None
        self.outcomes: list[Outcome] = []
        self.exit_code = 0
        self.failed_on: tuple[str, ...] = ()
        self._tell: Callable[[str], None] | None = None

    def note(self, text: str) -> None:
        """Say what is under way: that a store is waited for, or what was not sent."""
        if self.log:
            self._line("note", {"message": text})
            return
        if self._tell is None:
            from pipeline.terminal.printing import telling

            self._tell = telling(quiet=self.silent)
        self._tell(text)

    def above(self, console: Any) -> None:
        """Print notes on the console of a progress bar from now on."""
        from pipeline.terminal.printing import printable

        self._tell = lambda text: console.print(printable(text))

    def add(self, outcome: "Outcome") -> None:
        """A batch is done with."""
        self.outcomes.append(outcome)
        if self.log:
            from pipeline.terminal.log_lines import batch_log_line

            click.echo(batch_log_line(outcome), err=True)

    def ended(self, exit_code: int, failed_on: Sequence[str] = ()) -> None:
        """All batches are done with; ``failed_on`` is what --fail-on found, where it decides."""
        self.exit_code = exit_code
        if exit_code == GateFailed.exit_code:
            self.failed_on = tuple(failed_on)
        for text in self.failed_on if self.log else self.failed_on[:_REASONS]:
            if self.log:
                self._line("failed", {"exit_code": exit_code, "message": text})
            else:
                click.echo(f"evenrank: exit code {exit_code}: {safe(text)}", err=True)
        if not self.log and len(self.failed_on) > _REASONS:
            click.echo(f"  and {len(self.failed_on) - _REASONS:,} more", err=True)
        if self.log:
            counts: dict[str, int] = {}
            for outcome in self.outcomes:
                counts[outcome.status] = counts.get(outcome.status, 0) + 1
            self._line("ended", {"exit_code": exit_code, "batches": len(self.outcomes), **counts})

    def _line(self, event: str, values: dict[str, object]) -> None:
        from pipeline.terminal.log_lines import PROGRAM, log_line

        click.echo(log_line(PROGRAM, event, values), err=True)


@contextmanager
def events(summary: Path | None, *, log: bool, quiet: bool) -> Iterator[Events]:
    """The events of a command that SIGTERM may end; writes ``summary``, however it ends.

    SettingsError where ``summary`` cannot be written, before anything is done.
    """
    from pipeline.terminal.notes import notes_to

    events_of_run = Events(log=log, quiet=quiet)
    with notes_to(lambda _, text: events_of_run.note(text)):
        if summary is None:
            with ended_by_sigterm():
                yield events_of_run
        else:
            yield from _with_summary(events_of_run, summary)


def _with_summary(events_of_run: Events, summary: Path) -> Iterator[Events]:
    from pipeline.terminal.run_summary import clear_summary, summary_of, write_summary

    clear_summary(summary)
    code, error = AuditError.exit_code, None
    try:
        with ended_by_sigterm():
            yield events_of_run
        code = events_of_run.exit_code
    except (Exception, KeyboardInterrupt) as fault:
        # Of what nobody foresaw the kind is told only: its text may quote data.
        error, code = explained(fault) or (type(fault).__name__, code)
        raise
    finally:
        document = summary_of(
            events_of_run.settings,
            events_of_run.outcomes,
            exit_code=code,
            error=error,
            failed_on=events_of_run.failed_on,
        )
        write_summary(summary, document)
