"""Settings of an audit: what ``audit.yaml`` may say, and what it means when it says nothing.

Here: what several sections have to agree in, and the digests of all of them.  Not here: what one
section may say by itself (``sections``), and reading a file (``load``).
"""

import hashlib
import json
import re
from collections.abc import Iterable
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from metrics import FAIRNESS, UNKNOWN, WHOLE, Measure, parse_measure, parse_measures, parse_score
from pipeline.settings.group_values import shown, tidied_groups
from pipeline.settings.id_key import fingerprint, key_from
from pipeline.settings.labels import (
    JOIN,
    judged_score,
    parsed_labels,
    repeated,
    score_with_a_side,
    wrong_names,
)
from pipeline.settings.sections import (
    Evidence,
    Gate,
    Limits,
    Notify,
    Part,
    Privacy,
    Ranks,
    Rejects,
    Schedule,
    Threshold,
    Trends,
    Unknown,
    as_list,
    or_problems,
)
from pipeline.settings.text import cut
from pipeline.settings.value_labels import wrong_value_labels
from schemas.rules import LOGGED

_OWNER = re.compile(r"^(team:\S+|[A-Za-z0-9_.+-]+@[A-Za-z0-9-]+\.[A-Za-z0-9.-]+)$")
"""What Dagster takes for an owner."""


