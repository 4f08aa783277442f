"""Ctrl-C during runs in this process.

While it runs, Dagster puts its own handler in the place of Python's: inside a step an interrupt
fails the run, between steps it may be forgotten.  The wake-up descriptor is told of every signal,
whoever handles it, so nobody has to press the keys twice.

Not here: interrupts of the command line (``pipeline.cli``).
"""

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def noticed_interrupts() -> Iterator[Callable[[], bool]]:
    """A function that says whether Ctrl-C was pressed since the context was entered."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    here, there = socket.socketpair()
    pressed = False

    def interrupted() -> bool:
        nonlocal pressed
        with suppress(BlockingIOError):
            pressed = pressed or signal.SIGINT in here.recv(4096)
        return pressed

    with here, there:
        here.setblocking(False)
        there.setblocking(False)
        before = signal.set_wakeup_fd(there.fileno(), warn_on_full_buffer=False)
        try:
            yield interrupted
        finally:
            signal.set_wakeup_fd(before)
