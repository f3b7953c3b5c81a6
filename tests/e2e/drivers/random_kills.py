"""Kills processes of a stack at moments that a seed decides. Time is counted in changes, so a run can be repeated."""

import random
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from local_stack.running_stack import RunningStack
from testkit.waiting import eventually, scaled

MIN_OUTAGE, MAX_OUTAGE = 100, 400
"""After how many more changes a victim is started again, at the earliest."""

RESTART_S = 60
OUTAGE_S = 4 * RESTART_S
"""Changes wait while the victims of two other plans are down and start again, one after the other."""


@dataclass(frozen=True)
class Kill:
    """`victim` dies before the change number `at`, and stays down until `outage` more have been made."""

    victim: str
    at: int
    outage: int


def plan_kills(seed: int, victims: Sequence[str], count: int, first: int, changes: int) -> list[Kill]:
    """Plans `count` kills of victims, one in each of as many equal parts of the changes from `first` on, but the last
    tenth of all.
    """
    chance = random.Random(f"kills {seed} {victims}")
    part = (changes * 9 // 10 - first) // count
    return [
        Kill(
            chance.choice(victims),
            first + number * part + chance.randrange(part // 2),
            chance.randint(MIN_OUTAGE, MAX_OUTAGE),
        )
        for number in range(count)
    ]


class RandomKills:
    """Carries out a plan of kills beside the changes, while it is entered; on leaving, all victims are back.

    A victim has come back before the next one of the same plan dies.
    """

    def __init__(
        self, stack: RunningStack, plan: Sequence[Kill], changes: Callable[[], int], while_down: Callable[[str], None]
    ) -> None:
        """`changes` returns how many there have been. `while_down` is called with each victim before it is started
        again, and may raise AssertionError for a while.
        """
        self._stack = stack
        self._left = list(plan)
        self._changes = changes
        self._while_down = while_down
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="kills")
        self._under_way: Future[None] | None = None
        self._is_awaited = False
        """Whether no more changes are made before the kill under way is over: its victim must not wait for them."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_awaited = True
        try:
            if kind is None:
                self._wait()
        finally:
            self._thread.shutdown()

    def before(self, number: int) -> None:
        """Begins the kill that is due before a change, if there is one; raises the error of the previous kill."""
        if self._left and self._left[0].at <= number:
            self._wait()
            self._is_awaited = False
            self._under_way = self._thread.submit(self._carry_out, self._left.pop(0))

    def _wait(self) -> None:
        self._is_awaited = True
        if self._under_way is not None:
            self._under_way.result()

    def _carry_out(self, kill: Kill) -> None:
        self._stack.kill(kill.victim, hold=True)
        due = self._changes() + (0 if kill.victim == "broker" else kill.outage)  # without a broker, changes wait
        try:
            eventually(lambda: self._assert_down(kill.victim, due), timeout_s=OUTAGE_S)
        finally:
            self._stack.start(kill.victim)
        self._stack.wait_ready(kill.victim, scaled(RESTART_S))

    def _assert_down(self, victim: str, due: int) -> None:
        left = 0 if self._is_awaited else due - self._changes()
        assert left <= 0, f"{left} more changes are to be made while {victim} is down"
        self._while_down(victim)
