"""Synthetic logs: a marketplace with incidents, and rankings with a known amount of bias."""

from pipeline.synthetic.biased import BiasedIncidents, BiasedRankings
from pipeline.synthetic.biased_period import generate_biased
from pipeline.synthetic.marketplace import Incidents, generate

__all__ = ["BiasedIncidents", "BiasedRankings", "Incidents", "generate", "generate_biased"]
