"""Settings of an audit: what ``audit.yaml`` may say, and what it means when it says nothing."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from difflib import get_close_matches
from math import ceil, isfinite
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from metrics import (
    FAIRNESS,
    WHOLE,
    Measure,
    ScoreName,
    parse_measure,
    parse_measures,
    parse_score,
)
from pipeline.environment import PATH_VARIABLES, environment_paths
from pipeline.errors import SettingsError, several
from pipeline.privacy.keys import fingerprint, key_from
from pipeline.settings_text import cut, read_text
from schemas.rules import LOGGED, POSITION

T = TypeVar("T")
BATCH_KEY = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
DEFAULT_FILE = "audit.yaml"
JOIN = "*"
"""Joins the names, and the values, of an intersection of attributes."""

_RESERVED = {column.name for column in (*LOGGED, POSITION)} | {WHOLE}
_NAME = re.compile(
    r"^[^\s*\x00-\x1f\ud800-\udfff](?:[^*\x00-\x1f\ud800-\udfff]*[^\s*\x00-\x1f\ud800-\udfff])?$"
)
_OWNER = re.compile(r"^(team:\S+|[A-Za-z0-9_.+-]+@[A-Za-z0-9-]+\.[A-Za-z0-9.-]+)$")
"""What Dagster takes for an owner."""
_MOST_PROBLEMS = 40
_LONGEST_PROBLEM = 300


def check_batch_key(batch: str) -> str:
    """``batch`` if it can name a batch and its file; SettingsError otherwise."""
    if BATCH_KEY.fullmatch(batch) and not batch.endswith("."):
        return batch
    raise SettingsError(
        f"{cut(batch, 70)!r} cannot name a batch: 1 to 64 letters, digits, '.', '_' or '-', "
        "a letter or digit first, and no '.' last"
    )


class Part(BaseModel):
    """A section of the settings: unknown keys are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Ranks(Part):
    """How ranks were logged."""

    start: Literal[0, 1] = 1
    gaps: Literal["reject", "compact", "keep"] = "reject"


class Rejects(Part):
    """What a broken row costs, and when a batch has too many of them."""

    policy: Literal["drop_list", "drop_row", "refuse_batch"] = "drop_list"
    max_rejected_share: float = Field(default=0.05, ge=0, le=1)
    max_stored_rows: int = Field(default=10_000, ge=0)


class Unknown(Part):
    """Items without a group."""

    in_aggregations: bool = False
    max_share: float = Field(default=1.0, ge=0, le=1)


class Limits(Part):
    """Bounds on what is read, against files that are not what they seem."""

    files: int = Field(default=10_000, ge=1)
    rows: int = Field(default=1_000_000_000, ge=1)
    groups: int = Field(default=1_000, ge=2)
    slice_values: int = Field(default=1_000, ge=1)
    list_rows: int = Field(default=1_000_000, ge=1)
    name_length: int = Field(default=1_000, ge=1)
    text_bytes: int = Field(default=100_000_000_000, ge=1)


