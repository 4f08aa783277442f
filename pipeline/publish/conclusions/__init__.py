"""What a batch comes to: one conclusion each, in sentences that everything else prints.

``reading`` selects what they rest on, ``choice`` decides which state a batch is in and which score
speaks for it, ``sentences`` and ``facts`` say so, and ``conclude`` makes the rows.  They are made
from the views of the published copy, so that what is kept back for privacy is in no sentence.

Not here: verdicts of single scores (``pipeline.scores``), alerts (``pipeline.monitoring``), and
where a conclusion is shown.
"""
