"""Batches from logs to history: steps, many batches, workers, the end of a run.

Here: the order of things.  Not here: SQL, and what any single step does.
"""
