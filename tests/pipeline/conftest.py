"""What tests of commands share: no new page after each run."""

import pytest


@pytest.fixture(autouse=True)
def _no_page(request: pytest.FixtureRequest) -> None:
    if "with_page" not in request.fixturenames:
        request.getfixturevalue("no_page")


@pytest.fixture
def with_page() -> None:
    """Asks for the page."""
