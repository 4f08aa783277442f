"""Two things side by side, on request: logs of two rankers (``logs``), two batches (``batches``).

Here: which lists or cells belong together, how they differ, and why a score moved.  Not here: what
is noticed night after night without being asked for (``monitoring``).
"""

from pipeline.compare.batches.explain import explain
from pipeline.compare.batches.report import Explanation
from pipeline.compare.logs.compare import compare
from pipeline.compare.logs.report import Comparison

__all__ = ["Comparison", "Explanation", "compare", "explain"]
