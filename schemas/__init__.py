"""What a row must be: ranking log, item table, counts, scores, history, and views of the copy.

Here: declarations, and what follows from them: dtypes, checks, SQL.  Not here: DuckDB, and who
fills or reads a table.
"""
