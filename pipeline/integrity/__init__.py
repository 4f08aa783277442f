"""Whether the store still holds what was committed, and what to do where it does not.

Here: verify, rebuild, backup, restore, recompute.  Not here: anything that runs every night, and
the ledger that all of this is checked against (``history``).
"""
