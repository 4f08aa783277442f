"""What was merged: the manifest, current and replaced scores, the ledger, queries on them.

Here: writing it safely and reading it back.  Not here: judging across batches.
"""
