"""What a batch means after those before it; ``assess`` puts the steps together.

Here: data quality gates, followed scores, findings, alerts, releases and notifications.  Not here:
the statistics (``trends``), what one batch says by itself (``scores``), charts (``publish``).

Everything is computed from what was read, in key order, so that neither the order in which batches
were merged nor how often matters.
"""
