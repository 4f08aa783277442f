"""From files to history: reading, checking, measuring, scoring, publishing.  No Dagster here."""

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
