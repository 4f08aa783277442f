"""People's data: how ids are hidden, which numbers leave the store, and how long rows stay.

What belongs here: ``keys`` and ``ids`` (keyed hashes of ids), ``cells`` (which numbers are about
too few), ``shown`` (the history as others may see it), ``retention`` (batch files without rows).
"""
