"""Two logs of the same queries beside each other.

Not here: why a score moved between two batches (``compare.batches``), and the measures of agreement
(``metrics.comparison``).
"""
