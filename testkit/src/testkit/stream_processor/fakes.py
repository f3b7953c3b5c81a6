"""Stand-ins for unit tests."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


class FakeQuery:
    """A streaming query that has reported `progress` and ends with `error`; its names are Spark's."""

    def __init__(self, progress: list[Mapping[str, Any]], error: Exception | None = None) -> None:
        self.recentProgress = progress
        self.isActive = error is None
        self.runId = "run"
        self.status = {"message": "Processing new data"}
        self._error = error

    @property
    def lastProgress(self) -> Mapping[str, Any] | None:  # noqa: N802  Spark's name
        """The newest report."""
        return self.recentProgress[-1] if self.recentProgress else None

    def stop(self) -> None:
        """Ends the query without an error."""
        self.isActive = False

    def exception(self) -> Exception | None:
        """Returns the error with which the query has ended."""
        return self._error


@dataclass
class FakeTail:
    """Returns `seen` at each look, or raises it."""

    seen: tuple[dict[str, int], dict[str, list[float]]] | Exception

    def look(self, names: Iterable[str]) -> tuple[dict[str, int], dict[str, list[float]]]:
        """Returns counts and lags, or raises."""
        if isinstance(self.seen, Exception):
            raise self.seen
        return self.seen
