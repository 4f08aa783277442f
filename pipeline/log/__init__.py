"""From delivered files to accepted rows, and back out of the batch file list by list.

Here: finding, reading, mapping, screening, explaining, storing, proving.  Not here: counting.
"""
