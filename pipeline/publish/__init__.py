"""What leaves the store for people: the copy with its views, the page, pictures.

Not here: the history's own tables, and what a batch means (``pipeline.monitoring``).
"""
