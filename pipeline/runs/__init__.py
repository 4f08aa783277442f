"""Batches on their way from logs to history.

Here: the order of the steps, many batches at once, worker processes, the end of a run, and the same
steps without a store.  Not here: what any single step does.
"""
