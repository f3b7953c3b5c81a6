"""The connections to the other instances, and the memory of which of them failed lately."""

from collections.abc import Callable, Collection

import grpc

from query_service.remote_lookup import RemoteLookup
from query_service.shard_map import Member
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

Shard = tuple[str, int]


class Peer:
    """One other instance: its lookups, and what failed there lately.

    What failed is not usable for the back-off time; after it, one call at a time tries again, and the others go on to
    the next replica until that one call has had its answer.
    """

    def __init__(self, member: Member, backoff_s: float, monotonic: Callable[[], float]) -> None:
        """Connects at the first call."""
        self._channel = grpc.aio.insecure_channel(member.shard_address, options=_OPTIONS)
        self._stub: shard_grpc.ShardServiceAsyncStub = shard_grpc.ShardServiceStub(self._channel)
        self.lookup = RemoteLookup(self._stub, member.instance, monotonic)
        self._backoff_s = backoff_s
        self._monotonic = monotonic
        self._failed: dict[Shard | None, float] = {}

    def usable(self, place: Shard) -> bool:
        """Whether to ask this peer before others for a partition."""
        return not self._failed or (self._tries_again(None) and self._tries_again(place))

    def failed(self, place: Shard | None) -> None:
        """Notes that the peer does not serve a partition now, or, for None, that it does not answer at all."""
        self._failed[place] = self._monotonic() + self._backoff_s

    def answered(self, place: Shard) -> None:
        """Notes that the peer has answered for a partition."""
        if self._failed:
            self._failed.pop(None, None)
            self._failed.pop(place, None)

    async def partitions(self, timeout_s: float) -> Collection[shard.Partition] | None:
        """Returns how far the peer's partitions are; None when it does not answer in time."""
        try:
            answer = await self._stub.ListPartitions(shard.ListPartitionsRequest(), timeout=timeout_s)
        except grpc.aio.AioRpcError:
            return None
        return answer.partitions

    async def close(self) -> None:
        """Closes the connection."""
        await self._channel.close()

    def _tries_again(self, place: Shard | None) -> bool:
        until = self._failed.get(place)
        if until is None:
            return True
        if self._monotonic() < until:
            return False
        self.failed(place)
        return True


class Peers:
    """One Peer per member, connected for as long as the process lives or until `keep` drops it."""

    def __init__(self, backoff_s: float, monotonic: Callable[[], float]) -> None:
        """Knows nobody yet."""
        self._backoff_s = backoff_s
        self._monotonic = monotonic
        self._peers: dict[Member, Peer] = {}

    def of(self, member: Member) -> Peer:
        """Returns the peer of a member."""
        peer = self._peers.get(member)
        if peer is None:
            peer = self._peers[member] = Peer(member, self._backoff_s, self._monotonic)
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
        """Returns, for each partition of a member, whether it serves and how fresh it is."""
        partitions = await self.of(member).partitions(timeout_s) or ()
        return {(each.store, each.freshness.partition): (each.serving, each.freshness) for each in partitions}
