"""Fakes and builders for unit tests; nothing in the service imports them."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from typing_extensions import override

from query_service.cluster.shard_map import Member
from query_service.cluster.view import View
from query_service.errors import LookupFailedError
from query_service.metrics import Metrics
from query_service.reads import Page, Reads, Row
from query_service.reads.batch import message_of
from query_service.reads.local import LocalReads
from query_service.reads.route import Preference
from query_service.reads.routed_peer import RoutedPeer
from query_service.server.grpcio_server import GrpcioServer
from query_service.server.limits import CallLimits, InFlight
from query_service.server.methods import Method
from query_service.storage.record import TOMBSTONE_HEADER, Headers, Record
from query_service.storage.replica import Replica
from query_service.storage.store import PartitionStore
from query_service.storage.store_directory import StoreDirectory
from query_service.storage.stores_file import StoreDefinition
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api
from statecast.query.v1.query_service_pb2 import (
    BatchGetStatesResponse,
    GetStateResponse,
    ListVersionsResponse,
    ScanStatesResponse,
)
from statecast.state.v1 import state_pb2


class ManualClock:
    """A clock that only tests move."""

    def __init__(self, now: float = 1000.0) -> None:
        """Starts at `now` seconds."""
        self.now = now

    def __call__(self) -> float:
        return self.now


@dataclass
class FakeRecord(Record):
    """A record as a consumer would return it."""

    record_key: bytes | None
    record_value: bytes | None
    record_offset: int = 0
    record_headers: Headers = field(default_factory=list)
    record_ms: int | None = None

    @override
    def key(self) -> bytes | None:
        return self.record_key

    @override
    def value(self) -> bytes | None:
        return self.record_value

    @override
    def headers(self) -> Headers:
        return self.record_headers

    @override
    def offset(self) -> int:
        return self.record_offset

    @override
    def timestamp(self) -> tuple[int, int]:
        return (0, -1) if self.record_ms is None else (1, self.record_ms)


def store_definition(name: str = "s", /, **fields: object) -> StoreDefinition:
    """Returns a store of a keyed topic, with these fields of the stores file."""
    return StoreDefinition.model_validate(
        {"name": name, "topic": "topic", "message": "statecast.orders.v1.Order", **fields}
    )


def encoded_state(sequence: int, payload: bytes = b"", epoch: int = 1, seconds: int = 1_700_000_000) -> bytes:
    """Returns an encoded StateRecord."""
    record = state_pb2.StateRecord(epoch=epoch, sequence=sequence, payload=payload)
    record.source.commit_time.seconds = seconds
    return record.SerializeToString()


def put(key: str, sequence: int, offset: int, payload: bytes = b"row", epoch: int = 1) -> FakeRecord:
    """Returns the record of a row; `key` has NUL between its parts."""
    return FakeRecord(key.encode(), encoded_state(sequence, payload, epoch), offset)


def tombstone(key: str, sequence: int, offset: int, epoch: int = 1) -> FakeRecord:
    """Returns the record of a deletion."""
    return FakeRecord(key.encode(), None, offset, [(TOMBSTONE_HEADER, encoded_state(sequence, epoch=epoch))])


def apply_row(view: View, store: str, key: str, sequence: int, offset: int, payload: bytes | None) -> None:
    """Applies a row, or a deletion for None, in the partition of its group; `key` has NUL between its parts."""
    replica = view.replicas[view.shard_of(store, key.split("\0")[0])]
    record = tombstone(key, sequence, offset) if payload is None else put(key, sequence, offset, payload)
    replica.apply([record], offset + 1)


def soon() -> float:
    """Returns a deadline that no read of a test reaches, by time.monotonic."""
    return time.monotonic() + 60


def preference_of(view: View, peer_of: Callable[[Member], RoutedPeer]) -> Preference:
    """Returns the preference that demotes a replica above 10 s of lag, and restores it below 2 s."""
    return Preference(view, peer_of, 10.0, 2.0)


def call_limits(metrics: Metrics, monotonic: Callable[[], float], in_flight_bytes: int = 1 << 20) -> CallLimits:
    """Returns limits of calls that no test reaches but in memory: 5 s without a deadline, 60 s in all."""
    return CallLimits(InFlight(in_flight_bytes, metrics), 5.0, 60.0, monotonic)


def serve(methods: Sequence[Method], port: int = 0) -> tuple[GrpcioServer, str]:
    """Returns a server of methods, at any port for 0, that listens once it is started, and its address."""
    server = GrpcioServer(1000, -1, None)
    server.add_methods(methods)
    return server, f"127.0.0.1:{server.bind_address(f'127.0.0.1:{port}')}"


class MessageReads:
    """Asks some Reads by the messages of the contract, and returns messages."""

    def __init__(self, reads: Reads) -> None:
        """Asks these."""
        self._reads = reads

    async def get(self, request: api.GetStateRequest, deadline: float) -> GetStateResponse:
        """Looks up one key."""
        answer = self._reads.get(request, deadline)
        return GetStateResponse.FromString(answer if isinstance(answer, bytes) else await answer)

    async def batch(self, request: api.BatchGetStatesRequest, deadline: float) -> BatchGetStatesResponse:
        """Looks up a batch."""
        return await message_of(self._reads.batch(request, deadline))

    async def scan(self, request: api.ScanStatesRequest, deadline: float) -> ScanStatesResponse:
        """Reads a page."""
        return ScanStatesResponse.FromString((await self._reads.scan(request, deadline)).encoded())

    async def versions(self, request: api.ListVersionsRequest, deadline: float) -> ListVersionsResponse:
        """Reads a page of versions."""
        answer = self._reads.versions(request, deadline)
        return ListVersionsResponse.FromString(answer if isinstance(answer, bytes) else await answer)


async def freshness_of_get(reads: Reads, until: float) -> query_pb2.Freshness:
    """Returns the freshness of a get, which says who has answered it."""
    return (await MessageReads(reads).get(api.GetStateRequest(store="s"), until)).freshness


class FakeReads(Reads):
    """Gives empty values, or fails in the same way, each time, and remembers its deadlines."""

    def __init__(self, answered_by: str, failure: LookupFailedError | None = None, *, forwarded: bool = False) -> None:
        """Answers as an instance of this name; `forwarded` as if over the internal service."""
        self.answered_by = answered_by
        self.failure = failure
        self.deadlines: list[float] = []
        self._forwarded = forwarded

    @property
    def as_local(self) -> LocalReads:
        """These reads, as those of the instance's own stores."""
        return cast("LocalReads", self)

    @override
    async def get(self, request: api.GetStateRequest, deadline: float) -> bytes:
        freshness = self._freshness(deadline)
        return api.GetStateResponse(state=query_pb2.State(key=request.key), freshness=freshness).SerializeToString()

    @override
    async def batch(self, request: api.BatchGetStatesRequest, deadline: float) -> api.BatchGetStatesResponse:
        freshness = self._freshness(deadline)
        states = [query_pb2.State(key=each.key) for each in request.keys]
        results = [query_pb2.KeyResult(index=index, state=state) for index, state in enumerate(states)]
        return api.BatchGetStatesResponse(results=results, freshness=[freshness])

    @override
    async def scan(self, request: api.ScanStatesRequest, deadline: float, partition: int | None = None) -> Page:
        key = request.group.encode()
        row = Row(key, query_pb2.State(key=state_pb2.StateKey(group=request.group)).SerializeToString())
        return Page([row], "", self._freshness(deadline, partition or 0))

    @override
    async def versions(self, request: api.ListVersionsRequest, deadline: float) -> bytes:
        freshness = self._freshness(deadline)
        return api.ListVersionsResponse(versions=[query_pb2.Version()], freshness=freshness).SerializeToString()

    def _freshness(self, deadline: float, partition: int = 0) -> query_pb2.Freshness:
        self.deadlines.append(deadline)
        if self.failure is not None:
            raise self.failure
        return query_pb2.Freshness(partition=partition, answered_by=self.answered_by, forwarded=self._forwarded)


class GatedReads(FakeReads):
    """Answers once its gate is open, and remembers which calls were cancelled."""

    def __init__(self, answered_by: str) -> None:
        """Is open at first."""
        super().__init__(answered_by, forwarded=True)
        self.gate = asyncio.Event()
        self.gate.set()
        self.cancelled = 0

    @override
    async def get(self, request: api.GetStateRequest, deadline: float) -> bytes:
        result = await super().get(request, deadline)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return result


class FakePeers:
    """Peers that are not connected to anything."""

    def __init__(self, reads: dict[Member, FakeReads], clock: Callable[[], float]) -> None:
        """Has one peer for each of the reads, which backs off for a second."""
        self.reads = reads
        self._peers = {member: RoutedPeer(each, 1.0, clock) for member, each in reads.items()}

    def of(self, member: Member) -> RoutedPeer:
        """Returns the peer of a member."""
        return self._peers[member]


OpenDirectory = Callable[..., StoreDirectory]
OpenReplica = Callable[..., Replica]
OpenStore = Callable[..., PartitionStore]
