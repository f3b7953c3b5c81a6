"""The engine in which a store keeps its keys and values: the interface, and an engine in memory."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import Protocol

from sortedcontainers import SortedDict
from typing_extensions import override

from query_service.errors import StoreClosedError, StoreFailedError

Rows = Iterable[tuple[bytes, bytes]]

Skip = Callable[[bytes], bytes | None]
"""Where a scan goes on behind a key: forward with the first key from there on, in reverse with the last one before it.

None goes on with the next key.
"""


class Engine(Protocol):
    """Keys and values in the order of the keys' bytes, with atomic writes.

    Any thread may read; one thread at a time may write. A `durable` write survives `kill -9` of the process as soon as
    `write` returns, if the engine keeps anything at all. Other writes survive once a durable write follows; after a
    kill before that, the engine is as it was after some earlier write. Every method raises StoreClosedError once the
    engine is closed, StoreUnusableError when its files are corrupt, and StoreFailedError when the disk refuses.
    """

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """Returns the values in the order of the keys."""

    def get(self, key: bytes) -> bytes | None:
        """Returns a value on the event loop. Raises ColdError where it would have to wait for a slow disk."""

    def is_at_hand(self, keys: list[bytes]) -> bool:
        """Returns whether `get_many` of these keys waits for no disk."""

    def scan(
        self, first: bytes, end: bytes, *, reverse: bool = False, skip: Skip | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yields keys and values with first <= key < end, as of the moment of the first one.

        Rows that `skip` passes over are not read.
        """

    def write(self, puts: Rows, deletes: Iterable[bytes] = (), *, durable: bool = True) -> None:
        """Stores all of `puts`, the last of a key, and then removes all of `deletes`, or does nothing and raises."""

    def checkpoint(self, path: Path) -> None:
        """Makes a directory with the files of a copy of this engine as it is now. The two share no writes.

        Raises StoreFailedError, also where there are no files.
        """

    def close(self) -> None:
        """Releases everything; waits for reads in other threads to end. Closing again does nothing."""


_SKIPPING_SLICE_ROWS = 16


@dataclass(eq=False)
class _Scan:
    """A scan under way, and the previous values of the keys that were written since it began; None for no value."""

    first: bytes
    end: bytes
    previous: dict[bytes, bytes | None] = field(default_factory=dict)


class MemoryEngine(Engine):
    """An engine in memory. Its rows are lost when the process ends, and are read from the topic again.

    A scan reads a slice at a time, so that a write waits for one slice at most. Writes save the rows that they replace
    for each scan under way, so that the scan still shows the moment at which it began. A scan that skips reads smaller
    slices, since it may leave each after its first row.
    """

    def __init__(self, slice_rows: int = 256) -> None:
        self._slice_rows = slice_rows
        self._rows = SortedDict()
        self._scans: set[_Scan] = set()
        self._lock = RLock()  # an abandoned scan may be garbage-collected in the middle of a write
        self._closed = False

    @override
    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        with self._lock:
            self._check_open()
            return list(map(self._rows.get, keys))

    @override
    def get(self, key: bytes) -> bytes | None:
        return self.get_many([key])[0]

    @override
    def is_at_hand(self, keys: list[bytes]) -> bool:
        return True

    @override
    def scan(
        self, first: bytes, end: bytes, *, reverse: bool = False, skip: Skip | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        scan = _Scan(first, end)
        size = self._slice_rows if skip is None else min(self._slice_rows, _SKIPPING_SLICE_ROWS)
        rest: tuple[bytes, bytes] | None = (first, end)
        with self._lock:
            self._scans.add(scan)
        try:
            while rest is not None:
                rows, rest = self._slice(scan, *rest, reverse, size)
                for key, value in rows:
                    yield key, value
                    if skip is not None and (target := skip(key)) is not None:
                        low, high = (first, target) if reverse else (target, end)
                        rest = (low, high) if low < high else None
                        break
        finally:
            with self._lock:
                self._scans.discard(scan)

    @override
    def write(self, puts: Rows, deletes: Iterable[bytes] = (), *, durable: bool = True) -> None:
        with self._lock:
            self._check_open()
            for key, value in puts:
                self._before_write(key)
                self._rows[key] = value
            for key in deletes:
                self._before_write(key)
                self._rows.pop(key, None)

    @override
    def checkpoint(self, path: Path) -> None:
        raise StoreFailedError("a store in memory has no files")

    @override
    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._rows.clear()

    def _before_write(self, key: bytes) -> None:
        for scan in tuple(self._scans):
            if scan.first <= key < scan.end:
                scan.previous.setdefault(key, self._rows.get(key))

    def _slice(
        self, scan: _Scan, low: bytes, high: bytes, reverse: bool, size: int
    ) -> tuple[list[tuple[bytes, bytes]], tuple[bytes, bytes] | None]:
        with self._lock:
            self._check_open()
            keys_now = list(islice(self._rows.irange(low, high, (True, False), reverse), size))
            rest = None
            if len(keys_now) == size and reverse:
                rest, low = (low, keys_now[-1]), keys_now[-1]
            elif len(keys_now) == size:
                rest, high = (keys_now[-1] + b"\0", high), keys_now[-1] + b"\0"
            keys = {*keys_now, *(key for key in scan.previous if low <= key < high)}
            values = [(key, scan.previous[key] if key in scan.previous else self._rows[key]) for key in keys]
        rows = sorted(((key, value) for key, value in values if value is not None), reverse=reverse)
        return rows, rest

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError("the partition has moved away: ask again")
