"""Reads at the other instances: one connection to each, and its health as far as it is known."""

import asyncio
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import grpc
import structlog
from google.protobuf.message import Message
from typing_extensions import override

from query_service.cluster.misplaced import MisplacedAt
from query_service.cluster.shard_map import Member, StorePartition
from query_service.errors import LookupFailedError, PeerOverloadedError, TimedOutError, UnreachableError
from query_service.logged import Logged
from query_service.reads import Page, Reads, Row
from query_service.reads.routed_peer import Held, RoutedPeer
from query_service.reads.status import failure_of
from query_service.reads.wire import FIRST, sized
from query_service.server.partition_listing import Listed
from query_service.server.shard_channel import shard_channel
from query_service.storage.store_keys import row_key
from statecast.calls import answer_of
from statecast.query.v1 import query_service_pb2 as api
from statecast.shard.v1 import shard_service_pb2 as shard
from statecast.shard.v1 import shard_service_pb2_grpc as shard_grpc
from statecast_service.tls import Tls

_SERVICE = shard.DESCRIPTOR.services_by_name["ShardService"].full_name

_log = structlog.get_logger()

_Response = TypeVar("_Response", bound=Message)


class PeerReads(Reads):
    """Reads that a peer answers from its own stores. The time left until the deadline is passed on."""

    def __init__(self, channel: grpc.aio.Channel, peer: str, monotonic: Callable[[], float]) -> None:
        """`peer` is the name of the instance, for the errors."""
        self._peer = peer
        self._monotonic = monotonic
        self._get = _method(channel, "GetState", shard.GetStateResponse)
        self._batch = _method(channel, "BatchGetStates", shard.BatchGetStatesResponse)
        self._scan = _method(channel, "ScanStates", shard.ScanStatesResponse)
        self._versions = _method(channel, "ListVersions", shard.ListVersionsResponse)

    @override
    async def get(self, request: api.GetStateRequest, deadline: float) -> bytes:
        answer = (await self._call(self._get, sized(FIRST, request.SerializeToString()), deadline)).answer
        answer.freshness.forwarded = True
        return answer.SerializeToString()

    @override
    async def batch(self, request: api.BatchGetStatesRequest, deadline: float) -> api.BatchGetStatesResponse:
        answer = (await self._call(self._batch, sized(FIRST, request.SerializeToString()), deadline)).answer
        for freshness in answer.freshness:
            freshness.forwarded = True
        return answer

    @override
    async def scan(self, request: api.ScanStatesRequest, deadline: float, partition: int | None = None) -> Page:
        wrapped = shard.ScanStatesRequest(query=request, partition=partition).SerializeToString()
        answer = (await self._call(self._scan, wrapped, deadline)).answer
        answer.freshness.forwarded = True
        for freshness in answer.shards:
            freshness.forwarded = True
        rows = [
            Row(row_key(state.key.group, state.key.sort, state.key.member), state.SerializeToString())
            for state in answer.states
        ]
        return Page(rows, answer.next_page_token, answer.freshness, answer.shards)

    @override
    async def versions(self, request: api.ListVersionsRequest, deadline: float) -> bytes:
        answer = (await self._call(self._versions, sized(FIRST, request.SerializeToString()), deadline)).answer
        answer.freshness.forwarded = True
        return answer.SerializeToString()

    async def _call(
        self, method: "grpc.aio.UnaryUnaryMultiCallable[bytes, _Response]", request: bytes, deadline: float
    ) -> _Response:
        """Returns the answer of a method. Raises LookupFailedError."""
        left_s = deadline - self._monotonic()
        if left_s <= 0:
            raise TimedOutError(f"{self._peer} was not asked: the deadline has passed")
        try:
            return await answer_of(method(request, timeout=left_s))
        except grpc.aio.AioRpcError as error:
            raise failure_of(error, self._peer) from error


def _method(
    channel: grpc.aio.Channel, name: str, kind: type[_Response]
) -> "grpc.aio.UnaryUnaryMultiCallable[bytes, _Response]":
    """Returns a method of the internal service that takes its request encoded, so that none is copied into another."""
    method: grpc.aio.UnaryUnaryMultiCallable[bytes, _Response] = channel.unary_unary(
        f"/{_SERVICE}/{name}", request_serializer=None, response_deserializer=kind.FromString
    )
    return method


