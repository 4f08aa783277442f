"""Why a score moved from one batch to another: which requests came, or how they are answered.

Not here: two rankers that answer the same requests (``compare.logs``), whether a score has moved at
all (``monitoring``), and printing (``cli.explain``).
"""
