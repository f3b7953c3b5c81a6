"""Stand-ins for unit tests."""

from collections.abc import Iterable, Mapping
from typing import Any


class FakeTopics:
    """Topics that exist as the dictionary says: name → end offset. Change it to make time pass."""

    def __init__(self, ends: dict[str, int]) -> None:
        self.ends = ends

    def missing(self, names: Iterable[str]) -> str | None:
        """See Topics."""
        absent = sorted(set(names) - self.ends.keys())
        return f"no topic {', '.join(absent)}" if absent else None

    def end(self, name: str) -> int:
        """See Topics."""
        return self.ends[name]


class FakeQuery:
    """A streaming query that has told `progress` and ends with `error`."""

    def __init__(self, progress: list[Mapping[str, Any]], error: Exception | None = None) -> None:
        self.recentProgress = progress
        self.isActive = error is None
        self.status = {"message": "Processing new data"}
        self._error = error

    @property
    def lastProgress(self) -> Mapping[str, Any] | None:  # noqa: N802  Spark's name
        """See StreamingQuery."""
        return self.recentProgress[-1] if self.recentProgress else None

    def exception(self) -> Exception | None:
        """See StreamingQuery."""
        return self._error


class FakeTasks:
    """As many running tasks as `count` says, or the error that asking for them raises."""

    def __init__(self, count: int | Exception) -> None:
        self.count = count

    def running(self, query: object) -> int:  # noqa: ARG002  the same for all queries
        """See Tasks."""
        if isinstance(self.count, Exception):
            raise self.count
        return self.count


class FakeTail:
    """Tells `seen` at each look, or raises it."""

    def __init__(self, seen: tuple[dict[str, int], dict[str, list[float]]] | Exception) -> None:
        self.seen = seen

    def look(self) -> tuple[dict[str, int], dict[str, list[float]]]:
        """See Tail."""
        if isinstance(self.seen, Exception):
            raise self.seen
        return self.seen

    def close(self) -> None:
        """See Tail."""
