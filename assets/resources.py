"""What assets are given: the settings of the audit.

Not here: sessions and files, which each step opens for itself.
"""

from functools import cached_property
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from pipeline.settings.audit import Settings
from pipeline.settings.load import load_settings


class Audit(dg.ConfigurableResource[Settings]):
    """An audit, known by its settings file."""

    settings_file: str = Field(description="the audit.yaml that says what is audited and how")

    @cached_property
    def settings(self) -> Settings:
        """What the file says, read once per process."""
        return load_settings(Path(self.settings_file))


class NothingPassed(dg.IOManager):
    """Assets pass no values on, and none is ever read.

    Dagster would write them with pickle otherwise, and run what it finds there when it reads them.
    """

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        """Refuse a value; that an asset has none is fine."""
        if obj is not None:
            raise dg.DagsterInvariantViolationError("assets keep their rows in the store")

    def load_input(self, context: dg.InputContext) -> None:
        """Refuse to read one."""
        raise dg.DagsterInvariantViolationError("assets read from the store")
