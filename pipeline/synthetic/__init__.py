"""Synthetic logs, as tables or as files that a run reads.

Here: a marketplace with incidents, and rankings with a known amount of bias.  Not here: anything
that audits them.
"""

from pipeline.synthetic.biased import BiasedRankings
from pipeline.synthetic.biased_period import biased_table, biased_tables, generate_biased
from pipeline.synthetic.biased_request import BiasedIncidents
from pipeline.synthetic.marketplace import Incidents, generate

__all__ = [
    "BiasedIncidents",
    "BiasedRankings",
    "Incidents",
    "biased_table",
    "biased_tables",
    "generate",
    "generate_biased",
]
