"""The Dagster code location: what is computed when, shown how, and what happens when it fails.

Here: assets, checks, schedules, sensors, and what Dagster shows of results.  Not here: anything
that could run without Dagster, which is the work of ``pipeline``.
"""
