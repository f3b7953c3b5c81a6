"""Fakes and builders for unit tests; nothing in the service imports them."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from typing_extensions import override

from query_service.cluster.shard_map import Member
from query_service.cluster.view import View
from query_service.errors import LookupFailedError
from query_service.lookups import (
    BatchQuery,
    BatchResult,
    GetQuery,
    GetResult,
    Lookup,
    PageResult,
    Row,
    ScanQuery,
    VersionsQuery,
    VersionsResult,
)
from query_service.lookups.preference import Preference
from query_service.lookups.routed_peer import RoutedPeer
from query_service.metrics import Metrics
from query_service.serving import messages, responses
from query_service.serving.call_limits import CallLimits, InFlight
from query_service.storage.progress import Freshness
from query_service.storage.record import TOMBSTONE_HEADER, Headers, Record
from query_service.storage.store_keys import HEADER, UNTIMED
from query_service.storage.stores_file import StoreDefinition
from statecast.query.v1 import query_service_pb2
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
    """Returns a store of a keyed topic, or of what the fields of the stores file say."""
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
    replica = view.replicas[store, view.partition_of(store, key.split("\0")[0])]
    record = tombstone(key, sequence, offset) if payload is None else put(key, sequence, offset, payload)
    replica.apply([record], offset + 1)


def preference_of(view: View, peer_of: Callable[[Member], RoutedPeer]) -> Preference:
    """Returns the preference that demotes a replica above 10 s of lag, and restores it below 2 s."""
    return Preference(view, peer_of, 10.0, 2.0)


def call_limits(metrics: Metrics, monotonic: Callable[[], float], in_flight_bytes: int = 1 << 20) -> CallLimits:
    """Returns limits of calls that no test reaches but in memory: 5 s without a deadline, 60 s in all, 1000 bytes."""
    return CallLimits(InFlight(in_flight_bytes, metrics), 5.0, 60.0, 1000, monotonic)


class MessageLookup:
    """Asks a Lookup by the messages of the contract, as a servicer does."""

    def __init__(self, lookup: Lookup) -> None:
        """Asks this Lookup."""
        self._lookup = lookup

    async def get(self, request: query_service_pb2.GetStateRequest, deadline: float) -> GetStateResponse:
        """Looks up one key."""
        query = messages.get_query(request)
        return responses.fill_get_response(GetStateResponse(), query, await self._lookup.get(query, deadline))

    async def batch(self, request: query_service_pb2.BatchGetStatesRequest, deadline: float) -> BatchGetStatesResponse:
        """Looks up a batch."""
        query = messages.batch_query(request)
        return responses.fill_batch_response(BatchGetStatesResponse(), query, await self._lookup.batch(query, deadline))

    async def scan(self, request: query_service_pb2.ScanStatesRequest, deadline: float) -> ScanStatesResponse:
        """Reads a page."""
        result = await self._lookup.scan(messages.scan_query(request), deadline)
        return responses.fill_scan_response(ScanStatesResponse(), result)

    async def versions(self, request: query_service_pb2.ListVersionsRequest, deadline: float) -> ListVersionsResponse:
        """Reads a page of versions."""
        result = await self._lookup.versions(messages.versions_query(request), deadline)
        return responses.fill_versions_response(ListVersionsResponse(), result)


class FakeLookup(Lookup):
    """A Lookup that gives the same result, or fails in the same way, each time, and remembers its deadlines."""

    def __init__(self, answered_by: str, failure: LookupFailedError | None = None, *, forwarded: bool = False) -> None:
        """Answers as an instance of this name; `forwarded` as if over the internal service."""
        self.answered_by = answered_by
        self.failure = failure
        self.deadlines: list[float] = []
        self._forwarded = forwarded

    @override
    async def get(self, query: GetQuery, deadline: float) -> GetResult:
        return GetResult(self._value, self._freshness(deadline))

    @override
    async def batch(self, query: BatchQuery, deadline: float) -> BatchResult:
        freshness = self._freshness(deadline)
        return BatchResult([(index, 0, self._value) for index in range(len(query.keys))], [], [freshness])

    @override
    async def scan(self, query: ScanQuery, deadline: float, partition: int | None = None) -> PageResult:
        return PageResult([Row(query.group.encode(), 0, self._value, 0)], "", self._freshness(deadline, partition or 0))

    @override
    async def versions(self, query: VersionsQuery, deadline: float) -> VersionsResult:
        return VersionsResult([self._value], "", self._freshness(deadline))

    @property
    def _value(self) -> bytes:
        return HEADER.pack(0, 0, 0, 0, 0, UNTIMED)

    def _freshness(self, deadline: float, partition: int = 0) -> Freshness:
        self.deadlines.append(deadline)
        if self.failure is not None:
            raise self.failure
        return Freshness(partition, 0, 0, 0, 0, self.answered_by, self._forwarded)


class GatedLookup(FakeLookup):
    """Answers once its gate is open, and remembers which calls were cancelled."""

    def __init__(self, answered_by: str) -> None:
        """Is open at first."""
        super().__init__(answered_by, forwarded=True)
        self.gate = asyncio.Event()
        self.gate.set()
        self.cancelled = 0

    @override
    async def get(self, query: GetQuery, deadline: float) -> GetResult:
        result = await super().get(query, deadline)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return result


class FakePeers:
    """Peers that are not connected to anything."""

    def __init__(self, lookups: dict[Member, FakeLookup], clock: Callable[[], float]) -> None:
        """Has one peer per lookup, which backs off for a second."""
        self.lookups = lookups
        self._peers = {member: RoutedPeer(lookup, 1.0, clock) for member, lookup in lookups.items()}

    def of(self, member: Member) -> RoutedPeer:
        """Returns the peer of a member."""
        return self._peers[member]
