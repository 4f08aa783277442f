"""Two things beside each other: two rankers' logs (``logs``), two batches (``batches``).

Not here: what changed without anybody asking, which is ``pipeline.monitoring``.
"""

from pipeline.compare.batches.explain import explain
from pipeline.compare.batches.report import Explanation
from pipeline.compare.logs.compare import compare
from pipeline.compare.logs.report import Comparison

__all__ = ["Comparison", "Explanation", "compare", "explain"]
