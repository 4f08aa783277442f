"""Errors that a user can cause, each with the exit code that scripts and schedulers read.

Here: the classes, and one form for several problems in one message.  Not here: what messages say,
which is written where the problem is found.
"""


class AuditError(Exception):
    """Something went wrong that the text explains: what, where, and what to do."""

    exit_code = 1


class SettingsError(AuditError):
    """The settings or the command line cannot be used."""

    exit_code = 2


class DataRefused(AuditError):
    """The delivered data breaks its contract; the batch keeps its last good result."""

    exit_code = 3


class NoData(AuditError):
    """There is nothing to audit for the batch."""

    exit_code = 4


class GateFailed(AuditError):
    """A score is beyond its threshold, and the caller asked to fail on it."""

    exit_code = 5


class StoreBusy(AuditError):
    """Another process holds the store for longer than the caller would wait."""

    exit_code = 75


class StoreDamaged(AuditError):
    """Files of the store are not what was written; nothing is repaired by itself."""


class Terminated(KeyboardInterrupt):
    """The process was asked to end by SIGTERM; what handles Ctrl-C handles this."""

    exit_code = 143


def several(head: str, problems: list[str], advice: str = "") -> str:
    """One message for several problems: a head line, a line each, and what to do.

    >>> print(several("audit.yaml: 2 problems", ["slices: not a list", "ranks.start: 2"]))
    audit.yaml: 2 problems
      slices: not a list
      ranks.start: 2
    """
    lines = [head, *(f"  {problem}" for problem in problems)]
    return "\n".join([*lines, f"  {advice}"] if advice else lines)
