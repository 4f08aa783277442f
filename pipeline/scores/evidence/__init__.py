"""How sure a score is: intervals by resampling queries, and what chance alone would give.

Not here: what follows for a threshold (``scores.verdicts``), and other batches (``trends``).
"""