class Peer(RoutedPeer):
    """A peer, asked for its partitions at an interval and at once when it fails: `held` is its last answer, or empty.

    One that is too busy to list them keeps them: taken for dead, it would leave its load to the others at once.
    """

    def __init__(
        self,
        member: Member,
        backoff_s: float,
        timeout_s: float,
        monotonic: Callable[[], float],
        tls: Tls | None,
        interval_s: Callable[[], float],
    ) -> None:
        """Connects at once. A peer that has not listed its partitions after `timeout_s` counts as dead.

        Needs a running event loop.
        """
        self._interval_s = interval_s
        self._channel = shard_channel(member.shard_address, tls)
        self._stub: shard_grpc.ShardServiceAsyncStub = shard_grpc.ShardServiceStub(self._channel)
        super().__init__(PeerReads(self._channel, member.instance, monotonic), backoff_s, monotonic)
        self._listed = Listed()
        self._instance = member.instance
        self._timeout_s = timeout_s
        self._strangers = Logged()
        self.was_asked = False
        """Whether it has listed its partitions, or failed to, at least once."""
        self._has_failed = asyncio.Event()
        self._watching = asyncio.create_task(self._watch())

    @override
    def failed(self, shard: StorePartition | None) -> None:
        """Notes a failure; a peer that does not answer at all is probed until it does."""
        if shard is None and not self.unreachable:
            self._has_failed.set()
        super().failed(shard)

    async def partitions(self, timeout_s: float) -> Held | None:
        """Returns the partitions that the peer holds; None when it does not answer in time, or another one does."""
        try:
            return await self._list(timeout_s)
        except LookupFailedError:
            return None

    async def _list(self, timeout_s: float) -> Held:
        before = self._listed
        request = shard.ListPartitionsRequest(known_version=before.version)
        try:
            answer = await answer_of(self._stub.ListPartitions(request, timeout=timeout_s))
        except grpc.aio.AioRpcError as error:
            raise failure_of(error, self._instance) from error
        if answer.instance != self._instance:
            event = "another instance answers at this member's address"
            if self._strangers.is_new(self._instance, answer.instance):
                _log.warning(event, member=self._instance, answers=answer.instance)
            raise UnreachableError(event)
        self._listed = listed = before.after(answer)
        self.misplaced = listed.misplaced
        return listed.held

    async def close(self) -> None:
        self._watching.cancel()
        await self._channel.close()

    async def _watch(self) -> None:
        while True:
            self._has_failed.clear()
            try:
                self.held = await self._list(self._timeout_s)
                self.answered(None)
            except PeerOverloadedError:  # it lives, and holds what it held
                self.answered(None)
            except LookupFailedError:
                self.held = {}
                super().failed(None)
            self.was_asked = True
            with suppress(TimeoutError):
                async with asyncio.timeout(self._backoff_s if self.unreachable else self._interval_s()):
                    await self._has_failed.wait()


def interval_s(peers: int) -> float:
    """Returns how often each of so many peers is asked: every second; of more than five, five a second altogether.

    Fifty instances that asked each other every second would keep two processors busy for good.
    """
    return max(1.0, peers / 5)


@dataclass(eq=False)
class Peers:
    """One Peer per member, with TLS or in plain text, connected until the process ends or `keep` drops it.

    A peer gets `timeout_s` to list its partitions; to show that it lives, also as long as the back-off.
    """

    backoff_s: float
    timeout_s: float
    monotonic: Callable[[], float]
    tls: Tls | None = None
    _peers: dict[Member, Peer] = field(default_factory=dict, init=False)

    def of(self, member: Member) -> Peer:
        peer = self._peers.get(member)
        if peer is None:
            watch_s = max(self.backoff_s, self.timeout_s)
            peers = self._peers
            peer = Peer(member, self.backoff_s, watch_s, self.monotonic, self.tls, lambda: interval_s(len(peers)))
            peers[member] = peer
        return peer

    async def keep(self, members: Collection[Member]) -> None:
        """Connects to these members, and closes the connections to all others."""
        for member in members:
            self.of(member)
        for member in [member for member in self._peers if member not in members]:
            await self._peers.pop(member).close()

    def were_asked(self, members: Iterable[Member]) -> bool:
        """Returns whether each of these members has listed its partitions, or failed to, at least once."""
        return all(member in self._peers and self._peers[member].was_asked for member in members)

    def misplaced(self) -> Iterable[MisplacedAt]:
        """Returns the misplaced groups of each peer."""
        return [peer.misplaced for peer in self._peers.values()]

    async def served_by(self, member: Member) -> frozenset[StorePartition]:
        """Returns the partitions that a member says it serves; none when it does not answer."""
        held = await self.of(member).partitions(self.timeout_s) or {}
        return frozenset(place for place, (serving, _) in held.items() if serving)
