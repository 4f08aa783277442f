"""The files of an audit: where they lie, how they are opened, written and made durable.

Here: paths, sessions, locks, transactions, memory, the frame of a batch file.  Not here: what any
table means, which is for the room that fills it.
"""
