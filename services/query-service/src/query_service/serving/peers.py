"""Lookups at the other instances: one connection to each, and its health as far as it is known."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import grpc
from google.protobuf.message import Message
from typing_extensions import override

from query_service import lookups
from query_service.cluster.misplaced import MisplacedAt
from query_service.cluster.shard_map import Member, StorePartition
from query_service.errors import TimedOutError
from query_service.lookups import Encoded, Row
from query_service.lookups.routed_peer import Held, RoutedPeer
from query_service.serving.grpc_status import failure_of
from query_service.serving.messages import fill_batch_request, fill_scan_request, forwarded_freshness, message_of
from query_service.serving.shard_channel import shard_channel
from query_service.storage.store_keys import row_key
from statecast.query.v1 import query_service_pb2 as api
from statecast.shard.v1 import shard_service_pb2 as shard
from statecast.shard.v1 import shard_service_pb2_grpc as shard_grpc
from statecast_client.calls import answer_of
from statecast_service.tls import Tls

_WATCH_S = 1.0

_Response = TypeVar("_Response")


@dataclass(eq=False)
class RemoteLookup(lookups.Lookup):
    """A Lookup that the peer answers from its own stores. The time left until the deadline is passed on."""

    stub: "shard_grpc.ShardServiceAsyncStub"
    peer: str
    monotonic: Callable[[], float]

    @override
    async def get(self, query: lookups.GetQuery, deadline: float) -> lookups.GetResult:
        request = shard.GetStateRequest(query=message_of(query.encoded))
        answer = (await self.call(self.stub.GetState, request, deadline)).answer
        return lookups.GetResult(Encoded(answer.state), forwarded_freshness(answer.freshness))

    @override
    async def batch(self, query: lookups.BatchQuery, deadline: float) -> lookups.BatchResult:
        request = shard.BatchGetStatesRequest()
        fill_batch_request(request.query, query)
        answer = (await self.call(self.stub.BatchGetStates, request, deadline)).answer
        return lookups.BatchResult(
            [(result.index, 0, Encoded(result)) for result in answer.results],
            [(result.index, Encoded(result)) for result in answer.ranges],
            [forwarded_freshness(freshness) for freshness in answer.freshness],
        )

    @override
    async def scan(self, query: lookups.ScanQuery, deadline: float, partition: int | None = None) -> lookups.PageResult:
        request = shard.ScanStatesRequest(partition=partition)
        fill_scan_request(request.query, query)
        answer = (await self.call(self.stub.ScanStates, request, deadline)).answer
        rows = [
            Row(row_key(state.key.group, state.key.sort, state.key.member), 0, Encoded(state), len(state.payload))
            for state in answer.states
        ]
        shards = [forwarded_freshness(freshness) for freshness in answer.shards]
        return lookups.PageResult(rows, answer.next_page_token, forwarded_freshness(answer.freshness), shards)

    @override
    async def versions(self, query: lookups.VersionsQuery, deadline: float) -> lookups.VersionsResult:
        request = shard.ListVersionsRequest(query=message_of(query.encoded))
        answer = (await self.call(self.stub.ListVersions, request, deadline)).answer
        values = [Encoded(version) for version in answer.versions]
        return lookups.VersionsResult(values, answer.next_page_token, forwarded_freshness(answer.freshness))

    async def call(self, method: Callable[..., Awaitable[_Response]], request: Message, deadline: float) -> _Response:
        """Returns the answer of a method of the stub. Raises LookupFailedError."""
        left_s = deadline - self.monotonic()
        if left_s <= 0:
            raise TimedOutError(f"{self.peer} was not asked: the deadline has passed")
        try:
            return await answer_of(method(request, timeout=left_s))
        except grpc.aio.AioRpcError as error:
            raise failure_of(error, self.peer) from error


class Peer(RoutedPeer):
    """A peer, asked for its partitions every second and at once when it fails: `held` is its last answer, or empty."""

    def __init__(self, member: Member, backoff_s: float, monotonic: Callable[[], float], tls: Tls | None) -> None:
        """Connects at once. Needs a running event loop."""
        self._channel = shard_channel(member.shard_address, tls)
        self._stub: shard_grpc.ShardServiceAsyncStub = shard_grpc.ShardServiceStub(self._channel)
        self._lookup = RemoteLookup(self._stub, member.instance, monotonic)
        super().__init__(self._lookup, backoff_s, monotonic)
        self.replicas = 0
        """Its setting REPLICAS, as it said last; zero until then, and when it does not say it."""
        self._has_failed = asyncio.Event()
        self._watching = asyncio.create_task(self._watch())

    @override
    def failed(self, shard: StorePartition | None) -> None:
        """A peer that does not answer at all is probed until it does."""
        if shard is None and not self.unreachable:
            self._has_failed.set()
        super().failed(shard)

    async def batch(self, request: shard.BatchGetStatesRequest, deadline: float) -> api.BatchGetStatesResponse:
        """Returns the peer's answer to a batch. Raises LookupFailedError."""
        return (await self._lookup.call(self._stub.BatchGetStates, request, deadline)).answer

    async def partitions(self, timeout_s: float) -> Held | None:
        """Returns the partitions that the peer holds; None when it does not answer in time."""
        try:
            response = await self._stub.ListPartitions(shard.ListPartitionsRequest(), timeout=timeout_s)
        except grpc.aio.AioRpcError:
            return None
        self.replicas = response.replicas
        self.misplaced = {
            (each.store, each.freshness.partition, forwarded_freshness(each.freshness).epoch): each.misplaced_groups
            for each in response.partitions
            if each.misplaced_groups
        }
        return {
            (held.store, held.freshness.partition): (held.serving, forwarded_freshness(held.freshness))
            for held in response.partitions
        }

    async def close(self) -> None:
        self._watching.cancel()
        await self._channel.close()

    async def _watch(self) -> None:
        while True:
            self._has_failed.clear()
            held = await self.partitions(self._backoff_s)
            self.held = held or {}
            if held is None:
                super().failed(None)
            else:
                self.answered(None)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._backoff_s if self.unreachable else _WATCH_S):
                    await self._has_failed.wait()


@dataclass(eq=False)
class Peers:
    """One Peer per member, with TLS or in plain text, connected until the process ends or `keep` drops it.

    A peer gets `timeout_s` to list its partitions.
    """

    backoff_s: float
    timeout_s: float
    monotonic: Callable[[], float]
    tls: Tls | None = None
    _peers: dict[Member, Peer] = field(default_factory=dict, init=False)

    def of(self, member: Member) -> Peer:
        peer = self._peers.get(member)
        if peer is None:
            peer = self._peers[member] = Peer(member, self.backoff_s, self.monotonic, self.tls)
        return peer

    async def keep(self, members: Collection[Member]) -> None:
        """Connects to these members, and closes the connections to all others."""
        for member in members:
            self.of(member)
        for member in [member for member in self._peers if member not in members]:
            await self._peers.pop(member).close()

    def misplaced(self) -> Iterable[MisplacedAt]:
        """Returns the misplaced groups of each peer."""
        return [peer.misplaced for peer in self._peers.values()]

    def replicas(self) -> dict[str, int]:
        """Returns the setting REPLICAS of each peer by its name, as it said last; zero when it does not say it."""
        return {member.instance: peer.replicas for member, peer in self._peers.items()}

    async def served_by(self, member: Member) -> frozenset[StorePartition]:
        """Returns the partitions that a member says it serves; none when it does not answer."""
        held = await self.of(member).partitions(self.timeout_s) or {}
        return frozenset(place for place, (serving, _) in held.items() if serving)
