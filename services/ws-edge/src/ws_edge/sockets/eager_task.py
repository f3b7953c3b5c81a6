"""Runs a coroutine at once, and makes a task only of what is left when it has to wait.

Python 3.12 has this as eager tasks. Most frames are taken by their socket at once, and then a task for each would cost
more than the frame: without one the edge sends twice as many frames with the same processor time.
"""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any


def start(coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
    """Runs the coroutine until it ends (then there is no task) or first has to wait; raises what it raises by then.

    Until then it runs inside its caller: asyncio.current_task() is the caller's, so asyncio.timeout() must not be used.
    """
    try:
        obstacle = coroutine.send(None)
    except StopIteration:
        return None
    return asyncio.create_task(_finish(coroutine, obstacle))


async def _finish(coroutine: Coroutine[Any, Any, None], obstacle: Any) -> None:
    await _Rest(coroutine, obstacle)


class _Rest:
    """What is left of a coroutine that waits for `obstacle`."""

    def __init__(self, coroutine: Coroutine[Any, Any, None], obstacle: Any) -> None:
        self._coroutine = coroutine
        self._obstacle = obstacle

    def __await__(self) -> Generator[Any, Any, None]:
        try:
            yield self._obstacle
        except asyncio.CancelledError:
            self._coroutine.close()
            raise
        yield from self._coroutine.__await__()
