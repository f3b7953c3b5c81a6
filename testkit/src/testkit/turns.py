"""Counts the turns of the event loop that other tasks get."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """`count` is how many there were."""

    count = 0

    async def run(self) -> None:
        while True:
            self.count += 1
            await asyncio.sleep(0)


@asynccontextmanager
async def counted_turns() -> AsyncIterator[Turns]:
    """Counts the turns that another task gets during the block."""
    turns = Turns()
    other = asyncio.create_task(turns.run())
    try:
        yield turns
    finally:
        other.cancel()
