"""Waits by polling, with time-outs that one variable stretches on a slow machine."""

import os
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

TIMEOUT_SCALE = float(os.environ.get("TEST_PATIENCE", "1"))
POLL_INTERVAL_S = 0.05


def scaled(seconds: float) -> float:
    """A time-out for this machine, in seconds."""
    return seconds * TIMEOUT_SCALE


def eventually(attempt: Callable[[], T], timeout_s: float = 20.0) -> T:
    """Returns what `attempt` returns as soon as it raises no AssertionError; re-raises its last one at the time-out."""
    deadline = time.monotonic() + scaled(timeout_s)
    while True:
        try:
            return attempt()
        except AssertionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL_INTERVAL_S)
