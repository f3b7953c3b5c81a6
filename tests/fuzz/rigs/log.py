"""The services' log lines during fuzzing, in their usual form."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog

from statecast_service.logs import configure_logs

UNEXPECTED_LEVELS = frozenset({"error", "critical"})


class Log:
    """Takes the lines of a service's log."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def write(self, text: str, /) -> None:
        self._lines.append(text)

    def flush(self) -> None:
        """Nothing waits."""

    def isatty(self) -> bool:
        return False

    def assert_clean(self) -> None:
        """Raises AssertionError when there has been an error or a traceback since the last call."""
        lines: list[dict[str, Any]] = [json.loads(line) for line in "".join(self._lines).splitlines() if line]
        self._lines.clear()
        unexpected = [line for line in lines if line["level"] in UNEXPECTED_LEVELS or "exception" in line]

        assert not unexpected, "\n".join(line.get("exception") or str(line) for line in unexpected)


@contextmanager
def logged() -> Iterator[Log]:
    """Everything that is logged in the block, by the services and by the libraries that they use."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    log = Log()
    configure_logs(stream=log)
    try:
        yield log
    finally:
        structlog.reset_defaults()
        root.handlers[:] = handlers
        root.setLevel(level)
