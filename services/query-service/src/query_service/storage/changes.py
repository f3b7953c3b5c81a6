"""Lets calls on the event loop wait for what other threads apply."""

import asyncio
from collections.abc import Collection, Iterator, Set
from contextlib import contextmanager

from query_service.storage.recent_changes import group_of


class Watcher:
    """One waiting call: the keys and groups it waits for, or None for any progress."""

    def __init__(self, keys: Set[bytes] | None, groups: Set[bytes] = frozenset()) -> None:
        """Waits for these keys, and for any key of these groups."""
        self._keys = keys
        self._groups = groups
        self._woken = asyncio.Event()

    def wake(self, keys: Collection[bytes]) -> None:
        """Wakes the call when one of the keys is its own, or of one of its groups."""
        if (
            self._keys is None
            or not self._keys.isdisjoint(keys)
            or (self._groups and any(group_of(key) in self._groups for key in keys))
        ):
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
    """The waiting calls of one partition. Nothing is lost when a call watches first and looks afterwards."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wakes calls on this loop."""
        self._loop = loop
        self._watchers: set[Watcher] = set()

    @contextmanager
    def watched_by(self, watcher: Watcher) -> Iterator[Watcher]:
        """Wakes the watcher within the block. On the event loop only."""
        self._watchers.add(watcher)
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)

    def announce(self, keys: Collection[bytes]) -> None:
        """Tells the waiting calls that these rows have changed; none for mere progress. From any thread."""
        if self._watchers:
            self._loop.call_soon_threadsafe(self._wake, keys)

    def _wake(self, keys: Collection[bytes]) -> None:
        for watcher in self._watchers:
            watcher.wake(keys)
