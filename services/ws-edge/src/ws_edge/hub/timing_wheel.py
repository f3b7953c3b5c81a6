"""What is due when: items in slots of equal length, at a cost of the due items alone."""

from math import ceil
from typing import Generic, TypeVar

T = TypeVar("T")


class TimingWheel(Generic[T]):
    """Items by the slot in which they are due. Nothing is ever removed early: whoever takes an item checks it."""

    __slots__ = ("_next", "_slots", "quantum")

    def __init__(self, quantum: float, now: float) -> None:
        """`quantum` is the length of a slot in seconds; times are those of any monotonic clock."""
        self.quantum = quantum
        self._next = int(now / quantum)
        self._slots: dict[int, list[T]] = {}

    def add(self, item: T, at: float) -> int:
        """Puts the item into the first slot that starts at `at` or later and has not been taken; returns the slot."""
        # A time that is a whole number of slots may be a hair above it as a float.
        slot = max(ceil(at / self.quantum - 1e-6), self._next)
        self._slots.setdefault(slot, []).append(item)
        return slot

    def take(self, now: float) -> list[tuple[int, T]]:
        """Takes out all items whose slot has started, with their slots, in the order in which they are due."""
        last = int(now / self.quantum + 1e-6)
        first, self._next = self._next, last + 1
        # After a long pause there may be far more empty slots than filled ones.
        slots = range(first, last + 1) if last - first < len(self._slots) else sorted(self._slots)
        return [(slot, item) for slot in slots if slot <= last for item in self._slots.pop(slot, ())]

    def next_at(self, now: float) -> float:
        """When the slot after the one of `now` starts."""
        return (int(now / self.quantum + 1e-6) + 1) * self.quantum
