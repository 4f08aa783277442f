"""What assets are given: the settings of the audit."""

from functools import cached_property
from pathlib import Path

import dagster as dg
from pydantic import Field

from pipeline.settings import Settings, load_settings


class Audit(dg.ConfigurableResource[Settings]):
    """An audit, known by its settings file."""

    settings_file: str = Field(description="the audit.yaml that says what is audited and how")

    @cached_property
    def settings(self) -> Settings:
        """What the file says, read once per process."""
        return load_settings(Path(self.settings_file))
