"""From delivered files to scores, their history, and alerts: a folder for each step.

Here: ``score``, handed on for notebooks; all else stands in the rooms.  Not here: Dagster
(``assets``), what a row must be (``schemas``), formulas (``metrics``).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.runs.in_memory import score

__all__ = ["score"]


def __getattr__(name: str) -> Any:
    """``score`` on first use: importing the package must stay cheap for the command line."""
    if name == "score":
        from pipeline.runs.in_memory import score

        return score
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
