"""The last line of a terminal, rewritten in place: log lines go above it."""

import os
import shutil
import sys
from collections.abc import Mapping
from threading import Lock
from typing import TextIO

CLEAR = "\r\x1b[K"


class StatusLine:
    """A stream for logs that keeps one line below them. Any thread may call it; only for a terminal."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._lock = Lock()
        self._line = ""

    def show(self, text: str) -> None:
        """Replaces the line, cut to the terminal's width; an empty text takes it away."""
        with self._lock:
            self._line = text[: max(shutil.get_terminal_size().columns - 1, 1)]
            self._terminal.write(CLEAR + self._line)
            self._terminal.flush()

    def write(self, text: str) -> int:
        with self._lock:
            return self._terminal.write(f"{CLEAR}{text}{self._line}")

    def flush(self) -> None:
        self._terminal.flush()

    def isatty(self) -> bool:
        """Logs are written for people."""
        return True


def open_status_line(environment: Mapping[str, str] = os.environ) -> StatusLine | None:
    """Returns the line below the logs; None where standard error is no terminal, or NO_COLOR asks for plain text."""
    return StatusLine(sys.stderr) if sys.stderr.isatty() and not environment.get("NO_COLOR") else None
