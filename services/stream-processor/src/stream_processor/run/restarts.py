"""Decides when a query that has failed is started again, and when it has failed too often.

It also notices when queries must start again because the clock went back.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

FIRST_PAUSE_S = 1.0
MAX_PAUSE_S = 60.0
STEADY_S = 300.0
"""A query that ran for so long has got over its failures: the next one is the first again."""
OTHERS_PAUSE_S = 10.0
"""The pause after a failure that an act of others ends, as on a full disk: it is none of the row."""
MIN_STEP_S = 10.0
"""A clock that goes back by less costs a micro-batch query less than a new start."""


@dataclass
class Restarts:
    """Counts the failures in a row of each query; after `most` of them it stays stopped."""

    most: int
    _failures: dict[str, int] = field(default_factory=dict, init=False)

    def pause_s(self, query: str, ran_s: float) -> float | None:
        """Counts a failure of a query that ran for `ran_s` seconds.

        Returns the seconds until it is started again, which double with each failure; None when it stays stopped.
        """
        failures = 1 if ran_s >= STEADY_S else self._failures.get(query, 0) + 1
        self._failures[query] = failures
        return None if failures >= self.most else min(FIRST_PAUSE_S * 2.0 ** (failures - 1), MAX_PAUSE_S)

    def forget(self, query: str) -> None:
        """Begins to count anew, for a query that is another one now."""
        self._failures.pop(query, None)


@dataclass
class DayClock:
    """Notices that the clock of the day went back: Spark's micro-batches wait for a time of day, for as long.

    Both clocks give seconds; nobody sets the second one.
    """

    of_day: Callable[[], float] = time.time
    passed: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._lead = self.of_day() - self.passed()

    def step_back_s(self) -> float:
        """Returns the seconds by which the clock went back since the last call; 0 when that is less than MIN_STEP_S."""
        last, self._lead = self._lead, self.of_day() - self.passed()
        back = last - self._lead
        return back if back >= MIN_STEP_S else 0.0
