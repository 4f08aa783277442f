"""One incident, one alert: what moves together is told together, and quiet nights are quiet."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from histories import NIGHTS, alerts_of, assessments, group, put, quiet, score, small_audit

from pipeline.monitoring.alerts import alerts
from pipeline.monitoring.assess import assess
from pipeline.monitoring.episodes import continued
from pipeline.monitoring.findings import Findings, cover, shift_findings
from pipeline.monitoring.followed_scores import eligible, nights
from pipeline.monitoring.gates import Releases
from pipeline.monitoring.inputs import Matrix
from pipeline.monitoring.subjects import Part, Series, Subject
from pipeline.settings.audit import Settings
from pipeline.settings.sections import Trends

METRICS = ("EXP", "EXPU", "ERBE(decay=0.75)", "EXPRU", "ARP", "AWRF(p=0.1)", "AWRF(p=0.3)")
WHOLE = Part("all", "all", "gender")
MOBILE = Part("device", "mobile", "gender")
CROSS = Part("all", "all", "gender*region")
BAD = 16
Slices = tuple[str, ...]


def shift(part: Part) -> Subject:
    return Subject("shift", part)


def flip(part: Part) -> Subject:
    return Subject("flip", part)


def breach(part: Part, metric: str = "EXP") -> Subject:
    return Subject.about("breach", Series(*part, metric, "MinMaxRatio"))


@pytest.mark.parametrize(
    ("found", "opens"),
    [
        ([shift(WHOLE), shift(MOBILE), shift(CROSS)], [shift(WHOLE)]),
        ([breach(WHOLE), shift(WHOLE), flip(WHOLE), shift(MOBILE)], [breach(WHOLE)]),
        ([flip(WHOLE), shift(WHOLE), flip(CROSS)], [flip(WHOLE)]),
        ([breach(WHOLE), breach(MOBILE), breach(WHOLE, "ARP"), breach(MOBILE, "ERBE")],
         [breach(WHOLE), breach(WHOLE, "ARP"), breach(MOBILE, "ERBE")]),
        # What is narrower, or elsewhere, tells of nothing.
        ([breach(MOBILE), shift(WHOLE)], [breach(MOBILE), shift(WHOLE)]),
        ([shift(WHOLE), flip(WHOLE._replace(attribute="region"))],
         [flip(WHOLE._replace(attribute="region")), shift(WHOLE)]),
        ([shift(MOBILE), shift(MOBILE._replace(attribute="gender*region")),
          shift(Part("market", "de", "gender*region"))],
         [shift(MOBILE), shift(Part("market", "de", "gender*region"))]),
        ([breach(WHOLE), shift(WHOLE._replace(attribute=None))],
         [breach(WHOLE), shift(WHOLE._replace(attribute=None))]),
    ],
)  # fmt: skip
def test_what_tells_of_what(found: list[Subject], opens: list[Subject]) -> None:
    night = Findings("1", {*found})
    cover(night)
    assert {each.subject for each in continued([], [night])} == set(opens)


def test_what_is_left_of_an_incident_opens_nothing() -> None:
    def opened(began: str | None) -> list[str]:
        first, third = Findings("1", {breach(WHOLE)}), Findings("3", {shift(MOBILE)})
        second = Findings("2", fine={breach(WHOLE)})
        third.began = {} if began is None else {shift(MOBILE): began}
        return [each.opened for each in continued([], [first, second, third])]

    assert opened("1") == ["1"]
    assert opened("2") == ["1", "3"]
    assert opened(None) == ["1", "3"]


# -- in a history


def night(settings: Settings, at: int, value: float, slices: Slices = (), **said: Any) -> None:
    """Seven scores of the whole batch, and of two devices; those of ``slices`` have the value."""
    rows = []
    for number, metric in enumerate(METRICS):
        for part, name in (("all", "all"), ("device", "mobile"), ("device", "desktop")):
            usual = quiet(at + 31 * number + 17 * len(name))
            moved = part == "all" or name in slices
            row = {"slice": part, "slice_value": name, "metric": metric, "status": "not_judged"}
            rows.append(score(value - number / 100 if moved and value < 0.85 else usual,
                              **{**row, **said}))  # fmt: skip
    put(settings, NIGHTS[at], rows, [group("F", value), group("M", 1.0)])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Quiet nights, assessed; the scores of the last one, and of one device, are bad."""
    found = small_audit(
        tmp_path_factory.mktemp("nights"),
        metrics=list(METRICS),
        thresholds={},
        trends={"window": 14},
    )
    for at in range(BAD):
        night(found, at, 0.9)
    night(found, BAD, 0.6, ("mobile",))
    assess(found)
    return found


