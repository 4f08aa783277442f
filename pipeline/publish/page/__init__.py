"""The page that people look at: one file, made from the published copy, that asks for nothing else.

``reading`` selects from the views, ``extent`` decides how much of a long history is shown,
``document`` puts together what the page holds, ``charts`` declares the charts, ``page`` writes
it, and ``fresh`` knows when.

Not here: looks of verdicts and texts of numbers (``formatting``), and the history, which the page
never opens.
"""
