"""Watches keys: yields what they hold now, and then each newer value."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterable, Sequence
from contextlib import aclosing
from typing import TypeVar

from statecast.position import covers
from statecast.query.v1 import query_pb2
from statecast.state.v1 import state_pb2
from statecast_client.errors import InvalidError, OverloadedError, StatecastError, UnavailableError, error_of_key
from statecast_client.keys import Batch, Change
from statecast_client.router import RefreshingRouter

_PAUSE_S = 0.5
_TRANSIENT = (UnavailableError, OverloadedError)

T = TypeVar("T")


async def merged(
    queue: asyncio.Queue[T | StatecastError], producers: Iterable[Coroutine[None, None, None]]
) -> AsyncGenerator[T, None]:
    """Yields what the producers put into the queue until the reader stops; raises an error that they put there."""
    tasks = [asyncio.create_task(producer) for producer in producers]
    try:
        while True:
            item = await queue.get()
            if isinstance(item, StatecastError):
                raise item
            yield item
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Watch:
    """One task per shard polls; a full queue makes the tasks wait for the reader."""

    def __init__(self, router: RefreshingRouter, store: str, keys: Sequence[state_pb2.StateKey], wait_s: float) -> None:
        """Watches keys of one store. Raises InvalidError without keys."""
        if not keys:
            raise InvalidError("keys: there are none: name at least one")
        self._router = router
        self._store = store
        self._keys = keys
        self._wait_s = wait_s
        self._positions: dict[int, state_pb2.Position] = {}
        self._queue: asyncio.Queue[Change | StatecastError] = asyncio.Queue(1)

    async def changes(self) -> AsyncGenerator[Change, None]:
        """Yields changes until the reader stops. Raises errors that another attempt would meet again."""
        batches = await self._router.batches(self._store, self._keys)
        changes = merged(self._queue, (self._poll_forever(batch) for batch in batches))
        async with aclosing(changes):
            async for change in changes:
                yield change

    async def _poll_forever(self, batch: Batch) -> None:
        while True:
            try:
                request = batch.request(self._store, self._positions, None)
                request.max_wait.FromNanoseconds(int(self._wait_s * 1e9))
                for result in await self._router.get_batch(batch, request, self._wait_s):
                    await self._take(result)
            except _TRANSIENT:
                await asyncio.sleep(_PAUSE_S)
            except StatecastError as error:
                await self._queue.put(error)
                return

    async def _take(self, result: query_pb2.KeyResult) -> None:
        if result.HasField("error"):
            raise error_of_key(result.error)
        change = Change.of(self._keys[result.index], result)
        if covers(self._positions.get(result.index), change.position):
            return
        self._positions[result.index] = change.position
        await self._queue.put(change)
