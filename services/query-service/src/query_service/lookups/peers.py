"""The connections to the other instances, and the memory of which of them failed lately."""

import asyncio
from collections.abc import Callable, Collection

import grpc

from query_service.cluster.peer_memory import PeerMemory, Shard
from query_service.cluster.shard_map import Member
from query_service.lookups.lookup import Lookup
from query_service.lookups.remote_lookup import RemoteLookup
from query_service.tls import Tls
from statecast.query.v1 import query_pb2
from statecast.shard.v1 import shard_service_pb2 as shard
from statecast.shard.v1 import shard_service_pb2_grpc as shard_grpc

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


class Peer(PeerMemory):
    """One other instance: its lookups, and what failed there lately."""

    def __init__(self, member: Member, backoff_s: float, monotonic: Callable[[], float], tls: Tls | None) -> None:
        """Connects at the first call."""
        super().__init__(backoff_s, monotonic)
        self._probing: asyncio.Task[None] | None = None
        self._probe_pause_s = backoff_s
        self._channel = (
            grpc.aio.secure_channel(member.shard_address, tls.as_client(), options=_OPTIONS)
            if tls
            else grpc.aio.insecure_channel(member.shard_address, options=_OPTIONS)
        )
        self._stub: shard_grpc.ShardServiceAsyncStub = shard_grpc.ShardServiceStub(self._channel)
        self.lookup: Lookup = RemoteLookup(self._stub, member.instance, monotonic)

    def failed(self, shard: Shard | None) -> None:
        """See PeerMemory. A peer that does not answer at all is probed until it does."""
        super().failed(shard)
        if shard is None and self._probing is None:
            self._probing = asyncio.create_task(self._probe())

    async def partitions(self, timeout_s: float) -> Collection[shard.Partition] | None:
        """Returns how far the peer's partitions are; None when it does not answer in time."""
        try:
            answer = await self._stub.ListPartitions(shard.ListPartitionsRequest(), timeout=timeout_s)
        except grpc.aio.AioRpcError:
            return None
        return answer.partitions

    async def close(self) -> None:
        """Closes the connection."""
        if self._probing is not None:
            self._probing.cancel()
        await self._channel.close()

    async def _probe(self) -> None:
        while await self.partitions(self._probe_pause_s) is None:  # noqa: ASYNC110  the answer lies at the peer
            await asyncio.sleep(self._probe_pause_s)
        self._probing = None
        self.answered(None)


class Peers:
    """One Peer per member, connected for as long as the process lives or until `keep` drops it."""

    def __init__(self, backoff_s: float, monotonic: Callable[[], float], tls: Tls | None = None) -> None:
        """Knows nobody yet. Connects with TLS when it is given."""
        self._tls = tls
        self._backoff_s = backoff_s
        self._monotonic = monotonic
        self._peers: dict[Member, Peer] = {}

    def of(self, member: Member) -> Peer:
        """Returns the peer of a member."""
        peer = self._peers.get(member)
        if peer is None:
            peer = self._peers[member] = Peer(member, self._backoff_s, self._monotonic, self._tls)
        return peer

    async def keep(self, members: Collection[Member]) -> None:
        """Closes the connections to everybody else."""
        for member in [member for member in self._peers if member not in members]:
            await self._peers.pop(member).close()

    async def served_by(self, member: Member, timeout_s: float) -> frozenset[Shard]:
        """Returns the partitions that a member says it serves; none when it does not answer."""
        partitions = await self.of(member).partitions(timeout_s) or ()
        return frozenset((each.store, each.freshness.partition) for each in partitions if each.serving)

    async def freshness_at(self, member: Member, timeout_s: float) -> "dict[Shard, tuple[bool, query_pb2.Freshness]]":
        """Returns, for each partition of a member, whether it serves and how fresh it is; none when unreachable."""
        peer = self.of(member)
        partitions = () if peer.unreachable else await peer.partitions(timeout_s) or ()
        return {(each.store, each.freshness.partition): (each.serving, each.freshness) for each in partitions}
