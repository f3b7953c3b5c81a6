"""How long to wait before the next attempt to connect."""

import random
from collections.abc import Callable

FIRST_S = 0.25
LONGEST_S = 10.0


class Backoff:
    """Pauses that double with each failure, up to the longest, and vary: clients must not all come back at once."""

    def __init__(self, chance: Callable[[], float] = random.random) -> None:
        """`chance` returns numbers from 0 up to 1."""
        self._chance = chance
        self._failures = 0

    def reset(self) -> None:
        """The connection works: the next pause is a first one."""
        self._failures = 0

    def next(self) -> float:
        """The next pause in seconds: from half of its ceiling up to it."""
        ceiling: float = min(FIRST_S * 2.0**self._failures, LONGEST_S)
        self._failures += 1
        return ceiling * (0.5 + self._chance() / 2)
