"""Follows keys: what they hold now, and then each newer value."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from statecast.query.v1 import query_pb2
from statecast.state.v1 import state_pb2
from statecast_client.batches import Batch, split
from statecast_client.change import Change
from statecast_client.errors import InvalidError, OverloadedError, StatecastError, UnavailableError
from statecast_client.gathering import gathered
from statecast_client.grpc_status import error_of_key
from statecast_client.router import Router

_PAUSE_S = 0.5
_PASSING = (UnavailableError, OverloadedError)


class Watch:
    """One task per shard polls; the reader takes what they find, and they wait for the reader."""

    def __init__(
        self, router: Router, store: str, keys: Sequence[state_pb2.StateKey], wait_s: float, timeout_s: float
    ) -> None:
        """Follows the keys of one store. Raises InvalidError without keys."""
        if not keys:
            raise InvalidError("keys: there are none: name at least one")
        self._router = router
        self._store = store
        self._keys = keys
        self._wait_s = wait_s
        self._timeout_s = timeout_s
        self._after: dict[int, state_pb2.Position] = {}
        self._found: asyncio.Queue[Change | StatecastError] = asyncio.Queue(1)

    async def changes(self) -> AsyncGenerator[Change, None]:
        """Yields changes until the reader stops. Raises what does not pass by itself."""
        shards = await self._router.shards(self._timeout_s)
        batches = split(self._keys, lambda group: shards.candidates(self._store, group))
        changes = gathered(self._found, (self._poll(batch) for batch in batches))
        async with aclosing(changes):
            async for change in changes:
                yield change

    async def _poll(self, batch: Batch) -> None:
        while True:
            try:
                results = await self._ask(batch)
                for result in results:
                    await self._take(result)
            except _PASSING:
                await asyncio.sleep(_PAUSE_S)
            except StatecastError as error:
                await self._found.put(error)
                return

    async def _ask(self, batch: Batch) -> list[query_pb2.KeyResult]:
        request = batch.request(self._store, self._after, None)
        request.max_wait.FromNanoseconds(int(self._wait_s * 1e9))

        return batch.results(
            await self._router.answer(
                self._store,
                batch.group,
                lambda stub, left: stub.BatchGetStates(request, timeout=left),
                self._timeout_s,
                self._wait_s,
            )
        )

    async def _take(self, result: query_pb2.KeyResult) -> None:
        if result.HasField("error"):
            raise error_of_key(result.error)
        change = _change(self._keys[result.index], result)
        known = self._after.get(result.index)
        if known is not None and known.epoch == change.position.epoch and change.position.offset <= known.offset:
            return
        self._after[result.index] = change.position
        await self._found.put(change)


def _change(key: state_pb2.StateKey, result: query_pb2.KeyResult) -> Change:
    if result.HasField("state"):
        return Change(key, result.state.position, state=result.state)
    return Change(key, result.absence.position, absence=result.absence)
