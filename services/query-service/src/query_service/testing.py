"""Fakes and builders for unit tests; nothing in the service imports them."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from query_service.cluster.peer_memory import PeerMemory
from query_service.cluster.shard_map import Member
from query_service.cluster.view import View
from query_service.errors import LookupFailedError
from query_service.lookups.lookup import Lookup
from query_service.storage.record import TOMBSTONE_HEADER, Headers
from query_service.storage.store_definition import StoreDefinition
from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1 import state_pb2


class ManualClock:
    """A clock that stands still until it is told to go on."""

    def __init__(self, now: float = 1000.0) -> None:
        """Starts at `now` seconds."""
        self.now = now

    def __call__(self) -> float:
        """Returns the time."""
        return self.now


@dataclass
class FakeRecord:
    """A record as a consumer would hand it over."""

    record_key: bytes | None
    record_value: bytes | None
    record_offset: int = 0
    record_headers: Headers = field(default_factory=list)
    record_ms: int | None = None

    def key(self) -> bytes | None:
        """The record's key."""
        return self.record_key

    def value(self) -> bytes | None:
        """The record's value."""
        return self.record_value

    def headers(self) -> Headers:
        """The record's headers."""
        return self.record_headers

    def offset(self) -> int:
        """The record's offset."""
        return self.record_offset

    def timestamp(self) -> tuple[int, int]:
        """The kind of the record's time, and the time."""
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
    host = view.hosts[store, view.partition_of(store, key.split("\0")[0])]
    record = tombstone(key, sequence, offset) if payload is None else put(key, sequence, offset, payload)
    host.apply([record], offset + 1)


class FakeLookup:
    """A Lookup that gives the same answer, or fails in the same way, each time, and remembers its deadlines."""

    def __init__(self, answered_by: str, failure: LookupFailedError | None = None) -> None:
        """Answers as an instance of this name."""
        self.answered_by = answered_by
        self.failure = failure
        self.deadlines: list[float] = []

    async def get(self, request: query.GetStateRequest, deadline: float) -> query.GetStateResponse:
        """See Lookup."""
        self._note(deadline)
        answer = query.GetStateResponse()
        answer.state.key.CopyFrom(request.key)
        answer.freshness.answered_by = self.answered_by
        return answer

    async def batch(self, request: query.BatchGetStatesRequest, deadline: float) -> query.BatchGetStatesResponse:
        """See Lookup."""
        self._note(deadline)
        answer = query.BatchGetStatesResponse()
        answer.freshness.add(answered_by=self.answered_by)
        for index, each in enumerate(request.keys):
            answer.results.add(index=index).state.key.CopyFrom(each.key)
        return answer

    async def scan(
        self, request: query.ScanStatesRequest, deadline: float, partition: int | None = None
    ) -> query.ScanStatesResponse:
        """See Lookup."""
        self._note(deadline)
        answer = query.ScanStatesResponse()
        answer.states.add().key.group = request.group
        answer.freshness.partition = partition or 0
        answer.freshness.answered_by = self.answered_by
        return answer

    async def versions(self, request: query.ListVersionsRequest, deadline: float) -> query.ListVersionsResponse:
        """See Lookup."""
        self._note(deadline)
        answer = query.ListVersionsResponse()
        answer.versions.add(payload=request.key.group.encode())
        answer.freshness.answered_by = self.answered_by
        return answer

    def _note(self, deadline: float) -> None:
        self.deadlines.append(deadline)
        if self.failure is not None:
            raise self.failure


class GatedLookup(FakeLookup):
    """Answers once its gate is open, and remembers which calls were cancelled."""

    def __init__(self, answered_by: str) -> None:
        """Is open at first."""
        super().__init__(answered_by)
        self.gate = asyncio.Event()
        self.gate.set()
        self.cancelled = 0

    async def get(self, request: query.GetStateRequest, deadline: float) -> query.GetStateResponse:
        """See Lookup."""
        self._note(deadline)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return await super().get(request, deadline)


class FakePeer(PeerMemory):
    """A peer that answers with a lookup of choice."""

    def __init__(self, lookup: Lookup, clock: Callable[[], float]) -> None:
        """Backs off for a second."""
        super().__init__(1.0, clock)
        self.lookup = lookup


class FakePeers:
    """Peers that are not connected to anything."""

    def __init__(self, lookups: dict[Member, FakeLookup], clock: Callable[[], float]) -> None:
        """Has one peer per lookup."""
        self.lookups = lookups
        self._peers = {member: FakePeer(lookup, clock) for member, lookup in lookups.items()}

    def of(self, member: Member) -> FakePeer:
        """Returns the peer of a member."""
        return self._peers[member]