class Threshold(Part):
    """A limit on one score, on the side on which the score is unfair.

    ``attributes`` and ``slices`` say where it holds, everywhere by default; among slices, ``all``
    stands for the whole batch.
    """

    min: float | None = None
    max: float | None = None
    attributes: tuple[str, ...] | None = None
    slices: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _one_side(self) -> Self:
        if (self.min is None) == (self.max is None):
            raise ValueError("give either min or max")
        return self


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _attribute(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else (value,)


Attribute = Annotated[tuple[str, ...], BeforeValidator(_attribute)]
Names = Annotated[tuple[str, ...], BeforeValidator(_as_list)]


def _or_problems(value: T, problems: Sequence[str]) -> T:
    """``value`` if there are no problems; a ValueError that tells all of them otherwise."""
    if problems:
        raise ValueError("\n".join(problems))
    return value


def _program(value: Any) -> Any:
    if isinstance(value, str) and len(value.split()) > 1:
        raise ValueError(f"write a list, as in {value.split()}")
    return _as_list(value)


class Evidence(Part):
    """How sure a number must be before it decides a verdict.

    ``resamples``: 0 computes no intervals, and ``noise_draws``: 0 no noise floor.  ``decide_by``
    says whether the limit of the interval must be beyond a threshold, or the number alone.  Minima
    hold for every group that is compared, in the slice at hand.
    """

    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    resamples: int = Field(default=1000, ge=0, le=10_000)
    noise_draws: int = Field(default=2000, ge=0, le=1_000_000)
    seed: int = Field(default=1, ge=0, lt=2**63)
    decide_by: Literal["interval", "point"] = "interval"
    min_queries: int = Field(default=30, ge=0)
    min_appearances: int = Field(default=100, ge=0)
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
        return _or_problems(self, problems)


class Gate(Part):
    """What a batch must have in common with those before it, so that its scores can be judged.

    Each limit is a distance from the median of the last ``window`` judged batches; null turns it
    off.  No gate is tested while there are fewer than ``least`` of them.
    """

    window: int = Field(default=28, ge=1, le=1000)
    least: int = Field(default=7, ge=1)
    volume: float | None = Field(default=0.5, gt=0, lt=1)
    list_length: float | None = Field(default=0.25, gt=0)
    group_mix: float | None = Field(default=0.15, gt=0, lt=1)
    unknown_share: float | None = Field(default=0.05, gt=0, lt=1)
    labels: float | None = Field(default=0.1, gt=0, lt=1)


class Trends(Part):
    """What a score is compared with over time, and when a shift is news.

    ``scores``: labels to follow; by default the first aggregation of each metric that has an
    unfair side, and every score with a threshold.  ``smoothing`` is the weight of the newest batch
    in the EWMA, ``drift`` the slack of the CUSUM in standard errors.
    """

    window: int = Field(default=56, ge=8, le=400)
    least: int = Field(default=14, ge=4)
    weekday_weeks: int = Field(default=4, ge=2)
    smoothing: float = Field(default=0.2, ge=0.001, le=1)
    drift: float = Field(default=0.5, gt=0)
    discoveries: Literal["BY", "BH", "none"] = "BY"
    level: float = Field(default=0.05, gt=0, lt=1)
    scores: Annotated[tuple[str, ...] | None, BeforeValidator(_as_list)] = None

    @model_validator(mode="after")
    def _window_holds_least(self) -> Self:
        if self.window < self.least:
            raise ValueError("window is smaller than least")
        return self


class Notify(Part):
    """Who hears of a new alert: a program, a web address, or by default nobody."""

    command: Annotated[tuple[str, ...], BeforeValidator(_program), Field(min_length=1)] | None = (
        None
    )
    webhook: Annotated[str, Field(pattern=r"^https?://")] | None = None
    timeout_seconds: float = Field(default=10.0, gt=0, le=600)


class Privacy(Part):
    """What of people's data is kept, and what is shown.

    ``hash_ids`` are replaced by a keyed hash when they are read; ``key`` names the variable of the
    environment that holds the key.  ``min_cell``: cells with fewer rows are not published.
    """

    hash_ids: Annotated[
        tuple[Literal["list_id", "item_id", "query_id"], ...], BeforeValidator(_as_list)
    ] = ()
    key: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] = "EVENRANK_KEY"
    min_cell: int = Field(default=0, ge=0)
    keep_rows_days: int | None = Field(default=None, ge=1)
    show_values: bool = False


class Schedule(Part):
    """When the nightly run starts, and which days are batches."""

    start: date = date(2026, 1, 1)
    end: date | None = None
    hour: int = Field(default=3, ge=0, le=23)
    minute: int = Field(default=0, ge=0, le=59)
    timezone: str = "UTC"
    deadline_hours: int = Field(default=6, ge=1, le=8760)

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


