"""The machine's clocks in whole units."""

import time

from statecast_service.clocks import wall_ms, wall_us


def test_the_wall_clock_counts_from_1970() -> None:
    before = time.time()

    assert before * 1000 - 1 <= wall_ms() <= before * 1000 + 10_000
    assert before * 1_000_000 - 1 <= wall_us() <= before * 1_000_000 + 10_000_000
