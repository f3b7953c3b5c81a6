"""Remembers the latest changes of a partition, and wakes the calls on the event loop that wait for one."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from contextlib import contextmanager
from threading import Lock

from query_service.storage.store_keys import offset_of
from statecast.partitioning import group_of


class Watcher:
    """One waiting call: the keys and groups it waits for, or None for any progress."""

    def __init__(self, keys: Set[bytes] | None, groups: Set[bytes]) -> None:
        self.keys = keys
        self.groups = groups
        self._woken = asyncio.Event()

    def wake(self) -> None:
        self._woken.set()

    async def wait(self, timeout_s: float) -> bool:
        """Waits for the next wake; returns False when none came in time. A wake since the last wait counts."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._woken.wait()
        except TimeoutError:
            return False
        self._woken.clear()
        return True


class Changes:
    """The rows that changed last, by group, and the watchers that wait for more.

    Thus the cost of polling a range depends on its changes alone. Any thread may call the methods, unless they say
    otherwise.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, max_rows: Callable[[], int], applied_offset: int) -> None:
        """Remembers as many rows as `max_rows` says then; knows of no change up to and including `applied_offset`."""
        self._loop = loop
        self._watchers: set[Watcher] = set()
        self._max_rows = max_rows
        self._forgotten_offset = applied_offset
        self._offsets: OrderedDict[bytes, int] = OrderedDict()
        self._groups: dict[bytes, dict[bytes, int]] = {}
        self._lock = Lock()

    def note(self, rows: Mapping[bytes, bytes]) -> None:
        """Notes stored values that have been written, each newer than all that were noted before."""
        with self._lock:
            for offset, key in sorted((offset_of(value), key) for key, value in rows.items()):
                self._offsets.pop(key, None)
                self._offsets[key] = offset
                group = self._groups.setdefault(group_of(key), {})
                group.pop(key, None)
                group[key] = offset
            max_rows = self._max_rows()
            while len(self._offsets) > max_rows:
                key, self._forgotten_offset = self._offsets.popitem(last=False)
                name = group_of(key)
                del self._groups[name][key]
                if not self._groups[name]:
                    del self._groups[name]

    def forget(self, applied_offset: int) -> None:
        """Forgets everything: changes up to and including `applied_offset` have not been noted."""
        with self._lock:
            self._offsets.clear()
            self._groups.clear()
            self._forgotten_offset = applied_offset

    def remembers(self, after: int) -> bool:
        """Returns whether all changes after this offset are remembered."""
        with self._lock:
            return after >= self._forgotten_offset

    def changed_after(self, group: bytes, after: int) -> list[bytes] | None:
        """Returns the rows of the group that changed after this offset, the first change first; None when unknown."""
        with self._lock:
            if after < self._forgotten_offset:
                return None
            changed = []
            for key, offset in reversed(self._groups.get(group, {}).items()):
                if offset <= after:
                    break
                changed.append(key)
        return changed[::-1]

    @contextmanager
    def watch(self, keys: Set[bytes] | None, groups: Set[bytes] = frozenset()) -> Iterator[Watcher]:
        """Wakes the call within the block; who watches before reading misses nothing. On the event loop only."""
        watcher = Watcher(keys, groups)
        self._watchers.add(watcher)
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)

    @property
    def is_watched(self) -> bool:
        return bool(self._watchers)

    def announce(self, keys: Collection[bytes] | None) -> None:
        """Wakes the calls that wait for one of these rows; no rows mean progress alone.

        None wakes all: no change will come here any more, or none for long.
        """
        if self.is_watched:
            self._loop.call_soon_threadsafe(self._wake, None if keys is None else frozenset(keys))

    def _wake(self, keys: Set[bytes] | None) -> None:
        # A batch may have thousands of rows, and there may be thousands of watchers: each row is looked at once.
        groups = frozenset(map(group_of, keys or ())) if any(each.groups for each in self._watchers) else frozenset()
        for each in self._watchers:
            if (
                keys is None
                or each.keys is None
                or not each.keys.isdisjoint(keys)
                or not each.groups.isdisjoint(groups)
            ):
                each.wake()
