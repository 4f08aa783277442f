"""Synthetic logs, as tables or as files that a run reads.

Here: a marketplace with incidents, and rankings with a known amount of bias.  Not here: anything
that audits them.
"""

from pipeline.synthetic.biased import BiasedIncidents, BiasedRankings
from pipeline.synthetic.biased_period import generate_biased
from pipeline.synthetic.marketplace import Incidents, generate

__all__ = ["BiasedIncidents", "BiasedRankings", "Incidents", "generate", "generate_biased"]
