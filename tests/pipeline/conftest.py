"""What tests of commands share: no new page after each run."""

import pytest


@pytest.fixture(autouse=True)
def no_page(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new page is written only where a test looks at it: it takes longer than the rest."""
    if "with_page" not in request.fixturenames:
        monkeypatch.setattr("pipeline.runs.finish.renew_report", lambda *_: None)


@pytest.fixture
def with_page() -> None:
    """Asks for the page."""