class Settings(Part):
    """All settings of an audit.  Paths are relative to the folder of the settings file."""

    folder: Path = Path()
    logs: Names = ("logs/{batch}/*",)
    items: str | None = None
    store: str = "store"
    spill: str | None = Field(default=None, min_length=1)
    columns: dict[str, Annotated[str, Field(min_length=1)]] = Field(default_factory=dict)
    ranks: Ranks = Ranks()
    top_of_list: Literal["good", "bad"] = "good"
    missing_relevance: Literal["undefined", "zero"] = "undefined"
    missing_click: Literal["undefined", "zero"] = "undefined"
    relevant_from: float = Field(default=0.5, gt=0, le=1)
    attributes: Annotated[tuple[Attribute, ...], BeforeValidator(_as_list)] = Field(min_length=1)
    slices: Names = ()
    metrics: Names = Field(default=(FAIRNESS.name,), min_length=1, validate_default=True)
    groups: dict[str, Annotated[tuple[str, ...], Field(min_length=1)]] = Field(default_factory=dict)
    targets: dict[str, dict[str, float]] = Field(default_factory=dict)
    thresholds: dict[str, Threshold] = Field(default_factory=dict)
    rejects: Rejects = Rejects()
    unknown_group: Unknown = Unknown()
    limits: Limits = Limits()
    checksums: Literal["if_present", "required"] = "if_present"
    schedule: Schedule = Schedule()
    evidence: Evidence = Evidence()
    gate: Gate = Gate()
    trends: Trends = Trends()
    notify: Notify = Notify()
    privacy: Privacy = Privacy()
    memory_limit: str | None = Field(default=None, pattern=r"^[0-9]+(\.[0-9]+)? ?([KMGT]i?B|%)$")
    threads: int | None = Field(default=None, ge=1, le=1024)
    busy_seconds: float = Field(default=60.0, ge=0)
    owners: Names = ()

    @field_validator("owners")
    @classmethod
    def _can_be_told(cls, owners: tuple[str, ...]) -> tuple[str, ...]:
        problems = [
            f"{cut(owner, 70)!r}: an owner is an e-mail address, or a team as in team:search"
            for owner in owners
            if not _OWNER.fullmatch(owner)
        ]
        return _or_problems(owners, [*problems, *_twice(owners)])

    @field_validator("logs")
    @classmethod
    def _has_batch(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        problems = [] if patterns else ["name at least one path"]
        problems += [
            f"{pattern!r} does not say where the batch stands; "
            "write {batch}, as in logs/{batch}/*.parquet"
            for pattern in patterns
            if "{batch}" not in pattern
        ]
        return _or_problems(patterns, problems)

    @field_validator("attributes")
    @classmethod
    def _attributes_named(
        cls, attributes: tuple[tuple[str, ...], ...]
    ) -> tuple[tuple[str, ...], ...]:
        problems = [] if all(attributes) else ["an intersection of no attributes"]
        problems += [
            f"{JOIN.join(each)} names an attribute twice"
            for each in attributes
            if len(set(each)) < len(each)
        ]
        problems += _wrong_names(dict.fromkeys(name for each in attributes for name in each))
        problems += _twice(JOIN.join(attribute) for attribute in attributes)
        return _or_problems(attributes, problems)

    @field_validator("slices")
    @classmethod
    def _slices_named(cls, slices: tuple[str, ...]) -> tuple[str, ...]:
        return _or_problems(slices, [*_wrong_names(slices), *_twice(slices)])

    @field_validator("metrics")
    @classmethod
    def _metrics_known(cls, labels: tuple[str, ...]) -> tuple[str, ...]:
        found, problems = _parsed(labels, parse_measures)
        said = [measure.label for named in found for measure in named]
        # A family may be named beside one of its metrics; one label may not stand twice.
        twice = _twice(named[0].label for named in found if len(named) == 1)
        return _or_problems(tuple(dict.fromkeys(said)), [*problems, *twice])

    @field_validator("thresholds")
    @classmethod
    def _thresholds_fit(
        cls, thresholds: dict[str, Threshold], info: ValidationInfo
    ) -> dict[str, Threshold]:
        computed = info.data.get("metrics")
        found, problems = _parsed(
            thresholds, lambda label: _judged(label, thresholds[label], computed)
        )
        problems += _twice(found)
        return _or_problems(dict(zip(found, thresholds.values(), strict=False)), problems)

    @field_validator("trends")
    @classmethod
    def _followed_scores_fit(cls, trends: Trends, info: ValidationInfo) -> Trends:
        computed = info.data.get("metrics")
        found, problems = _parsed(trends.scores or (), lambda label: _sided(label, computed).label)
        problems = [f"scores: {problem}" for problem in (*problems, *_twice(found))]
        scores = None if trends.scores is None else tuple(found)
        return _or_problems(trends.model_copy(update={"scores": scores}), problems)

    @field_validator("targets")
    @classmethod
    def _targets_are_shares(
        cls, targets: dict[str, dict[str, float]]
    ) -> dict[str, dict[str, float]]:
        problems = []
        for attribute, shares in targets.items():
            if len(shares) < 2 or any(not isfinite(s) or s < 0 for s in shares.values()):
                problems.append(f"{attribute}: shares of two or more groups, none negative")
            elif abs(sum(shares.values()) - 1) > 1e-6:
                problems.append(
                    f"{attribute}: the shares add up to {sum(shares.values()):g}, not 1"
                )
        return _or_problems(targets, problems)

    @model_validator(mode="after")
    def _names_fit_together(self) -> Self:
        problems = []
        folded: dict[str, str] = {}
        for name in (*self.slices, *self.attribute_columns):
            other = folded.setdefault(name.casefold(), name)
            if other != name:
                problems.append(f"{other} and {name} differ only in case")
        problems += [
            f"{name} is both a slice and an attribute"
            for name in self.slices
            if name in self.attribute_columns
        ]
        usable = {column.name for column in LOGGED} | {*self.slices, *self.attribute_columns}
        for name in self.columns:
            if name not in usable:
                near = get_close_matches(name, sorted(usable), n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                problems.append(
                    f"columns: {name} is no column of the contract, no slice and no attribute{hint}"
                )
        problems += [
            f"groups: {name} is not among the attributes"
            for name in self.groups
            if name not in self.attribute_columns
        ]
        problems += [
            f"targets: {name} is not among the attributes"
            for name in self.targets
            if name not in self.attribute_names
        ]
        for label, threshold in self.thresholds.items():
            if threshold.attributes and not parse_score(label).measure.metric.grouped:
                problems.append(f"thresholds: {label} has no groups; leave attributes out")
            for name in threshold.attributes or ():
                if name not in self.attribute_names:
                    problems.append(f"thresholds: {label}: {name} is not among the attributes")
            for name in threshold.slices or ():
                if name not in (WHOLE, *self.slices):
                    problems.append(f"thresholds: {label}: {name} is neither a slice nor 'all'")
        return _or_problems(self, problems)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What is computed."""
        return tuple(parse_measure(label) for label in self.metrics)

    @property
    def attribute_columns(self) -> tuple[str, ...]:
        """The attribute columns that logs or the item table must have, each once."""
        return tuple(dict.fromkeys(name for attribute in self.attributes for name in attribute))

    @property
    def attribute_names(self) -> tuple[str, ...]:
        """Attributes as the history names them; intersections are joined."""
        return tuple(JOIN.join(attribute) for attribute in self.attributes)

    def path(self, name: str) -> Path:
        """``name`` as the settings mean it: relative to the folder of the settings file."""
        return self.folder / Path(name).expanduser()

    def _digest_of(self, names: Iterable[str]) -> str:
        return hash_of(self.model_dump(mode="json", include=set(names)))

    @property
    def rows_hash(self) -> str:
        """Digest of what decides which rows are accepted, as what, and how they are counted.

        SettingsError where ids are hashed and there is no key.
        """
        said = self._digest_of(DECIDE_ROWS)
        hidden = self.privacy.hash_ids
        if not hidden:
            return said
        return hash_of([said, sorted(set(hidden)), fingerprint(key_from(self.privacy.key))])

    @property
    def config_hash(self) -> str:
        """Digest of all that stored scores depend on: not paths, schedule, limits or resources."""
        return hash_of([self.rows_hash, self._digest_of(DECIDE_SCORES)])

    @property
    def deciding(self) -> str:
        """All that stored scores depend on, as JSON."""
        said = self.model_dump(mode="json", include={*DECIDE_ROWS, *DECIDE_SCORES})
        return json.dumps(said, sort_keys=True, ensure_ascii=False)

    def deciding_as(self, said: str) -> "Settings":
        """These settings, but with all that stored scores depend on as ``said``, JSON of before."""
        others = self.model_dump(exclude={"folder", *DECIDE_ROWS, *DECIDE_SCORES})
        return settings_from({**others, **json.loads(said)}, folder=self.folder)


DECIDE_ROWS = (
    "columns",
    "ranks",
    "missing_relevance",
    "missing_click",
    "relevant_from",
    "attributes",
    "slices",
    "rejects",
)
"""Settings that decide which rows are accepted and how they are counted."""
DECIDE_SCORES = (
    "top_of_list",
    "metrics",
    "targets",
    "unknown_group",
    "thresholds",
    "evidence",
)
"""Settings that decide what scores are made of counts, and what is said of them."""


def hash_of(said: Any) -> str:
    """Sixteen hex digits that stand for a JSON value."""
    text = json.dumps(said, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _twice(names: Iterable[str]) -> list[str]:
    return [f"{name} stands twice" for name, count in Counter(names).items() if count > 1]


def _wrong_names(names: Iterable[str]) -> list[str]:
    problems = []
    for name in names:
        if name.casefold() in _RESERVED:
            problems.append(f"{name} has a meaning of its own and cannot be a slice or attribute")
        elif not _NAME.fullmatch(name) or len(name) > 200:
            problems.append(f"{name!r} cannot name a column ('*' joins intersections)")
    return problems


def _parsed(labels: Iterable[str], parse: Callable[[str], T]) -> tuple[list[T], list[str]]:
    """What labels parse to, and what is wrong with those that name nothing."""
    found: list[T] = []
    problems: list[str] = []
    for label in labels:
        try:
            found.append(parse(label))
        except ValueError as error:
            problems.append(str(error))
    return found, problems


def _sided(label: str, computed: Sequence[str] | None) -> ScoreName:
    """The score that a label names, if it is computed and has an unfair side; else ValueError."""
    score = parse_score(label)
    if computed is not None and score.measure.label not in computed:
        raise ValueError(
            f"{label}: {score.measure.label} is not computed; add it to metrics or leave this out"
        )
    ways = score.measure.ways
    if score.aggregation is None and ways:
        said = ways[0].name if score.measure.metric.per_group else ways[-1].name
        raise ValueError(f"{label}: say which, as in {label}.{said}")
    if score.alarm is None:
        raise ValueError(f"{label} has no unfair side, so it cannot be judged or followed")
    return score


def _judged(label: str, threshold: Threshold, computed: Sequence[str] | None) -> str:
    """The printed label of the score that a threshold is about; ValueError if it cannot be."""
    score = _sided(label, computed)
    limit = threshold.min if score.alarm == "low" else threshold.max
    right, wrong = ("min", "max") if score.alarm == "low" else ("max", "min")
    if limit is None:
        raise ValueError(f"{label} is unfair when {score.alarm}: give {right}, not {wrong}")
    if limit not in score.range:
        raise ValueError(f"{label} lies in {score.range}; a limit of {limit:g} says nothing")
    return score.label


def load_settings(path: Path | None = None) -> Settings:
    """Settings from ``path``, or from audit.yaml in this folder.

    Paths that the environment names stand in the place of those of the file.  SettingsError lists
    every problem of the file at once.
    """
    file = path or Path(DEFAULT_FILE)
    hint = "" if path else "; name another with --config, or copy the commented example"
    said = read_text(file, hint)
    paths = environment_paths()
    where = ", ".join([str(file), *(PATH_VARIABLES[name] for name in paths)])
    return settings_from({**said, **paths}, folder=file.parent, where=where)


def settings_from(said: dict[Any, Any], *, folder: Path, where: str = "settings") -> Settings:
    """Settings from a mapping; SettingsError lists every problem at once."""
    if "folder" in said:
        raise SettingsError(f"{where}: folder: unknown setting; paths are relative to the file")
    try:
        return Settings(**{str(key): value for key, value in said.items()}, folder=folder)
    except ValidationError as error:
        problems = [line for each in error.errors() for line in _problems(each)]
    count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    if len(problems) > _MOST_PROBLEMS:
        problems[_MOST_PROBLEMS:] = [f"and {len(problems) - _MOST_PROBLEMS:,} more"]
    raise SettingsError(several(f"{where}: {count}", problems))


_IN_OTHER_WORDS: dict[Any, str] = {
    "tuple_type": "write a list, as in [one, two]",
    "model_type": "write its settings as 'name: value', below it or in braces",
    "too_short": "name at least one",
    ("memory_limit", "string_pattern_mismatch"): "write it as in 8GB or 80%",
    ("webhook", "string_pattern_mismatch"): "an address begins with http:// or https://",
    ("[key]", "string_type"): "write the name in quotes; without, YAML takes it for something else",
}
"""What pydantic says in terms of Python, for people who write YAML; by type of error, or by the
name of a setting and it."""


def _problems(error: Any) -> list[str]:
    """What one error of pydantic says, a line for each problem in it."""
    where = ".".join(str(step) for step in error["loc"])
    text = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        parent: Any = Settings
        for step in error["loc"][:-1]:
            field = getattr(parent, "model_fields", {}).get(step)
            parent = field.annotation if field else None
        fields = [name for name in getattr(parent, "model_fields", {}) if name != "folder"]
        near = get_close_matches(str(error["loc"][-1]), fields, n=1)
        text = "unknown setting" + (f"; did you mean {near[0]}?" if near else "")
    last = str(error["loc"][-1]) if error["loc"] else ""
    text = _IN_OTHER_WORDS.get((last, error["type"]), _IN_OTHER_WORDS.get(error["type"], text))
    lines = (f"{where}: {line}" if where else line for line in text.split("\n"))
    return [cut(line, _LONGEST_PROBLEM) for line in lines]
