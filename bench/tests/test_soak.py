"""Memory that rises is told from memory that only trembles, and from the first growth of caches."""

import random

import pytest

from bench.soak import is_flat

SECONDS = 1500


@pytest.mark.parametrize(
    ("megabytes_per_hour", "noise", "flat"), [(0.0, 1.0, True), (2.0, 0.1, True), (30.0, 1.0, False), (8.0, 0.1, False)]
)
def test_only_a_trend_above_the_noise_is_growth(megabytes_per_hour: float, noise: float, flat: bool) -> None:
    chance = random.Random(7)
    samples = [
        (float(s), 100 + megabytes_per_hour * s / 3600 + chance.gauss(0, noise)) for s in range(300, 300 + SECONDS)
    ]

    assert is_flat("a process", samples) is flat


def test_memory_that_has_filled_up_is_flat_although_it_never_falls() -> None:
    assert is_flat("a process", [(float(s), 100 + min(s / 100, 1.0)) for s in range(SECONDS)])
