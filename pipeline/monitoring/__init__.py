"""What batches say about each other, step by step: gates, trends, findings, episodes, their words.

``pipeline.monitoring.assess`` puts the steps together.  Everything here is
computed from what was read, in key order, so that neither the order in which batches were merged
nor how often matters.
"""
