"""The sections of ``audit.yaml``, each a model with its defaults and their reasons.

Here: what a section may say by itself.  Not here: what needs two sections (``audit``), and how a
file is read (``load``).
"""

from collections.abc import Sequence
from datetime import date
from math import ceil
from typing import Annotated, Any, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

T = TypeVar("T")


class Part(BaseModel):
    """A section of the settings: unknown keys are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Ranks(Part):
    """How ranks were logged."""

    # People count from 1, and so do the formulas of all metrics.
    start: Literal[0, 1] = 1
    # A gap is a row that was lost far more often than a place that was left empty.
    gaps: Literal["reject", "compact", "keep"] = "reject"


class Rejects(Part):
    """What a broken row costs, and when a batch has too many of them."""

    # A ranking with a hole is another ranking.
    policy: Literal["drop_list", "drop_row", "refuse_batch"] = "drop_list"
    # A few broken rows are every night's; one row in twenty is a delivery that went wrong.
    max_rejected_share: float = Field(default=0.05, ge=0, le=1)
    # Enough to find the cause, while a day that is broken throughout does not fill the disk.
    max_stored_rows: int = Field(default=10_000, ge=0)


class Unknown(Part):
    """Items without a group."""

    # Nobody can answer for `unknown`: it is no group of people, but a mixture of all.
    in_aggregations: bool = False
    # Off: how many items may lack a group is for the owner to say; a sudden rise is the gate's.
    max_share: float = Field(default=1.0, ge=0, le=1)


class Limits(Part):
    """Bounds on what is read, against files that are not what they seem."""

    # Every file is opened, so that many tiny ones cost more than their rows.
    files: int = Field(default=10_000, ge=1)
    # More than a busy day of a large service; what it guards is disk and time of the machine.
    rows: int = Field(default=1_000_000_000, ge=1)
    # Counters, pairs and the text of a page grow with groups; with more, it is likely an id.
    groups: int = Field(default=1_000, ge=2)
    # Each value has all scores of its own; with more, it is likely an id, or a free text.
    slice_values: int = Field(default=1_000, ge=1)
    # As deep as ranks are read (MAX_RANK); a longer list is a list_id that never changes.
    list_rows: int = Field(default=1_000_000, ge=1)
    # Names are repeated in every row of the results, and people have to read them.
    name_length: int = Field(default=1_000, ge=1)
    # Room for limits.rows of 100 bytes each; a packed one may unfold a thousandfold.
    text_bytes: int = Field(default=100_000_000_000, ge=1)


class Threshold(Part):
    """A limit on one score, on the side on which the score is unfair.

    ``attributes`` and ``slices`` say where it holds, everywhere by default; among slices, ``all``
    stands for the whole batch.
    """

    min: float | None = None
    max: float | None = None
    # Everywhere: what is unfair is so in every slice; what small ones lack is evidence.
    attributes: tuple[str, ...] | None = None
    slices: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _one_side(self) -> Self:
        if (self.min is None) == (self.max is None):
            raise ValueError("give either min or max")
        return self


def as_list(value: Any) -> Any:
    """One text as a list of it; anything else as it is."""
    return [value] if isinstance(value, str) else value


def or_problems(value: T, problems: Sequence[str]) -> T:
    """``value`` if there are no problems; a ValueError that tells all of them otherwise."""
    if problems:
        raise ValueError("\n".join(problems))
    return value


def _program(value: Any) -> Any:
    if isinstance(value, str) and len(value.split()) > 1:
        raise ValueError(f"write a list, as in {value.split()}")
    return as_list(value)


class Evidence(Part):
    """How sure a number must be before it decides a verdict.

    ``resamples``: 0 computes no intervals, and ``noise_draws``: 0 no noise floor.  ``decide_by``
    says whether the limit of the interval must be beyond a threshold, or the number alone.  Minima
    hold for every group that is compared, in the slice at hand.  docs/evidence.md has the reasons
    for the defaults.
    """

    # On the threshold itself, one side of it is passed by chance on 2.5% of the nights.
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    # From seed to seed the ends wobble by 2% of the interval's width.
    resamples: int = Field(default=1000, ge=0, le=10_000)
    # A p-value near 5% is then right to half a percentage point, and none is below 1/2001.
    noise_draws: int = Field(default=2000, ge=0, le=1_000_000)
    # Any number does, as long as nobody changes it until the result pleases.
    seed: int = Field(default=1, ge=0, lt=2**63)
    # By the number alone, a fair ranker would breach on most days with few requests.
    decide_by: Literal["interval", "point"] = "interval"
    # From here on intervals hold what they promise; below, one odd query is a large part of all.
    min_queries: int = Field(default=30, ge=0)
    # A mean position of fewer rows is an anecdote, and rows of one list are not independent.
    min_appearances: int = Field(default=100, ge=0)
    # Metrics that divide by relevance rest on relevant rows alone.
    min_relevant: int = Field(default=30, ge=0)

    @model_validator(mode="after")
    def _draws_can_tell(self) -> Self:
        # No p-value is below 1 / (draws + 1), and no percentile is further out than one resample.
        least = ceil(2 / (1 - self.confidence))
        problems = [
            f"{name}: {count} cannot tell anything with a confidence of {self.confidence:g}; "
            f"take 0, or at least {least}"
            for name in ("resamples", "noise_draws")
            if 0 < (count := getattr(self, name)) < least
        ]
        return or_problems(self, problems)


class Gate(Part):
    """What a batch must have, by itself or in common with those before it, to be judged.

    ``joined`` is a share of the batch's own rows.  Each other limit is a distance from the median
    of the last ``window`` judged batches, and is not tested while there are fewer than ``least`` of
    them.  Null turns a gate off.  docs/trends.md has the reasons for the defaults.
    """

    # Four of each weekday, over which a median does not notice a bad one.
    window: int = Field(default=28, ge=1, le=1000)
    # A week: with less, a weekend looks like a failure.
    least: int = Field(default=7, ge=1)
    # With less, `unknown` is the largest group; ids that differ in how they are written join none.
    joined: float | None = Field(default=0.5, gt=0, le=1)
    # Room for weekends and holidays, none for less than half a delivery.
    volume: float | None = Field(default=0.5, gt=0, lt=1)
    # 20 rows instead of 15 are another page, and exposure depends on the length of lists.
    list_length: float | None = Field(default=0.25, gt=0)
    # Room for a day's demand, none for another item table.
    group_mix: float | None = Field(default=0.15, gt=0, lt=1)
    # 5 points more are usually an item table that is late.
    unknown_share: float | None = Field(default=0.05, gt=0, lt=1)
    # 10 points less are usually a source of labels that is missing.
    labels: float | None = Field(default=0.1, gt=0, lt=1)


class Trends(Part):
    """What a score is compared with over time, and when a shift is news.

    ``scores``: labels to follow; by default the first aggregation of each metric that has an
    unfair side, and every score with a threshold.  ``smoothing`` is the weight of the newest batch
    in the EWMA, ``drift`` the slack of the CUSUM in standard errors.  docs/trends.md has the
    reasons for the defaults.
    """

    # Eight weeks: enough for every weekday, and short enough for a product that changes.
    window: int = Field(default=56, ge=8, le=400)
    # Two weeks: the standard error of the spread is a fifth of it, and grows quickly below.
    least: int = Field(default=14, ge=4)
    # Each weekday's mean costs a degree of freedom: with fewer weeks, more than it gives.
    weekday_weeks: int = Field(default=4, ge=2)
    # For a shift of one standard error, nothing from 0.1 to 0.25 is much quicker or slower.
    smoothing: float = Field(default=0.2, ge=0.001, le=1)
    # Half of the shift that matters is the best slack (Page 1954): one standard error.
    drift: float = Field(default=0.5, gt=0)
    # It holds whatever the dependence, and scores of the same rows do depend on each other.
    discoveries: Literal["BY", "BH", "none"] = "BY"
    # At most one in twenty of what is news, on average, is none.
    level: float = Field(default=0.05, gt=0, lt=1)
    # Aggregations of a metric move together: one of each says it, and the others are more tests.
    scores: Annotated[tuple[str, ...] | None, BeforeValidator(as_list)] = None

    @property
    def hold(self) -> int:
        """Newest batches that no baseline holds, two weeks of eight: see docs/trends.md."""
        return self.window // 4

    @model_validator(mode="after")
    def _window_holds_least(self) -> Self:
        if self.window < self.least:
            raise ValueError("window is smaller than least")
        return self


class Notify(Part):
    """Who hears of a new alert: a program, a web address, or by default nobody."""

    # Off: a program or an address that nobody named must not learn of anything.
    command: Annotated[tuple[str, ...], BeforeValidator(_program), Field(min_length=1)] | None = (
        None
    )
    # An address may hold a secret: it is left out where settings are shown.
    webhook: Annotated[str, Field(pattern=r"^https?://")] | None = Field(default=None, repr=False)
    # Ample for a web hook, and the run waits no longer for one that hangs.
    timeout_seconds: float = Field(default=10.0, gt=0, le=600)

    @field_validator("webhook")
    @classmethod
    def _can_be_posted_to(cls, address: str | None) -> str | None:
        try:
            parts = urlsplit(address or "http://host")
            whole = bool(parts.hostname) and parts.port != 0
        except ValueError:
            whole = False
        if not whole or any(c.isspace() or not c.isprintable() for c in address or ""):
            raise ValueError(
                "is no address as in https://host/path or https://user:password@host/path; in user "
                "and password, write %40 for @, %2F for /, %3A for :, %23 for # and %3F for ?"
            )
        return address


class Privacy(Part):
    """What of people's data is kept, and what is shown.

    ``hash_ids`` are replaced by a keyed hash when they are read; ``key`` names the variable of the
    environment that holds the key.  ``min_cell``: cells with fewer queries or items are not told.
    """

    # None: ids are what people look up, and a hash asks for a key that somebody has to keep.
    hash_ids: Annotated[
        tuple[Literal["list_id", "item_id", "query_id"], ...], BeforeValidator(as_list)
    ] = ()
    key: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] = "EVENRANK_KEY"
    # Off: how few are too few depends on the data and on who reads the copy.
    min_cell: int = Field(default=0, ge=0)
    # Kept: without its rows a batch cannot be measured again, and removing them has no way back.
    keep_rows_days: int | None = Field(default=None, ge=1)
    # Messages end up in logs that more people read than the store.
    show_values: bool = False

    @property
    def names_groups(self) -> bool:
        """Whether messages may name groups before it is known how many each is about."""
        return self.show_values and self.min_cell <= 1


class Schedule(Part):
    """When the nightly run starts, and which days are batches."""

    # Fixed, so that the same settings mean the same days whenever they are read.
    start: date = date(2026, 1, 1)
    # An audit goes on until somebody ends it.
    end: date | None = None
    # Late enough for the logs of the day to be there, early enough for the morning.
    hour: int = Field(default=3, ge=0, le=23)
    minute: int = Field(default=0, ge=0, le=59)
    # No day of it has 23 or 25 hours.
    timezone: str = "UTC"
    # Three hours after the run starts by default: time for it, and for a second attempt.
    deadline_hours: int = Field(default=6, ge=1, le=8760)
    # A key that is no day is a slip far more often than a name, and a slip stays in the history.
    batches: Literal["days", "names"] = "days"

    @field_validator("start", "end")
    @classmethod
    def _in_our_time(cls, day: date | None) -> date | None:
        # Hours and time zones around the first and the last day there is lead beyond it.
        if day is not None and not 1970 <= day.year <= 2200:
            raise ValueError(f"{day} lies before 1970 or after 2200")
        return day

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        from zoneinfo import ZoneInfo

        try:
            ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            raise ValueError(f"{name!r} is no time zone; one looks like Europe/Berlin") from None
        return name

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.end is not None and self.end < self.start:
            raise ValueError("end lies before start")
        return self
