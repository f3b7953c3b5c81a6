"""Decides when a query that has failed is started again, and when it has failed too often."""

from dataclasses import dataclass, field

FIRST_PAUSE_S = 1.0
MAX_PAUSE_S = 60.0
STEADY_S = 300.0
"""A query that ran for so long has got over its failures: the next one is the first again."""


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
