"""What ``audit.yaml`` may say.

Here: sections with their defaults, checks, digests, labels, batch keys, paths from the environment.
Not here: files of the store, DuckDB, and whatever a setting makes happen.
"""

from pipeline.settings.audit import Settings
from pipeline.settings.load import load_settings
from pipeline.settings.sections import Trends

__all__ = ["Settings", "Trends", "load_settings"]