def _attribute(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else (value,)


Attribute = Annotated[tuple[str, ...], BeforeValidator(_attribute)]
WindowDays = Annotated[int, Field(strict=True, ge=2, le=366)]
"""Days of a window: one is the batch, and a year is what anybody looks back."""
Names = Annotated[tuple[str, ...], BeforeValidator(as_list)]


class Settings(Part):
    """All settings of an audit.  Paths are relative to the folder of the settings file."""

    folder: Path = Path()
    logs: Names = ("logs/{batch}/*",)
    items: str | None = None
    store: str = "store"
    spill: str | None = Field(default=None, min_length=1)
    columns: dict[str, Annotated[str, Field(min_length=1)]] = Field(default_factory=dict)
    ranks: Ranks = Ranks()
    # Most rankings are of what people want; a list of risks or of checks has to say so.
    top_of_list: Literal["good", "bad"] = "good"
    # Nobody judged it: taken for zero, it would tell against those who are judged less often.
    missing_relevance: Literal["undefined", "zero"] = "undefined"
    missing_click: Literal["undefined", "zero"] = "undefined"
    # Half of the way: with relevance 0 or 1, and nothing in between, any value says the same.
    relevant_from: float = Field(default=0.5, gt=0, le=1)
    attributes: Annotated[tuple[Attribute, ...], BeforeValidator(as_list)] = Field(min_length=1)
    slices: Names = ()
    metrics: Names = Field(default=(FAIRNESS.name,), min_length=1, validate_default=True)
    values: dict[str, Annotated[dict[str, str], Field(min_length=1)]] = Field(default_factory=dict)
    groups: dict[str, Annotated[tuple[str, ...], Field(min_length=1)]] = Field(default_factory=dict)
    labels: dict[str, Annotated[dict[str, str], Field(min_length=1)]] = Field(default_factory=dict)
    targets: dict[str, dict[str, float]] = Field(default_factory=dict)
    thresholds: dict[str, Threshold] = Field(default_factory=dict)
    rejects: Rejects = Rejects()
    unknown_group: Unknown = Unknown()
    limits: Limits = Limits()
    # Files that count their lists from 1 each would become one file with longer lists.
    lists_span_files: bool = False
    # Few senders write any, and one that is there must agree in either case.
    checksums: Literal["if_present", "required"] = "if_present"
    schedule: Schedule = Schedule()
    evidence: Evidence = Evidence()
    gate: Gate = Gate()
    trends: Trends = Trends()
    # Each costs as much as to score a batch, and that of 28 days their counts to be added up.
    windows: Annotated[tuple[WindowDays, ...], BeforeValidator(as_list)] = ()
    notify: Notify = Notify()
    privacy: Privacy = Privacy()
    memory_limit: str | None = Field(default=None, pattern=r"^[0-9]+(\.[0-9]+)? ?([KMGT]i?B|%)$")
    threads: int | None = Field(default=None, ge=1, le=1024)
    # Others hold the history while a day is merged: longer than that is worth a message.
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
        return or_problems(owners, [*problems, *repeated(owners)])

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
        return or_problems(patterns, problems)

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
        problems += wrong_names(dict.fromkeys(name for each in attributes for name in each))
        problems += repeated(JOIN.join(attribute) for attribute in attributes)
        return or_problems(attributes, problems)

    @field_validator("slices")
    @classmethod
    def _slices_named(cls, slices: tuple[str, ...]) -> tuple[str, ...]:
        return or_problems(slices, [*wrong_names(slices), *repeated(slices)])

    @field_validator("metrics")
    @classmethod
    def _metrics_known(cls, labels: tuple[str, ...]) -> tuple[str, ...]:
        found, problems = parsed_labels(labels, parse_measures)
        said = [measure.label for named in found for measure in named]
        # A family may be named beside one of its metrics; one label may not stand twice.
        twice = repeated(named[0].label for named in found if len(named) == 1)
        return or_problems(tuple(dict.fromkeys(said)), [*problems, *twice])

    @field_validator("thresholds")
    @classmethod
    def _thresholds_fit(
        cls, thresholds: dict[str, Threshold], info: ValidationInfo
    ) -> dict[str, Threshold]:
        computed = info.data.get("metrics")
        scores, problems = parsed_labels(
            thresholds, lambda label: judged_score(label, thresholds[label], computed)
        )
        problems += repeated(scores)
        return or_problems(dict(zip(scores, thresholds.values(), strict=False)), problems)

    @field_validator("trends")
    @classmethod
    def _followed_scores_fit(cls, trends: Trends, info: ValidationInfo) -> Trends:
        computed = info.data.get("metrics")
        labels, problems = parsed_labels(
            trends.scores or (), lambda label: score_with_a_side(label, computed).label
        )
        problems = [f"scores: {problem}" for problem in (*problems, *repeated(labels))]
        scores = None if trends.scores is None else tuple(labels)
        return or_problems(trends.model_copy(update={"scores": scores}), problems)

    @field_validator("values")
    @classmethod
    def _values_tidied(cls, values: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
        problems = []
        found = {}
        for attribute, groups in values.items():
            found[attribute], wrong = tidied_groups(groups)
            problems += [f"{attribute}: {problem}" for problem in wrong]
        return or_problems(found, problems)

    @field_validator("labels")
    @classmethod
    def _labels_tell_apart(cls, labels: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
        return or_problems(
            labels,
            [
                f"{column}: {problem}"
                for column, label_of in labels.items()
                for problem in wrong_value_labels(label_of)
            ],
        )

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
        return or_problems(targets, problems)

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
        names_by_column: dict[str, list[str]] = {}
        for name, column in self.columns.items():
            names_by_column.setdefault(column, []).append(name)
        problems += [
            f"columns: {shown(column)} stands for {' and '.join(names)}; it can be one of them only"
            for column, names in names_by_column.items()
            if len(names) > 1
        ]
        problems += self._values_misplaced()
        problems += [
            f"groups: {name} is not among the attributes"
            for name in self.groups
            if name not in self.attribute_columns
        ]
        problems += [
            f"labels: {name} is neither an attribute nor a slice"
            for name in self.labels
            if name not in (*self.attribute_columns, *self.slices)
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
        return or_problems(self, problems)

    def _values_misplaced(self) -> list[str]:
        """What is wrong with ``values`` beside attributes, and beside what else names groups."""
        problems = []
        for name, groups in self.values.items():
            if name in self.slices:
                problems.append(f"values: {name} is a slice, and only attributes have groups")
            elif name not in self.attribute_columns:
                problems.append(f"values: {name} is not among the attributes")
            expected = self.groups.get(name)
            for value, group in groups.items():
                counts_as = f"values: {name}: {shown(value)} counts as {shown(group)}"
                if expected and value in expected:
                    problems.append(f"{counts_as}, so `groups` cannot name it")
                if expected and group not in (*expected, UNKNOWN):
                    problems.append(f"{counts_as}, which `groups` does not name")
                if value in self.targets.get(name, ()):
                    problems.append(f"{counts_as}, so `targets` cannot name it")
        return problems

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

    def _said(self, names: Iterable[str]) -> dict[str, Any]:
        """What settings say; those that came later only where they say something.

        Without them, digests are what they always were.
        """
        silent = {name for name in CAME_LATER if not getattr(self, name)}
        return self.model_dump(mode="json", include={*names} - silent)

    @property
    def rows_hash(self) -> str:
        """Digest of what decides which rows are accepted, as what, and how they are counted.

        SettingsError where ids are hashed and there is no key.
        """
        digest = hash_of(self._said(DECIDE_ROWS))
        hidden = self.privacy.hash_ids
        if not hidden:
            return digest
        return hash_of([digest, sorted(set(hidden)), fingerprint(key_from(self.privacy.key))])

    @property
    def config_hash(self) -> str:
        """Digest of all that stored scores depend on: not paths, schedule, limits or resources."""
        return hash_of([self.rows_hash, hash_of(self._said(DECIDE_SCORES))])

    @property
    def deciding(self) -> str:
        """All that stored scores depend on, as JSON."""
        said = self._said((*DECIDE_ROWS, *DECIDE_SCORES))
        return json.dumps(said, sort_keys=True, ensure_ascii=False)


DECIDE_ROWS = (
    "columns",
    "ranks",
    "missing_relevance",
    "missing_click",
    "relevant_from",
    "attributes",
    "slices",
    "values",
    "rejects",
)
"""Settings that decide which rows are accepted and how they are counted."""
DECIDE_SCORES = (
    "top_of_list",
    "metrics",
    "groups",
    "targets",
    "unknown_group",
    "thresholds",
    "evidence",
)
"""Settings that decide what scores are made of counts, and what is said of them."""
CAME_LATER = ("values", "groups")
"""Of these, the ones that stores were made without."""


def hash_of(said: Any) -> str:
    """Sixteen hex digits that stand for a JSON value."""
    text = json.dumps(said, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
