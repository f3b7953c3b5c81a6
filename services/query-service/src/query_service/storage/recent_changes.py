"""Remembers which rows of a partition changed lately, so that a range that is polled costs what changed in it."""

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock

from query_service.storage.store_keys import offset_of


class RecentChanges:
    """The newest change of each of the rows that changed last, by group. Any thread may call."""

    def __init__(self, most: int, through: int) -> None:
        """Remembers `most` rows; knows of no change through this offset."""
        self._most = most
        self._forgotten_through = through
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
            while len(self._offsets) > self._most:
                self._forget_oldest()

    def forget(self, through: int) -> None:
        """Forgets everything: changes through this offset have not been noted."""
        with self._lock:
            self._offsets.clear()
            self._groups.clear()
            self._forgotten_through = through

    def since(self, group: bytes, offset: int) -> list[bytes] | None:
        """Returns the rows of the group that changed after this offset, the first change first; None when unknown."""
        with self._lock:
            if offset < self._forgotten_through:
                return None
            changed = []
            for key, changed_at in reversed(self._groups.get(group, {}).items()):
                if changed_at <= offset:
                    break
                changed.append(key)
        return changed[::-1]

    def _forget_oldest(self) -> None:
        key, self._forgotten_through = self._offsets.popitem(last=False)
        name = group_of(key)
        group = self._groups[name]
        del group[key]
        if not group:
            del self._groups[name]


def group_of(key: bytes) -> bytes:
    """Returns the group of a row's key."""
    return key.partition(b"\0")[0]
