"""The command evenrank, called in this process."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from click.testing import CliRunner, Result

from pipeline.cli.main import main


@contextmanager
def without_page() -> Iterator[None]:
    """No new page after a run, where nobody looks at it: it takes longer than the rest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.runs.finish.renew_report", lambda *_: None)
        yield


def evenrank(*words: object) -> Result:
    """How the command ended; a traceback is a failure of the test."""
    result = CliRunner().invoke(main, [str(word) for word in words])
    fault = result.exception
    assert fault is None or isinstance(fault, SystemExit), repr(fault)
    return result
