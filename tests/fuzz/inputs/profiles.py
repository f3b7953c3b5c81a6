"""How many inputs each test sends: `ci`, the same ones in each run, or `long`, new ones by the seed of the run."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "fuzz-ci", max_examples=80, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck)
)
settings.register_profile(
    "fuzz-long", max_examples=1_000, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True
)

PROFILE = settings.get_profile(f"fuzz-{os.environ.get('FUZZ_PROFILE', 'ci')}")


def fuzz(share: float = 1.0) -> settings:
    """Decorates a fuzz test that gets this share of the profile's number of inputs, because each costs more or less."""
    return settings(PROFILE, max_examples=max(1, round(PROFILE.max_examples * share)))
