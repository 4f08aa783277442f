"""From the counts of one batch to its scores.

Here: scores and values of groups as rows, intervals, noise floors, verdicts, digests of results.
Not here: formulas (``metrics``), and batches before this one (``monitoring``).
"""
