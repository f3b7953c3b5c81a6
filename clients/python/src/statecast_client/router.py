"""Puts a question to the owner of its group, and once more elsewhere when that one does not answer."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import grpc

from statecast.query.v1 import query_service_pb2 as query
from statecast_client.channels import Channels
from statecast_client.errors import StatecastError
from statecast_client.grpc_status import error_of
from statecast_client.shard_map import ShardMap

if TYPE_CHECKING:
    from statecast.query.v1.query_service_pb2_grpc import QueryServiceAsyncStub

_RETRIED = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)

Answer = TypeVar("Answer")
Ask = Callable[["QueryServiceAsyncStub", float], Awaitable[Answer]]


class Router:
    """Reads the shard map at the first question, and again when it is old or a call has failed.

    A wrong map costs a forward, never a wrong answer: any instance answers any key.
    """

    def __init__(
        self, channels: Channels, addresses: Sequence[str], refresh_s: float, monotonic: Callable[[], float]
    ) -> None:
        """Begins at `addresses`; the map is read again when it is older than `refresh_s`."""
        self._channels = channels
        self._addresses = tuple(addresses)
        self._refresh_s = refresh_s
        self._monotonic = monotonic
        self._shards = ShardMap()
        self._read_at: float | None = None
        self._reading: asyncio.Task[None] | None = None

    async def shards(self, timeout_s: float) -> ShardMap:
        """Returns the shard map. Waits for the first one only; empty when no instance tells it."""
        if self._read_at is None:
            await asyncio.shield(self._read_again(timeout_s))
        elif self._monotonic() - self._read_at > self._refresh_s:
            self._read_again(timeout_s)
        return self._shards

    async def answer(
        self, store: str, group: str, ask: Ask[Answer], timeout_s: float, patience_s: float = 0.0
    ) -> Answer:
        """Returns the answer of the owner of a group, or of any instance for an empty group.

        An instance that is unavailable, or silent for half of the time, is left for another, once. `patience_s` is how
        long the question itself may wait, on top of `timeout_s`. Raises a StatecastError.
        """
        deadline = self._monotonic() + timeout_s
        shards = await self.shards(timeout_s / 2)
        candidates = (*shards.candidates(store, group), *self._addresses, *shards.instances())
        first = self._channels.choose(candidates, None)
        try:
            return await ask(self._channels.stub(first), patience_s + (deadline - self._monotonic()) / 2)
        except grpc.aio.AioRpcError as error:
            if error.code() not in _RETRIED:
                raise error_of(error, first) from error
        self._channels.failed(first)
        self._read_again(timeout_s)
        return await self.answer_of(self._channels.choose(candidates, first), ask, deadline, patience_s)

    async def answer_of(self, address: str, ask: Ask[Answer], deadline: float, patience_s: float = 0.0) -> Answer:
        """Returns the answer of one instance, by a time of the clock. Raises a StatecastError."""
        try:
            return await ask(self._channels.stub(address), patience_s + deadline - self._monotonic())
        except grpc.aio.AioRpcError as error:
            raise error_of(error, address) from error

    async def list_shards(self, store: str, timeout_s: float) -> query.ListShardsResponse:
        """Returns the listing of one store, or of all for an empty name. Raises a StatecastError."""
        request = query.ListShardsRequest(store=store)
        candidates = (*self._shards.instances(), *self._addresses)
        deadline = self._monotonic() + timeout_s
        first = self._channels.choose(candidates, None)
        try:
            return await self._channels.stub(first).ListShards(request, timeout=timeout_s / 2)
        except grpc.aio.AioRpcError as error:
            if error.code() not in _RETRIED:
                raise error_of(error, first) from error
        self._channels.failed(first)
        again = self._channels.choose(candidates, first)
        return await self.answer_of(again, lambda stub, left: stub.ListShards(request, timeout=left), deadline)

    async def close(self) -> None:
        """Stops reading the map, and closes all connections."""
        if self._reading is not None:
            self._reading.cancel()
        await self._channels.close()

    def _read_again(self, timeout_s: float) -> "asyncio.Task[None]":
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read(timeout_s))
        return self._reading

    async def _read(self, timeout_s: float) -> None:
        try:
            self._shards = ShardMap.of(await self.list_shards("", timeout_s))
        except StatecastError:
            return  # the map of before goes on; without one, any instance is asked
        self._read_at = self._monotonic()
