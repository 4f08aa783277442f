"""What was merged, batch by batch.

Here: the manifest, current and replaced scores, the ledger: written safely, read back, queried.
Not here: judging across batches (``monitoring``), copies for people (``publish``).
"""
