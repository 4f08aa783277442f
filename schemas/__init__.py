"""What a row must be: ranking log, item table, counts, scores and history."""
