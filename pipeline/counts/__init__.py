"""From accepted rows to tables of integers, in one pass, a few thousand lists at a time.

Here: a module for each count table, and reading the tables back.  Not here: which rows are
accepted (``log``), and formulas (``metrics``).

What is added up is whole numbers only, so no number depends on how many lists are held at a time,
on their order, or on threads.
"""
