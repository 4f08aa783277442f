"""Why a score moved from one batch to another: which requests came, or how they are answered."""

from pipeline.explaining.report import Explanation
from pipeline.explaining.two_batches import explain

__all__ = ["Explanation", "explain"]
