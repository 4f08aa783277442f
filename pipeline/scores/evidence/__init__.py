"""How sure a score is: intervals by resampling queries, and what chance alone would give."""
