"""How sure a score is: intervals by resampling queries, and what chance alone would give."""

from pipeline.evidence.sure import Doubt, Evidence, Sure, nothing_about

__all__ = ["Doubt", "Evidence", "Sure", "nothing_about"]
