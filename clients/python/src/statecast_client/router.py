"""Calls the instance that owns a group, and another one when that fails: the routing of every client in Python."""

import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import grpc
import grpc.aio

from statecast.calls import RECONNECTING, answer_of
from statecast.query.v1 import query_service_pb2 as query
from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub
from statecast_client.errors import StatecastError, error_of_status
from statecast_client.limits import MAX_RESPONSE_BYTES
from statecast_client.proxies import grpc_proxy_of, through
from statecast_client.shard_map import FailedAddresses, GroupHashes, ShardMap

if TYPE_CHECKING:
    from statecast.query.v1.query_service_pb2_grpc import QueryServiceAsyncStub

RETRIED: frozenset[grpc.StatusCode] = frozenset(
    grpc.StatusCode[name] for name in ("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "UNKNOWN", "INTERNAL")
)
"""The statuses that say something about the instance, and not about the request: another instance may answer it."""

_BATCH_METHOD = "/statecast.query.v1.QueryService/BatchGetStates"

_OPTIONS = (
    *RECONNECTING,
    ("grpc.max_receive_message_length", MAX_RESPONSE_BYTES),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 5_000),
)

_CLOSED = grpc.aio.AioRpcError(
    grpc.StatusCode.CANCELLED, grpc.aio.Metadata(), grpc.aio.Metadata(), "its connections are closed"
)

T = TypeVar("T")
Call = Callable[[grpc.aio.Channel, float], Awaitable[T]]
"""Makes a call of grpc.aio over a channel within so many seconds."""


def stub(channel: grpc.aio.Channel) -> "QueryServiceAsyncStub":
    return QueryServiceStub(channel)


def call_batch(request: bytes, channel: grpc.aio.Channel, timeout_s: float) -> Awaitable[query.BatchGetStatesResponse]:
    """Makes the call of a batch that is encoded already."""
    method: grpc.aio.UnaryUnaryMultiCallable[bytes, query.BatchGetStatesResponse] = channel.unary_unary(
        _BATCH_METHOD, request_serializer=None, response_deserializer=query.BatchGetStatesResponse.FromString
    )
    return method(request, timeout=timeout_s)


def error_of(error: grpc.aio.AioRpcError, address: str) -> StatecastError:
    status, text = error.code(), error.details() or error.code().name
    return error_of_status(status.value[0], text, dict(error.trailing_metadata() or ()), address)


def _channel_options(address: str, proxy: str | None) -> list[tuple[str, object]]:
    """Returns the options of a channel, with the proxy to the address or without any."""
    used = grpc_proxy_of(address, proxy)
    return [
        *_OPTIONS,
        ("grpc.enable_http_proxy", int(used is not None)),
        *([("grpc.http_proxy", used)] if used else []),
    ]


