"""Where an audit keeps its files.

Here: names and folders.  Not here: opening (``sessions``) and writing them (``files``).
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import SettingsError
from pipeline.settings.audit import Settings
from pipeline.settings.batch_keys import check_batch_key


@dataclass(frozen=True)
class Store:
    """Paths of one audit's store."""

    root: Path

    @property
    def history(self) -> Path:
        """Scores of all batches, and what they replaced."""
        return self.root / "history.duckdb"

    @property
    def ledger(self) -> Path:
        """What the history was told to hold, outside the database."""
        return self.root / "ledger.jsonl"

    @property
    def dashboard(self) -> Path:
        """The copy that dashboards open."""
        return self.root / "dashboard.duckdb"

    @property
    def report(self) -> Path:
        """The page that people open."""
        return self.root / "report.html"

    @property
    def seen(self) -> Path:
        """What files looked like when their contents were proven."""
        return self.root / "seen.json"

    def batch(self, batch: str) -> Path:
        """The file of one batch."""
        return self.root / "batches" / f"{check_batch_key(batch)}.duckdb"

    def staged(self, batch: str, run_id: str) -> Path:
        """The file that a run computes a batch in; it replaces the batch's file when done."""
        return self.root / "staged" / f"{check_batch_key(batch)}.{check_batch_key(run_id)}.duckdb"

    def refused(self, batch: str) -> Path:
        """Rejected rows of a batch that was refused, kept for whoever mends the logs."""
        return self.root / "refused" / f"{check_batch_key(batch)}.duckdb"

    def current(self, batch: str, run_id: str) -> Path:
        """The file that a run works on: its staged one, or what the batch already has."""
        staged = self.staged(batch, run_id)
        return staged if staged.exists() else self.batch(batch)

    def make(self) -> None:
        """Create the folders."""
        for name in ("batches", "staged", "refused"):
            (self.root / name).mkdir(parents=True, exist_ok=True)


def store_of(settings: Settings) -> Store:
    """The store that the settings name."""
    return Store(settings.path(settings.store).absolute())


def spill_of(settings: Settings) -> Path:
    """The folder for what does not fit into memory; SettingsError where it cannot be made."""
    if settings.spill is None:
        path = store_of(settings).root / "spill"
        # A store that may only be read is read without it.
        with suppress(OSError):
            path.mkdir(exist_ok=True)
        return path
    path = settings.path(settings.spill).absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"spill: {path}: {error.strerror}") from None
    return path
