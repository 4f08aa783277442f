"""From counts to scores, with intervals, noise floors, verdicts and digests.

Here: what follows from one batch's counts.  Not here: earlier batches.
"""
