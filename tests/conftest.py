"""What every test shares: which are run, how many cases are tried, and what is measured of them.

The default profile of hypothesis draws the same examples each time, so that a failure belongs to
the change at hand, and reports the first that fails: one example can be a whole audit, and to
shrink it takes minutes.  ``HYPOTHESIS_PROFILE=explore`` draws others each time and shrinks what it
finds.
"""

import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import cases
import pytest
from command import without_page
from damaged import small_audit, small_settings
from hypothesis import HealthCheck, Phase
from hypothesis import settings as profiles
from stores import copied
from workers import made_once

from pipeline.settings.audit import Settings
from pipeline.store.paths import Store, store_of

profiles.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
profiles.register_profile(
    "explore",
    profiles.get_profile("steady"),
    derandomize=False,
    phases=tuple(Phase),
    print_blob=True,
)
# What a shell starts in the background ignores Ctrl-C, and so would the children of the tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

profiles.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

HERE = Path(__file__).parent
MARKED_BY_FOLDER = ("harm", "project")
LEFT_OUT = ("slow", *MARKED_BY_FOLDER)
"""Marks of what `make test` leaves out."""
LONGEST = 5.0
"""Seconds of CPU that a test may take without such a mark."""
# No examples stand in these, and some of them are scripts.
collect_ignore_glob = ["helpers/*", "oracles/*", "harm/crash_*"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="try laws and oracles on all their cases")


def pytest_configure(config: pytest.Config) -> None:
    cases.tried_on(everything=config.getoption("--full"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What lies in a folder with the name of a mark has that mark."""
    for item in items:
        if item.path.is_relative_to(HERE):
            folder = item.path.relative_to(HERE).parts[0]
            if folder in MARKED_BY_FOLDER:
                item.add_marker(folder)


# -- tests that take long, and are not marked

_LONG = "seconds of CPU, unmarked"


class _Spent:
    """Seconds of CPU, by this process and by the children that it has waited for."""

    begun = 0.0
    shared = 0.0
    """For what several tests share, and so not for the one that happens to come first."""
    long: ClassVar[dict[str, float]] = {}

    @staticmethod
    def now() -> float:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(each.ru_utime + each.ru_stime for each in used)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _Spent.begun, _Spent.shared = _Spent.now(), 0.0
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
    before, inside = _Spent.now(), _Spent.shared
    try:
        return (yield)
    finally:
        if fixturedef.scope != "function":
            # What it asked for itself is in the difference already.
            _Spent.shared = inside + _Spent.now() - before


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if call.when == "teardown":
        spent = _Spent.now() - _Spent.begun - _Spent.shared
        if spent > LONGEST and not any(map(item.get_closest_marker, LEFT_OUT)):
            # Reports are what reaches the process that prints, if several run tests.
            report.user_properties.append((_LONG, spent))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "teardown":
        for name, spent in report.user_properties:
            if name == _LONG:
                _Spent.long[report.nodeid] = spent


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _Spent.long:
        terminalreporter.section(f"over {LONGEST:g} s of CPU without a mark")
        for name, spent in sorted(_Spent.long.items(), key=lambda each: -each[1]):
            terminalreporter.write_line(f"{spent:6.1f} s  {name}")
        terminalreporter.write_line(
            f"Mark what belongs to {', '.join(LEFT_OUT)}, or make it faster."
        )


@pytest.fixture(scope="session")
def small_store(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """An audit of a few days with everything that a store can hold; tests copy it."""
    folder = made_once(tmp_path_factory.getbasetemp(), "small", small_audit)
    return copied(small_settings(folder), tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="session")
def whole(small_store: Settings) -> Settings:
    """What the tests of a module read, and change copies of; many modules have one of their own."""
    return small_store


@pytest.fixture
def settings(whole: Settings, tmp_path: Path) -> Settings:
    """A copy of the audit, for a test to change."""
    return copied(whole, tmp_path)


@pytest.fixture
def store(settings: Settings) -> Store:
    """The store of that copy."""
    return store_of(settings)


@pytest.fixture
def no_page() -> Iterator[None]:
    """No new page after a run."""
    with without_page():
        yield
