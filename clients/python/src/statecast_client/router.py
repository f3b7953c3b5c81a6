"""Calls the instance that owns a group, and another one when that fails: the routing of every client in Python."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import grpc
import grpc.aio

from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub
from statecast.state.v1 import state_pb2
from statecast_client.errors import StatecastError, error_of_status
from statecast_client.keys import Batch, split
from statecast_client.shard_map import FailedAddresses, GroupHashes, ShardMap, hash_group

if TYPE_CHECKING:
    from statecast.query.v1.query_service_pb2_grpc import QueryServiceAsyncStub

RETRIED: frozenset[grpc.StatusCode] = frozenset(
    grpc.StatusCode[name] for name in ("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "UNKNOWN", "INTERNAL")
)
"""The statuses that say something about the instance, and not about the request: another instance may answer it."""

_OPTIONS = (
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 5_000),
)

T = TypeVar("T")
Call = Callable[[grpc.aio.Channel, float], Awaitable[T]]
"""Makes a call over a channel within so many seconds."""


def stub(channel: grpc.aio.Channel) -> "QueryServiceAsyncStub":
    """Returns the methods of the query service over a channel."""
    return QueryServiceStub(channel)


def error_of(error: grpc.aio.AioRpcError, address: str) -> StatecastError:
    """Returns the error of this client for a call that failed at an address."""
    status, text = error.code(), error.details() or error.code().name
    return error_of_status(status.value[0], text, dict(error.trailing_metadata() or ()), address)


class Router:
    """The shard map, one connection per address, and the addresses that failed lately.

    Any instance answers any key, so a wrong map costs a forward, never a wrong answer.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        credentials: grpc.ChannelCredentials | None = None,
        backoff_s: float = 1.0,
        monotonic: Callable[[], float] = time.monotonic,
        error_of: Callable[[grpc.aio.AioRpcError, str], Exception] = error_of,
        on_failure: Callable[[grpc.aio.AioRpcError, str, bool], object] = lambda *_: None,
    ) -> None:
        """Begins at `addresses`, without TLS unless there are `credentials`.

        An address that failed is chosen last for `backoff_s`. `error_of` makes the error that is raised of a failed
        call and its address. `on_failure` hears of every call that is tried elsewhere: its error, its address, and
        whether this is the first failure since the address last answered.
        """
        self.shards = ShardMap()
        self._addresses = tuple(addresses)
        self._credentials = credentials
        self._failed = FailedAddresses(backoff_s, monotonic)
        self._error_of = error_of
        self._on_failure = on_failure
        self._channels: dict[str, grpc.aio.Channel] = {}

    def address(self, store: str, group: GroupHashes) -> str:
        """Returns the address to ask for a group now."""
        replicas = self.shards.replicas(store, group)
        if replicas and replicas[0] not in self._failed:
            return replicas[0]
        return self._failed.choose((*replicas, *self._addresses))

    async def call(self, store: str, group: GroupHashes | None, call: Call[T], timeouts: Iterable[float]) -> T:
        """Returns the answer of the best instance for a group, or of any for None; asks another for each next timeout.

        Raises the error of the last call, or of the first whose status says that the request itself is wrong.
        """
        return await self._first_answer(
            lambda: (*self.shards.replicas(store, group), *self._addresses, *self.shards.addresses), call, timeouts
        )

    async def call_at(self, address: str, call: Call[T], timeout_s: float) -> T:
        """Returns the answer of one instance. Raises the error of the call."""
        return await self._first_answer(lambda: (address,), call, (timeout_s,))

    async def list_shards(self, timeouts: Iterable[float], store: str = "") -> query.ListShardsResponse:
        """Returns the listing of one store, or of all for an empty name: calls are routed by it from then on."""
        request = query.ListShardsRequest(store=store)
        listing = await self._first_answer(
            lambda: (*self.shards.addresses, *self._addresses),
            lambda channel, timeout_s: stub(channel).ListShards(request, timeout=timeout_s),
            timeouts,
        )
        if not store:
            self.shards = ShardMap.of(listing)
        return listing

    async def close_unused(self, grace_s: float) -> None:
        """Closes connections to instances that the map no longer names; their calls may end within `grace_s`."""
        for address in self._channels.keys() - {*self._addresses, *self.shards.addresses}:
            self._failed.discard(address)
            await self._channels.pop(address).close(grace_s)

    async def close(self) -> None:
        """Closes all connections."""
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            await channel.close()

    async def _first_answer(
        self, candidates: Callable[[], Sequence[str]], call: Call[T], timeouts: Iterable[float]
    ) -> T:
        address = ""
        failure: Exception | None = None
        for timeout_s in timeouts:
            address = self._failed.choose(candidates(), address)
            try:
                answer = await call(self._channel(address), timeout_s)
            except grpc.aio.AioRpcError as error:
                failure = self._error_of(error, address)
                if error.code() not in RETRIED:
                    raise failure from error
                failure.__cause__ = error
                self._on_failure(error, address, self._failed.add(address))
            else:
                self._failed.discard(address)
                return answer
        assert failure is not None  # noqa: S101  there is at least one timeout
        raise failure

    def _channel(self, address: str) -> grpc.aio.Channel:
        if address not in self._channels:
            self._channels[address] = (
                grpc.aio.insecure_channel(address, options=_OPTIONS)
                if self._credentials is None
                else grpc.aio.secure_channel(address, self._credentials, options=_OPTIONS)
            )
        return self._channels[address]


