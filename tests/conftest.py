"""What every test shares: how hypothesis looks for counter-examples.

The default profile draws the same examples each time, so that a failure belongs to the change at
hand; ``HYPOTHESIS_PROFILE=explore`` looks further.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile(
    "explore", settings.get_profile("steady"), derandomize=False, max_examples=1000, print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
