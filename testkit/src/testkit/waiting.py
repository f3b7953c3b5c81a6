"""Waits by polling, with time-outs that the variable TEST_TIMEOUT_SCALE stretches on a slow machine."""

import asyncio
import inspect
import os
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

TIMEOUT_SCALE = float(os.environ.get("TEST_TIMEOUT_SCALE", "1"))
POLL_INTERVAL_S = 0.05

Explanation = str | Callable[[], str]
"""The condition that a test waits for, or a function that describes the progress, called when the time is over."""


def scaled(seconds: float) -> float:
    """Returns a time-out for this machine, in seconds."""
    return seconds * TIMEOUT_SCALE


def eventually(attempt: Callable[[], T], timeout_s: float = 20.0) -> T:
    """Returns the result of `attempt` as soon as it raises no AssertionError; re-raises the last one at the time-out.

    The time-out is scaled. Other errors of `attempt` end the wait at once.
    """
    deadline = time.monotonic() + scaled(timeout_s)
    while True:
        try:
            return attempt()
        except AssertionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL_INTERVAL_S)


def wait_until(
    condition: Callable[[], object],
    explanation: Explanation,
    timeout_s: float = 60.0,
    interval_s: float = POLL_INTERVAL_S,
) -> None:
    """Returns once the condition is true. Raises AssertionError with the explanation at the scaled time-out."""
    deadline = time.monotonic() + scaled(timeout_s)
    while not condition():
        if time.monotonic() > deadline:
            raise _timed_out(explanation, timeout_s)
        time.sleep(interval_s)


async def wait_until_async(
    condition: Callable[[], object | Awaitable[object]],
    explanation: Explanation,
    timeout_s: float = 60.0,
    interval_s: float = POLL_INTERVAL_S,
) -> None:
    """Waits like `wait_until` without blocking the event loop; the condition may be a coroutine function."""
    deadline = time.monotonic() + scaled(timeout_s)
    while True:
        met = condition()
        if await met if inspect.isawaitable(met) else met:
            return
        if time.monotonic() > deadline:
            raise _timed_out(explanation, timeout_s)
        await asyncio.sleep(interval_s)


def _timed_out(explanation: Explanation, timeout_s: float) -> AssertionError:
    text = explanation if isinstance(explanation, str) else explanation()
    return AssertionError(f"not within {scaled(timeout_s):g} s: {text}")