def test_scores_that_shift_together_are_one_alert(settings: Settings) -> None:
    (row,) = alerts(settings)
    assert (row["kind"], row["slice"], row["attribute"]) == ("shift", "all", "gender")
    assert (row["metric"], row["aggregation"]) == (None, None)
    lines = row["text"].split("\n")
    assert lines[0].endswith("; 6 more.")
    assert sum(line.startswith("Also ") for line in lines) == 4
    assert "And 2 more." in lines
    assert "In all, 7 of 7 followed scores of gender shifted." in lines
    assert "The same in device mobile." in lines


@pytest.mark.slow
def test_a_shift_goes_on_until_all_its_scores_are_fine(settings: Settings) -> None:
    night(settings, BAD + 1, 0.9)
    assess(settings)
    assert len(alerts(settings, every=True)) == 1
    for at in range(BAD + 2, BAD + 14):
        night(settings, at, 0.9)
    assess(settings)
    (row,) = alerts(settings, every=True)
    assert (row["state"], row["batches"]) == ("resolved", 1)


def test_a_breach_tells_how_much_moved_with_it(settings: Settings) -> None:
    night(settings, BAD, 0.6, ("mobile",), status="breach")
    assess(settings)
    rows = alerts(settings)
    assert {row["kind"] for row in rows} == {"breach"}
    assert all("With it, 7 of 7 followed scores of gender shifted." in row["text"] for row in rows)


@pytest.mark.slow
def test_incidents_night_by_night_are_those_at_once(settings: Settings, tmp_path: Path) -> None:
    other = small_audit(
        tmp_path / "other", metrics=list(METRICS), thresholds={}, trends={"window": 14}
    )
    bad = {BAD: ("mobile",), BAD + 1: (), BAD + 4: ("desktop",)}
    for at in range(BAD + 8):
        value, status = (0.6, "breach") if at in bad else (0.9, "ok")
        night(other, at, value, bad.get(at, ()), status=status)
        assess(other, [NIGHTS[at]])
        night(settings, at, value, bad.get(at, ()), status=status)
    assess(settings)
    assert alerts_of(other)
    assert assessments(other) == assessments(settings)


# -- quiet nights

SERIES = tuple(
    Series(*place, attribute, f"M{number}", None)
    for place in (("all", "all"), ("device", "a"), ("device", "b"))
    for attribute in ("gender", "region")
    for number in range(10)
)


def opened(seed: int, off: float = 0.0) -> int:
    """Shifts that open in 40 nights of 60 series, after 30; in the first, half are ``off``."""
    rng = np.random.default_rng(seed)
    batches = NIGHTS[:30] + [f"2026-03-{day:02d}" for day in range(1, 32)] + [
        f"2026-04-{day:02d}" for day in range(1, 10)
    ]  # fmt: skip
    values = rng.normal(size=(len(batches), len(SERIES)))
    values[30, [series.attribute == "gender" for series in SERIES]] += off
    matrix = Matrix(
        tuple(batches),
        SERIES,
        values,
        np.full(values.shape, -1),
        (),
        np.ones(len(SERIES), dtype=np.int64),
    )
    able = eligible(matrix, set(), set())
    found = []
    for each in nights(matrix, 30, able, set(), Releases(()), Trends()):
        found.append(Findings(batches[each.row]))
        shift_findings(found[-1], matrix, each, Trends())
        cover(found[-1])
    return len(continued([], found))


SEEDS = range(12)


def test_quiet_nights_open_no_alert() -> None:
    """A night has false news in a family of m quiet, independent series with 0.05 / H(m) at most.

    H(m) = 1 + 1/2 + ... + 1/m is what Benjamini-Yekutieli pays for any dependence.  Families of 20
    and of 40 make 1.02 alerts in 40 nights at most, and none in 36 % of such periods at least.
    The seeds are the first twelve.
    """
    night = sum(0.05 / sum(1 / i for i in range(1, m + 1)) for m in (20, 40))
    alarms = [opened(seed) for seed in SEEDS]
    assert sum(alarms) <= 40 * night * len(SEEDS)
    assert alarms.count(0) >= (1 - night) ** 40 * len(SEEDS)


def test_one_wild_night_is_one_alert() -> None:
    """Besides what quiet nights open: charts that fall slowly add nothing."""
    more = [opened(seed, 10.0) - opened(seed) for seed in SEEDS]
    assert sum(more) <= 1.25 * len(SEEDS)
    assert sorted(more)[len(more) // 2] == 1
