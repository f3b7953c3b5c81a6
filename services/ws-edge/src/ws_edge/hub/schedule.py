"""When things are due: timed reads, and whatever else waits for its time."""

from collections.abc import Callable
from math import ceil
from typing import Generic, TypeVar

from ws_edge.hub.watch import Watch, WatchStatus

T = TypeVar("T")

RETRY_S = 0.1
"""After how long a key that nobody answered for is asked for again, when its subscribers set no longer time."""


class TimingWheel(Generic[T]):
    """Items by the slot of time in which they are due, at a cost of the due items alone.

    Nothing is ever removed early: whoever takes an item checks that it is still wanted.
    """

    __slots__ = ("_next", "_slots", "tick")

    def __init__(self, tick: float, now: float) -> None:
        """`tick` is the length of a slot in seconds; times are those of any monotonic clock."""
        self.tick = tick
        self._next = int(now / tick)
        self._slots: dict[int, list[T]] = {}

    def add(self, item: T, at: float) -> int:
        """Puts the item into the first slot that starts at `at` or later and has not been taken; returns the slot."""
        # A time that is a whole number of slots may be a hair above it as a float.
        slot = max(ceil(at / self.tick - 1e-6), self._next)
        self._slots.setdefault(slot, []).append(item)
        return slot

    def take(self, now: float) -> list[tuple[int, T]]:
        """Takes out all items whose slot has started, with their slots, in the order in which they are due."""
        last = int(now / self.tick + 1e-6)
        first, self._next = self._next, last + 1
        # After a long pause there may be far more empty slots than filled ones.
        slots = range(first, last + 1) if last - first < len(self._slots) else sorted(self._slots)
        return [(slot, item) for slot in slots if slot <= last for item in self._slots.pop(slot, ())]

    def next_at(self, now: float) -> float:
        """When the slot after the one of `now` starts."""
        return (int(now / self.tick + 1e-6) + 1) * self.tick


class PollSchedule:
    """Decides how each watch is read next, at its interval, at once or by long poll, and owns its status."""

    def __init__(self, tick: float, now: float, wake: Callable[[], None]) -> None:
        """`wake` is called when something is due before the next tick."""
        self._wheel: TimingWheel[Watch] = TimingWheel(tick, now)
        self._due_now: dict[Watch, None] = {}
        self._wake = wake

    def ask_now(self, watch: Watch, now: float) -> None:
        """Makes a timed read due at once."""
        watch.due = now
        self._put_first(watch, WatchStatus.ASKED)

    def ask_again(self, watch: Watch, now: float) -> None:
        """Holds the watch in a long poll when its interval is 0, and schedules its next timed read otherwise."""
        if watch.status is WatchStatus.ENDED:
            return
        if watch.interval == 0:
            self._put_first(watch, WatchStatus.HELD)
        else:
            self.ask_later(watch, now)

    def ask_later(self, watch: Watch, now: float) -> None:
        """Schedules the next timed read."""
        if watch.status is not WatchStatus.ENDED:
            # Ticks that passed while the key was asked for are skipped, not made up for.
            interval = watch.interval or RETRY_S
            missed = max(0.0, now - watch.due) // interval
            watch.status = WatchStatus.SCHEDULED
            watch.slot = self._wheel.add(watch, watch.due + (missed + 1) * interval)

    def hasten(self, watch: Watch) -> None:
        """Brings the next timed read forward when a shorter interval has been asked for."""
        due = watch.due + watch.interval
        if watch.status is WatchStatus.SCHEDULED and due < watch.slot * self._wheel.tick:
            watch.slot = self._wheel.add(watch, due)

    def take(self, now: float) -> list[Watch]:
        """Returns what is to be read now; it is not returned again until it is scheduled anew."""
        due = [watch for watch in self._due_now if watch.status in (WatchStatus.ASKED, WatchStatus.HELD)]
        self._due_now.clear()
        for slot, watch in self._wheel.take(now):
            # A watch may stand in earlier slots that no longer count.
            if watch.status is WatchStatus.SCHEDULED and watch.slot == slot:
                watch.status = WatchStatus.ASKED
                watch.due = slot * self._wheel.tick
                due.append(watch)
        return due

    def _put_first(self, watch: Watch, status: WatchStatus) -> None:
        watch.status = status
        self._due_now[watch] = None
        self._wake()
