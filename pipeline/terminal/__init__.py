"""Results as a terminal and other programs read them.

Here: lines and tables, the summary of a run, exports as CSV and JSON lines.  Not here: SQL
(``history.queries``), options of commands (``cli``), how one number reads (``formatting``).
"""
