"""Takes what several tasks find, as it comes."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterable
from typing import TypeVar

from statecast_client.errors import StatecastError

T = TypeVar("T")


async def gathered(
    found: asyncio.Queue[T | StatecastError], finders: Iterable[Coroutine[None, None, None]]
) -> AsyncGenerator[T, None]:
    """Yields what the finders put into the queue until the reader stops; raises an error that they put there."""
    tasks = [asyncio.create_task(finder) for finder in finders]
    try:
        while True:
            told = await found.get()
            if isinstance(told, StatecastError):
                raise told
            yield told
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
