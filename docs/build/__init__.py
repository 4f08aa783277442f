"""The derived parts of the documentation: a module for each topic, and ``pages`` that places them.

``python -m docs.build`` rewrites the pages; ``--check`` names the stale ones and exits 1.

Here: what the catalogue, the tables, the settings and the contracts already say, as Markdown.
Not here: prose, which stands in the pages themselves, and tables of measured numbers, which the
benchmarks write.
"""
