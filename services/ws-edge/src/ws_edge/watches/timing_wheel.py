"""Items by the time at which they are due."""

from math import ceil
from typing import Generic, TypeVar

T = TypeVar("T")


class TimingWheel(Generic[T]):
    """Items by the slot of time in which they are due, each once. `take` costs time only for due items."""

    def __init__(self, tick: float, now: float) -> None:
        """`tick` is the length of a slot in seconds; times are those of any monotonic clock."""
        self.tick = tick
        self._next = int(now / tick)
        self._slots: dict[int, dict[T, None]] = {}
        self._slot_of: dict[T, int] = {}

    def add(self, item: T, at: float) -> None:
        """Moves the item into the first slot that starts at `at` or later and was not taken yet."""
        self.discard(item)
        # A time that is a whole number of slots may be a hair above it as a float.
        slot = self._slot_of[item] = max(ceil(at / self.tick - 1e-6), self._next)
        self._slots.setdefault(slot, {})[item] = None

    def discard(self, item: T) -> bool:
        """Removes the item at once, before it is due; returns whether it was in."""
        slot = self._slot_of.pop(item, None)
        if slot is not None:
            del self._slots[slot][item]
        return slot is not None

    def due_at(self, item: T) -> float:
        """Returns when the slot of the item starts."""
        return self._slot_of[item] * self.tick

    def take(self, now: float) -> list[tuple[int, T]]:
        """Removes and returns all items of started slots, with their slots, in the order in which they are due."""
        last = int(now / self.tick + 1e-6)
        first, self._next = self._next, last + 1
        # After a long pause there may be far more empty slots than filled ones.
        slots = range(first, last + 1) if last - first < len(self._slots) else sorted(self._slots)
        due = [(slot, item) for slot in slots if slot <= last for item in self._slots.pop(slot, ())]
        for _, item in due:
            del self._slot_of[item]
        return due

    def next_at(self, now: float) -> float:
        """Returns when the slot after the one of `now` starts."""
        return (int(now / self.tick + 1e-6) + 1) * self.tick
