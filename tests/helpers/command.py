"""The command evenrank, called in this process."""

from click.testing import CliRunner, Result

from pipeline.cli.main import main


def evenrank(*words: object) -> Result:
    """How the command ended; a traceback is a failure of the test."""
    result = CliRunner().invoke(main, [str(word) for word in words])
    fault = result.exception
    assert fault is None or isinstance(fault, SystemExit), repr(fault)
    return result
