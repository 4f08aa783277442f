"""From delivered files to accepted rows, and back out of the batch file list by list.

Here: finding, reading, mapping, screening, validating and storing rows, and explaining those that
are rejected.  Not here: the rules that rows must keep (``schemas.rules``), and counting
(``counts``).
"""
