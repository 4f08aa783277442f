"""Synthetic logs: a marketplace with incidents, and rankings with a known amount of bias."""

from pipeline.synthetic.biased import BiasedIncidents, BiasedRankings, generate_biased
from pipeline.synthetic.marketplace import Incidents, generate

__all__ = ["BiasedIncidents", "BiasedRankings", "Incidents", "generate", "generate_biased"]