class RefreshingRouter(Router):
    """A Router that reads the shard map at the first call, and again when it is old or a call has failed."""

    def __init__(
        self, addresses: Sequence[str], credentials: grpc.ChannelCredentials | None, timeout_s: float, refresh_s: float
    ) -> None:
        """A call takes at most `timeout_s`; the map is read again when it is older than `refresh_s`."""
        super().__init__(addresses, credentials=credentials, on_failure=lambda *_: self._read_again())
        self._timeout_s = timeout_s
        self._refresh_s = refresh_s
        self._read_at: float | None = None
        self._reading: asyncio.Task[None] | None = None

    async def fresh_shards(self) -> ShardMap:
        """Returns the shard map. Waits for the first one only; empty when no instance reports it."""
        if self._read_at is None:
            await asyncio.shield(self._read_again())
        elif time.monotonic() - self._read_at > self._refresh_s:
            self._read_again()
        return self.shards

    async def answer(self, store: str, group: str, call: Call[T], wait_s: float = 0.0) -> T:
        """Returns the answer of the owner of a group, or of any instance for an empty group.

        An instance that fails, or is silent for half of the time, is left for another, once. `wait_s` is how long the
        service may hold the call on top of the timeout. Raises a StatecastError.
        """
        deadline = time.monotonic() + self._timeout_s
        await self.fresh_shards()
        return await self.call(store, hash_group(group) if group else None, call, self._halves(deadline, wait_s))

    async def batches(self, store: str, keys: Sequence[state_pb2.StateKey]) -> list[Batch]:
        """Returns the keys in batches, each of which is for one shard."""
        shards = await self.fresh_shards()
        return split(keys, lambda group: shards.replicas(store, hash_group(group)))

    async def get_batch(
        self, batch: Batch, request: query.BatchGetStatesRequest, wait_s: float = 0.0
    ) -> list[query_pb2.KeyResult]:
        """Returns the results of a batch, with their indices among all keys. `wait_s` and errors as of `answer`."""
        response = await self.answer(
            request.store,
            batch.group,
            lambda channel, timeout_s: stub(channel).BatchGetStates(request, timeout=timeout_s),
            wait_s,
        )
        return batch.results(response)

    async def listing(self, store: str = "") -> query.ListShardsResponse:
        """Returns the listing of one store, or of all for an empty name. Raises a StatecastError."""
        return await self.list_shards(self._halves(time.monotonic() + self._timeout_s), store)

    async def close(self) -> None:
        """Stops reading the map, and closes all connections."""
        if self._reading is not None:
            self._reading.cancel()
        await super().close()

    def _halves(self, deadline: float, wait_s: float = 0.0) -> Iterator[float]:
        """The timeouts of two calls: the first takes half of the time that is left, the second all of it."""
        for share in (0.5, 1.0):
            yield wait_s + (deadline - time.monotonic()) * share

    def _read_again(self) -> "asyncio.Task[None]":
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
        return self._reading

    async def _read(self) -> None:
        try:
            await self.listing()
        except StatecastError:
            return  # the previous map stays in use; without one, any instance is asked
        self._read_at = time.monotonic()
