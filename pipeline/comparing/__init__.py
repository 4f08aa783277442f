"""Two logs of the same queries beside each other."""

from pipeline.comparing.report import Comparison
from pipeline.comparing.two_logs import compare

__all__ = ["Comparison", "compare"]
