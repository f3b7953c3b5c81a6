"""Asks the query service: each key straight at the instance that owns it, and at the next one when that fails."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import grpc
import grpc.aio
import structlog

from statecast.query.v1.query_service_pb2 import (
    BatchGetStatesResponse,
    ListShardsRequest,
    ListShardsResponse,
    ScanStatesRequest,
    ScanStatesResponse,
)
from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub
from ws_edge.errors import UnavailableError
from ws_edge.querying.addresses import Addresses
from ws_edge.querying.partitioning import group_hash
from ws_edge.querying.questions import Answer, AnyQuestion, answers, batch, failure_of
from ws_edge.querying.shard_map import ShardMap, order
from ws_edge.stores import Store

if TYPE_CHECKING:
    from statecast.query.v1.query_service_pb2_grpc import QueryServiceAsyncStub

R = TypeVar("R")

ATTEMPTS = 3
BATCH_METHOD = "/statecast.query.v1.QueryService/BatchGetStates"
OPTIONS = [
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
]
RETRIED = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.INTERNAL,
)

log = structlog.get_logger(__name__)


class QueryClient:
    """The edge's only way to the query service.

    No method raises grpc errors. What one instance cannot answer is asked of the next candidate, at most three times,
    each within `timeout` seconds; `on_failure` is called whenever an instance has failed.
    """

    def __init__(
        self,
        addresses: Addresses,
        timeout: float,
        batch_limit: int,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        """Without `credentials` the connections go without TLS."""
        self._credentials = credentials
        self._addresses = addresses
        self._timeout = timeout
        self._batch_limit = batch_limit
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._map = ShardMap()
        self.on_failure: Callable[[], None] = lambda: None

    def route(self, store: Store, hashed_group: int) -> str:
        """The address that is to be asked for the group now."""
        return self._addresses.choose(self._map.candidates(store.name, hashed_group))

    async def ask(self, store: Store, questions: Sequence[AnyQuestion]) -> list[Answer]:
        """Looks up keys of one store; returns the answer to each in their order, an error where none could be had."""
        found: list[Answer] = [None] * len(questions)
        pending = list(range(len(questions)))
        for _ in range(ATTEMPTS):
            batches = self._batches(store, questions, pending)
            outcomes = await asyncio.gather(
                *(self._ask_one(store, address, [questions[at] for at in places]) for address, places in batches)
            )
            pending = []
            for (_, places), outcome in zip(batches, outcomes, strict=True):
                if outcome is None:
                    pending += places
                    continue
                for place, answer in zip(places, outcome, strict=True):
                    found[place] = answer
            if not pending:
                return found
        error = UnavailableError(f"no instance of the query service answers for {store.name}; it is asked again")
        for place in pending:
            found[place] = error
        return found

    async def wait(
        self, store: Store, address: str, questions: list[AnyQuestion], max_wait: float
    ) -> list[Answer] | None:
        """Asks one instance for an answer once something is newer, or after `max_wait` seconds; None when it fails."""
        return await self._ask_one(store, address, questions, max_wait)

    async def scan(self, store: Store, request: ScanStatesRequest) -> ScanStatesResponse:
        """Reads a page of a group. Raises RequestError when it is wrong or cannot be had."""
        hashed_group = group_hash(request.group)
        return await self._first_answer(
            lambda: self.route(store, hashed_group),
            lambda address: self._stub(address).ScanStates(request, timeout=self._timeout),
        )

    async def list_shards(self) -> ListShardsResponse:
        """Returns the shard map as an instance tells it, and routes by it from now on. Raises UnavailableError."""
        response = await self._first_answer(
            lambda: self._addresses.choose(sorted(self._map.all_addresses())),
            lambda address: self._stub(address).ListShards(ListShardsRequest(), timeout=2 * self._timeout),
        )
        self._map = _shard_map(response)
        await self._close_unused()
        return response

    async def close(self) -> None:
        """Closes all connections."""
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            await channel.close()

    def _batches(
        self, store: Store, questions: Sequence[AnyQuestion], places: list[int]
    ) -> list[tuple[str, list[int]]]:
        by_address: dict[str, list[int]] = {}
        for place in places:
            by_address.setdefault(self.route(store, questions[place].group_hash), []).append(place)
        limit = self._batch_limit
        return [
            (address, all_places[start : start + limit])
            for address, all_places in by_address.items()
            for start in range(0, len(all_places), limit)
        ]

    async def _ask_one(
        self, store: Store, address: str, questions: list[AnyQuestion], max_wait: float = 0.0
    ) -> list[Answer] | None:
        """The answers of one instance; None when it does not answer."""
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, BatchGetStatesResponse] = self._channel(address).unary_unary(
            BATCH_METHOD, request_serializer=None, response_deserializer=BatchGetStatesResponse.FromString
        )
        try:
            response = await call(batch(store, questions, max_wait), timeout=max_wait + self._timeout)
        except grpc.aio.AioRpcError as error:
            if self._is_retried(address, error):
                return None
            return [failure_of(error.code().value[0], error.details() or "")] * len(questions)
        self._addresses.answered(address)
        return answers(store, questions, response, self._map.partitions.get(store.name))

    async def _first_answer(self, choose: Callable[[], str], call: Callable[[str], Awaitable[R]]) -> R:
        reason = ""
        for _ in range(ATTEMPTS):
            address = choose()
            try:
                answer = await call(address)
            except grpc.aio.AioRpcError as error:
                reason = f"{address}: {error.details()}"
                if not self._is_retried(address, error):
                    raise failure_of(error.code().value[0], error.details() or "") from error
                continue
            self._addresses.answered(address)
            return answer
        raise UnavailableError(f"the query service does not answer ({reason}); try again in a moment")

    def _is_retried(self, address: str, error: grpc.aio.AioRpcError) -> bool:
        if error.code() not in RETRIED:
            return False
        if self._addresses.failed(address):
            log.warning("query_instance_failed", address=address, status=error.code().name, reason=error.details())
        self.on_failure()
        return True

    def _stub(self, address: str) -> "QueryServiceAsyncStub":
        return QueryServiceStub(self._channel(address))

    def _channel(self, address: str) -> grpc.aio.Channel:
        channel = self._channels.get(address)
        if channel is None:
            channel = self._channels[address] = self._open(address)
        return channel

    def _open(self, address: str) -> grpc.aio.Channel:
        if self._credentials is None:
            return grpc.aio.insecure_channel(address, options=OPTIONS)
        return grpc.aio.secure_channel(address, self._credentials, options=OPTIONS)

    async def _close_unused(self) -> None:
        for address in self._channels.keys() - self._map.all_addresses() - set(self._addresses.configured):
            # Calls under way get the time that they have been given anyway.
            await self._channels.pop(address).close(grace=self._timeout)


def _shard_map(response: ListShardsResponse) -> ShardMap:
    return ShardMap(
        {store.store: store.partitions for store in response.stores},
        {
            (shard.store, shard.partition): order(
                [(replica.rank, replica.serving, replica.address) for replica in shard.replicas]
            )
            for shard in response.shards
        },
    )
