"""The event loop of a test module, in which its servers stay from one input to the next."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

import uvloop

from testkit.waiting import scaled

HANG_S = 20.0

T = TypeVar("T")


class Loop:
    """Runs coroutines one after the other; their background tasks keep running during the next one."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Returns the result. Raises TimeoutError when it hangs."""
        return self._runner.run(_in_time(coroutine))

    @contextmanager
    def entered(self, manager: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """Enters an asynchronous context manager for a block that is not."""
        entered = self.run(manager.__aenter__())
        try:
            yield entered
        finally:
            self.run(manager.__aexit__(None, None, None))


@contextmanager
def running_loop() -> Iterator[Loop]:
    """Yields a loop of the kind that the services run in."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        yield Loop(runner)


async def _in_time(coroutine: Coroutine[Any, Any, T]) -> T:
    async with asyncio.timeout(scaled(HANG_S)):
        return await coroutine
