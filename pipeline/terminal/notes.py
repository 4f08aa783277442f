"""Who hears what is said while work is under way: that a store is waited for, what was not sent.

Modules say it by ``logging``, as any library does, and know nothing of who listens.  Not here:
results of commands, and errors.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Hearing(logging.Handler):
    """Passes the level and text of each note on."""

    def __init__(self, hear: Callable[[int, str], object]) -> None:
        super().__init__(logging.INFO)
        self._hear = hear

    def emit(self, record: logging.LogRecord) -> None:
        self._hear(record.levelno, record.getMessage())


@contextmanager
def notes_to(hear: Callable[[int, str], object]) -> Iterator[None]:
    """Meanwhile, ``hear`` gets the level and text of each note, and nobody else does."""
    logger = logging.getLogger("pipeline")
    before = logger.handlers, logger.level, logger.propagate
    logger.handlers, logger.propagate = [_Hearing(hear)], False
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.handlers, level, logger.propagate = before
        logger.setLevel(level)
