"""What ``audit.yaml`` may say, how it is checked, and the digests of it.

Here: sections, labels, batch keys, paths from the environment.  Not here: files of the store,
DuckDB, anything that a setting makes happen.
"""

from pipeline.settings.audit import Settings
from pipeline.settings.load import load_settings
from pipeline.settings.sections import Trends

__all__ = ["Settings", "Trends", "load_settings"]
