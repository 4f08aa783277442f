"""How a value reads: numbers, plurals, looks of verdicts, charts of one line.

Told once for terminal, page, alerts and Dagster.  Not here: reading or deciding anything; labels
come as arguments.
"""
