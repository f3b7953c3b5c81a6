"""Lookups at the other instances: one connection to each, and what is known of its health."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

import grpc
from google.protobuf.message import Message
from typing_extensions import override

from query_service import lookups
from query_service.cluster.shard_map import Member, StorePartition
from query_service.errors import UnreachableError
from query_service.freshness import Freshness
from query_service.lookups.routing import RoutedPeer
from query_service.serving import messages, responses
from query_service.serving.grpc_status import failure_of
from query_service.serving.messages import forwarded_freshness
from statecast.shard.v1 import shard_service_pb2, shard_service_pb2_grpc
from statecast_service.tls import Tls

_OPTIONS = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 2_000),
    ("grpc.enable_http_proxy", 0),
)

_Response = TypeVar("_Response")


class RemoteLookup(lookups.Lookup):
    """A Lookup that the peer answers from its own stores. What is left of the deadline is passed on."""

    def __init__(
        self, stub: "shard_service_pb2_grpc.ShardServiceAsyncStub", peer: str, monotonic: Callable[[], float]
    ) -> None:
        self._stub = stub
        self._peer = peer
        self._monotonic = monotonic

    @override
    async def get(self, query: lookups.GetQuery, deadline: float) -> lookups.GetResult:
        request = shard_service_pb2.GetStateRequest()
        messages.fill_get_request(request.query, query)
        response = await self._call(self._stub.GetState, request, deadline)
        return responses.get_result(response.answer)

    @override
    async def batch(self, query: lookups.BatchQuery, deadline: float) -> lookups.BatchResult:
        request = shard_service_pb2.BatchGetStatesRequest()
        messages.fill_batch_request(request.query, query)
        response = await self._call(self._stub.BatchGetStates, request, deadline)
        return responses.batch_result(response.answer)

    @override
    async def scan(self, query: lookups.ScanQuery, deadline: float, partition: int | None = None) -> lookups.PageResult:
        request = shard_service_pb2.ScanStatesRequest(partition=partition)
        messages.fill_scan_request(request.query, query)
        response = await self._call(self._stub.ScanStates, request, deadline)
        return responses.scan_result(response.answer)

    @override
    async def versions(self, query: lookups.VersionsQuery, deadline: float) -> lookups.VersionsResult:
        request = shard_service_pb2.ListVersionsRequest()
        messages.fill_versions_request(request.query, query)
        response = await self._call(self._stub.ListVersions, request, deadline)
        return responses.versions_result(response.answer)

    async def _call(self, method: Callable[..., Awaitable[_Response]], request: Message, deadline: float) -> _Response:
        left_s = deadline - self._monotonic()
        if left_s <= 0:
            raise UnreachableError(f"{self._peer} was not asked: the deadline has passed")
        try:
            return await method(request, timeout=left_s)
        except grpc.aio.AioRpcError as error:
            raise failure_of(error, self._peer) from error


class Peer(RoutedPeer):
    """One other instance: its lookups, and what failed there lately."""

    def __init__(self, member: Member, backoff_s: float, monotonic: Callable[[], float], tls: Tls | None) -> None:
        """Connects at the first call."""
        self._channel = (
            grpc.aio.secure_channel(member.shard_address, tls.channel_credentials(), options=_OPTIONS)
            if tls
            else grpc.aio.insecure_channel(member.shard_address, options=_OPTIONS)
        )
        self._stub: shard_service_pb2_grpc.ShardServiceAsyncStub
        self._stub = shard_service_pb2_grpc.ShardServiceStub(self._channel)
        super().__init__(RemoteLookup(self._stub, member.instance, monotonic), backoff_s, monotonic)
        self._probing: asyncio.Task[None] | None = None
        self._probe_pause_s = backoff_s

    @override
    def failed(self, shard: StorePartition | None) -> None:
        """A peer that does not answer at all is probed until it does."""
        super().failed(shard)
        if shard is None and self._probing is None:
            self._probing = asyncio.create_task(self._probe())

    async def partitions(self, timeout_s: float) -> Collection[shard_service_pb2.Partition] | None:
        """Returns how far the peer's partitions are; None when it does not answer in time."""
        try:
            response = await self._stub.ListPartitions(shard_service_pb2.ListPartitionsRequest(), timeout=timeout_s)
        except grpc.aio.AioRpcError:
            return None
        return response.partitions

    async def close(self) -> None:
        """Closes the connection."""
        if self._probing is not None:
            self._probing.cancel()
        await self._channel.close()

    async def _probe(self) -> None:
        while await self.partitions(self._probe_pause_s) is None:  # noqa: ASYNC110  only the peer knows
            await asyncio.sleep(self._probe_pause_s)
        self._probing = None
        self.answered(None)


class Peers:
    """One Peer per member, connected for as long as the process lives or until `keep` drops it."""

    def __init__(self, backoff_s: float, monotonic: Callable[[], float], tls: Tls | None = None) -> None:
        """Has no connection yet; connects with `tls`, or in plain text."""
        self._tls = tls
        self._backoff_s = backoff_s
        self._monotonic = monotonic
        self._peers: dict[Member, Peer] = {}

    def of(self, member: Member) -> Peer:
        peer = self._peers.get(member)
        if peer is None:
            peer = self._peers[member] = Peer(member, self._backoff_s, self._monotonic, self._tls)
        return peer

    async def keep(self, members: Collection[Member]) -> None:
        """Closes the connections to all others."""
        for member in [member for member in self._peers if member not in members]:
            await self._peers.pop(member).close()

    async def served_by(self, member: Member, timeout_s: float) -> frozenset[StorePartition]:
        """Returns the partitions that a member says it serves; none when it does not answer."""
        partitions = await self.of(member).partitions(timeout_s) or ()
        return frozenset((held.store, held.freshness.partition) for held in partitions if held.serving)

    async def freshness_at(self, member: Member, timeout_s: float) -> dict[StorePartition, tuple[bool, Freshness]]:
        """Returns, for each partition of a member, whether it serves and how fresh it is; none when unreachable."""
        peer = self.of(member)
        partitions = () if peer.unreachable else await peer.partitions(timeout_s) or ()
        return {
            (held.store, held.freshness.partition): (held.serving, forwarded_freshness(held.freshness))
            for held in partitions
        }
