"""What every test shares: how hypothesis looks for counter-examples.

The default profile draws the same examples each time, so that a failure belongs to the change at
hand, and reports the first that fails: one example can be a whole audit, and to shrink it takes
minutes.  ``HYPOTHESIS_PROFILE=explore`` draws others each time and shrinks what it finds.
"""

import os
import signal

import pytest
from damaged import small_audit
from hypothesis import HealthCheck, Phase, settings

from pipeline.settings import Settings

settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile(
    "explore",
    settings.get_profile("steady"),
    derandomize=False,
    phases=tuple(Phase),
    print_blob=True,
)
# What a shell starts in the background ignores Ctrl-C, and so would the children of the tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


@pytest.fixture(scope="session")
def small_store(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """An audit of a few days with everything that a store can hold; tests copy it."""
    return small_audit(tmp_path_factory.mktemp("small"))
