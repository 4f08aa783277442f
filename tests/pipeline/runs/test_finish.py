"""The end of a run: its order, and that nothing of it is left out however the run ends."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from stores import DAY, audit, deliver, random_lists

import pipeline.runs.batches
from pipeline.errors import StoreBusy
from pipeline.monitoring.assess import Assessed
from pipeline.runs import finish as module
from pipeline.runs.finish import finish
from pipeline.runs.outcome import Outcome
from pipeline.settings.audit import Settings

NEXT = "2026-01-06"


@pytest.fixture
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return audit(tmp_path_factory.mktemp("audit"), metrics=["EXP"])


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch, no_page: None) -> list[str]:
    """What the end of a run does, in order; there is one alert to send."""
    taken: list[str] = []

    def step(name: str, answer: object) -> None:
        def take(*_: object, **__: object) -> object:
            taken.append(name)
            return answer

        monkeypatch.setattr(module, name, take)

    step("assess", Assessed(gated=(DAY,)))
    step("forget_rows", [])
    step("publish", None)
    step("publish_changes", None)
    step("newest_batches", {NEXT})
    step("deliver", 1)
    step("renew_report", None)
    return taken


def test_alerts_are_sent_between_two_copies_and_the_page_comes_last(
    settings: Settings, steps: list[str]
) -> None:
    finished = finish(settings, [DAY], [DAY, NEXT], notify="newest")
    assert finished.assessed.gated == (DAY,)
    assert steps == [
        *("assess", "forget_rows", "publish_changes", "newest_batches"),
        *("deliver", "publish_changes", "renew_report"),
    ]


def test_only_a_run_about_the_newest_batch_sends(settings: Settings, steps: list[str]) -> None:
    finish(settings, [DAY], [DAY], notify="newest")
    assert "deliver" not in steps
    finish(settings, [DAY], [DAY], notify="all")
    assert steps.count("deliver") == 1


def test_what_is_not_published_has_no_new_page(settings: Settings, steps: list[str]) -> None:
    finish(settings, [DAY], [DAY], notify="all", publishing="nothing")
    assert steps == ["assess", "forget_rows", "deliver"]
    steps.clear()
    finish(settings, [], [DAY], publishing="always")
    assert steps == ["assess", "forget_rows", "publish", "renew_report"]


def test_the_page_is_that_of_the_copy_also_where_alerts_cannot_be_sent(
    settings: Settings, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(_: Settings) -> int:
        raise StoreBusy("in use")

    monkeypatch.setattr(module, "deliver", busy)
    with pytest.raises(StoreBusy):
        finish(settings, [DAY], [NEXT], notify="newest")
    assert steps[-1] == "renew_report"


def test_an_interrupted_backfill_ends_like_any_other(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, no_page: None
) -> None:
    """Ctrl-C after the first batch: it is assessed and published, and the page follows."""
    for seed, batch in enumerate((DAY, NEXT)):
        deliver(settings.folder, random_lists(seed), batch=batch)
    pages: list[bool] = []
    monkeypatch.setattr(module, "renew_report", lambda _: pages.append(True))
    with closing(_begun(settings)) as outcomes:
        assert next(outcomes).batch == DAY
        assert not pages
    assert pages == [True]


def _begun(settings: Settings) -> Iterator[Outcome]:
    return pipeline.runs.batches.backfill(settings, [DAY, NEXT])
