"""Texts for a terminal, exports, and the summary of a run.

Here: lines and tables.  Not here: SQL, options of commands (``pipeline.cli``).
"""