class Router:
    """The shard map, one connection per address, and the addresses that failed lately.

    Any instance answers any key, so a wrong map costs a forward, never a wrong answer.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        credentials: grpc.ChannelCredentials | None = None,
        proxy: str | None = None,
        backoff_s: float = 1.0,
        monotonic: Callable[[], float] = time.monotonic,
        error_of: Callable[[grpc.aio.AioRpcError, str], Exception] = error_of,
        on_failure: Callable[[grpc.aio.AioRpcError, str, bool], object] = lambda *_: None,
    ) -> None:
        """Begins at `addresses`, without TLS unless there are `credentials`, through `proxy` or as `proxies` says.

        An address that failed is chosen last for `backoff_s`. `error_of` makes the error that is raised of a failed
        call and its address. `on_failure` hears of every call that is tried elsewhere: its error, its address, and
        whether this is the first failure since the address last answered.
        """
        self.shards = ShardMap()
        self._addresses = tuple(addresses)
        self._credentials = credentials
        self._proxy = proxy
        self._failed = FailedAddresses(backoff_s, monotonic)
        self._error_of = error_of
        self._on_failure = on_failure
        self._channels: dict[str, grpc.aio.Channel] = {}
        self.is_closed = False
        """Whether its connections have been closed: every call fails."""
        self._salt = secrets.token_hex(8)

    def address(self, store: str, group: GroupHashes) -> str:
        """Returns the address to ask for a group now."""
        return self._best(self.shards.replicas(store, group))

    def owner(self, store: str, group: str) -> tuple[str, int | None]:
        """Returns the address to ask for a group now, and its partition, or None when the map does not know it."""
        partition = self.shards.partition_of(store, group)
        replicas = () if partition is None else self.shards.stores[store].replicas.get(partition, ())
        return self._best(replicas), partition

    async def call(self, store: str, group: GroupHashes | None, call: Call[T], timeouts: Iterable[float]) -> T:
        """Returns the answer of the best instance for a group, or of any for None. Asks another for each next timeout.

        Raises the error of the last call, or of the first with a status that says that the request itself is wrong.
        """
        return await self._first_answer(
            lambda: (*self.shards.replicas(store, group), *self._addresses, *self.shards.addresses), call, timeouts
        )

    async def call_at(self, address: str, call: Call[T], timeout_s: float) -> T:
        """Returns the answer of one instance. Raises the error of the call."""
        return await self._first_answer(lambda: (address,), call, (timeout_s,))

    async def list_shards(self, timeouts: Iterable[float], store: str = "") -> query.ListShardsResponse:
        """Returns the listing of one store, or of all for an empty name: calls are routed by it from then on."""
        listing = await self._listing(query.ListShardsRequest(store=store), timeouts)
        if not store:
            self.shards = ShardMap.of(listing)
        return listing

    async def refresh(self, timeouts: Iterable[float]) -> query.ListShardsResponse | None:
        """Routes calls by the shard map as it is now; returns the listing, or None when it is as before."""
        listing = await self._listing(query.ListShardsRequest(known_version=self.shards.version), timeouts)
        if listing.version and listing.version == self.shards.version:
            return None
        self.shards = ShardMap.of(listing)
        return listing

    async def _listing(self, request: query.ListShardsRequest, timeouts: Iterable[float]) -> query.ListShardsResponse:
        request.max_response_bytes = MAX_RESPONSE_BYTES
        # Every instance has the map, and is asked by its share of the clients. Each client stays with one while it can:
        # for a moment, others may have read another stores file.
        addresses = sorted(self.shards.addresses, key=lambda address: hash((self._salt, address)))
        return await self._first_answer(
            lambda: (*addresses, *self._addresses),
            lambda channel, timeout_s: stub(channel).ListShards(request, timeout=timeout_s),
            timeouts,
        )

    async def close_unused(self, grace_s: float) -> None:
        """Closes connections to instances that the map no longer names; their calls may end within `grace_s`."""
        for address in self._channels.keys() - {*self._addresses, *self.shards.addresses}:
            self._failed.discard(address)
            await self._channels.pop(address).close(grace_s)

    async def close(self) -> None:
        """Closes all connections; calls that are in flight fail."""
        self.is_closed = True
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            await channel.close()

    def _best(self, replicas: Sequence[str]) -> str:
        if replicas and replicas[0] not in self._failed:
            return replicas[0]
        return self._failed.choose((*replicas, *self._addresses))

    async def _first_answer(
        self, candidates: Callable[[], Sequence[str]], call: Call[T], timeouts: Iterable[float]
    ) -> T:
        if self.is_closed:
            raise self._error_of(_CLOSED, "this client")
        address = ""
        failure: Exception | None = None
        for timeout_s in timeouts:
            address = self._failed.choose(candidates(), address)
            try:
                answer = await answer_of(call(self._channel(address), timeout_s))
            except grpc.aio.AioRpcError as error:
                failure = self._error_of(error, address + through(grpc_proxy_of(address, self._proxy)))
                if error.code() not in RETRIED or self.is_closed:
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
                grpc.aio.insecure_channel(address, options=_channel_options(address, self._proxy))
                if self._credentials is None
                else grpc.aio.secure_channel(address, self._credentials, _channel_options(address, self._proxy))
            )
        return self._channels[address]
