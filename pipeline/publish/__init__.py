"""What leaves the store for people.

Here: the copy that dashboards open, with its views; the page; pictures.  Not here: the history's
own tables (``history``), what a batch means (``monitoring``), what has to be left out
(``privacy``).
"""
