"""An engine in memory: nothing of it outlives the process, and the topic has it all."""

from collections.abc import Iterable, Iterator
from itertools import islice
from threading import RLock

from sortedcontainers import SortedDict

from query_service.errors import StoreClosedError


class _Scan:
    """One scan under way, and what the keys that were written since it began held then; None for nothing."""

    def __init__(self, first: bytes, end: bytes) -> None:
        """Begins the scan of a range."""
        self.first = first
        self.end = end
        self.then: dict[bytes, bytes | None] = {}

    def note(self, key: bytes, value: bytes | None) -> None:
        """Notes what a key held, before it is first written."""
        if self.first <= key < self.end:
            self.then.setdefault(key, value)


class MemoryEngine:
    """See Engine.

    A scan reads a slice at a time, so that a write waits for a slice at most. Writes note for each scan under way what
    they replace, so that it goes on to show the moment at which it began.
    """

    def __init__(self, slice_rows: int = 256) -> None:
        """Starts empty; a scan reads `slice_rows` at a time."""
        self._slice_rows = slice_rows
        self._rows = SortedDict()
        self._scans: set[_Scan] = set()
        self._lock = RLock()  # a scan that nobody reads on may be collected in the middle of a write
        self._closed = False

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """See Engine."""
        with self._lock:
            self._check_open()
            return list(map(self._rows.get, keys))

    def scan(self, first: bytes, end: bytes, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """See Engine."""
        under_way = _Scan(first, end)
        rest: tuple[bytes, bytes] | None = (first, end)
        with self._lock:
            self._scans.add(under_way)
        try:
            while rest is not None:
                rows, rest = self._slice(under_way, *rest, reverse)
                yield from rows
        finally:
            with self._lock:
                self._scans.discard(under_way)

    def write(
        self,
        puts: Iterable[tuple[bytes, bytes]],
        deletes: Iterable[bytes] = (),
        *,
        durable: bool = True,  # noqa: ARG002  nothing is
    ) -> None:
        """See Engine."""
        with self._lock:
            self._check_open()
            for key, value in puts:
                self._note(key)
                self._rows[key] = value
            for key in deletes:
                self._note(key)
                self._rows.pop(key, None)

    def close(self) -> None:
        """See Engine."""
        with self._lock:
            self._closed = True
            self._rows.clear()

    def _note(self, key: bytes) -> None:
        for scan in tuple(self._scans):
            scan.note(key, self._rows.get(key))

    def _slice(
        self, scan: _Scan, low: bytes, high: bytes, reverse: bool
    ) -> tuple[list[tuple[bytes, bytes]], tuple[bytes, bytes] | None]:
        with self._lock:
            self._check_open()
            now = list(islice(self._rows.irange(low, high, (True, False), reverse), self._slice_rows))
            rest = None
            if len(now) == self._slice_rows and reverse:
                rest, low = (low, now[-1]), now[-1]
            elif len(now) == self._slice_rows:
                rest, high = (now[-1] + b"\0", high), now[-1] + b"\0"
            keys = {*now, *(key for key in scan.then if low <= key < high)}
            held = [(key, scan.then[key] if key in scan.then else self._rows[key]) for key in keys]
        rows = sorted(((key, value) for key, value in held if value is not None), reverse=reverse)
        return rows, rest

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError("the partition has moved away: ask again")
