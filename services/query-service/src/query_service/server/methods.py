"""The methods of the public QueryService, which reads wherever a key lies, and of the internal ShardService.

A method takes the bytes of a request, and the seconds until its caller's deadline. It returns the bytes of the response
at once, or a future of them where it has to wait; it raises a LookupFailedError, or the future does.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from types import CoroutineType
from typing import Any, NamedTuple, TypeVar

from google.protobuf.message import DecodeError, Message
from typing_extensions import override

from query_service.errors import InvalidRequestError, LookupFailedError, TooLargeError
from query_service.metrics import MethodCalls, Metrics, outcome_of
from query_service.reads import Reads, batch, request_checks
from query_service.reads.request_checks import Limits
from query_service.reads.scan import MAX_PAGE_BYTES
from query_service.reads.wire import FIRST, sized
from query_service.server.limits import MIN_CALL_BYTES, QUERY_BYTES, CallLimits, InFlight, capped, response_limit
from query_service.server.partition_listing import PartitionListing
from query_service.server.shard_channel import message_of
from query_service.server.shard_listing import ShardListing
from query_service.storage.checkpoints import MAX_PIECE_BYTES, Checkpoints, Pace
from statecast.query.v1 import query_service_pb2 as api
from statecast.shard.v1 import shard_service_pb2 as shard


class Later(NamedTuple):
    """A response that has to be waited for, how it is encoded, and the bytes that the work on it takes until then."""

    response: Awaitable[Any]
    encode: Callable[[Any], bytes]
    size: int = 0


Respond = Callable[[bytes, float | None], bytes | Later]

QUERY = api.DESCRIPTOR.services_by_name["QueryService"].full_name
SHARD = shard.DESCRIPTOR.services_by_name["ShardService"].full_name

_Request = TypeVar("_Request", bound=Message)


@dataclass(eq=False)
class Method:
    """A method of a service as a server calls it: it has memory while it waits, and is counted in `calls`, if any."""

    service: str
    name: str
    respond: Respond
    in_flight: InFlight
    calls: MethodCalls | None = None

    @property
    def path(self) -> str:
        return f"/{self.service}/{self.name}"

    def answer(self, request: bytes, left_s: float | None) -> "bytes | asyncio.Future[bytes]":
        """Answers a call. Holds nothing for an answer at once, nor for one that has come: the server does."""
        began, size, in_flight = perf_counter(), len(request) + MIN_CALL_BYTES, self.in_flight
        try:
            if size > in_flight.room:
                in_flight.check_room(size)
            answer = self.respond(request, left_s)
            if isinstance(answer, bytes) and size + len(answer) > in_flight.room:
                in_flight.check_room(size + len(answer))
        except LookupFailedError as failure:
            self._count(outcome_of(failure), began)
            raise
        if isinstance(answer, Later):
            return self._waiting(answer, began, size + answer.size)
        if self.calls is not None:
            self.calls.ended("ok", perf_counter() - began)
        return answer

    def _waiting(self, later: Later, began: float, size: int) -> "asyncio.Future[bytes]":
        """Returns the future of a response, which holds memory and is counted until then."""
        response = later.response
        if not isinstance(response, asyncio.Future):
            response = asyncio.ensure_future(self._encoded(later))
        self.in_flight.add(size)
        if self.calls is not None:
            self.calls.in_flight += 1
        response.add_done_callback(partial(self._ended, later, began, size))
        return response

    async def _encoded(self, later: Later) -> bytes:
        response = later.encode(await later.response)
        self.in_flight.check_room(len(response))
        return response

    def _ended(self, later: Later, began: float, size: int, response: "asyncio.Future[bytes]") -> None:
        self.in_flight.add(-size)
        if isinstance(later.response, CoroutineType):
            later.response.close()  # it was never begun when the caller has gone at once
        if self.calls is not None:
            self.calls.in_flight -= 1
        if response.cancelled():
            self._count("interrupted", began)
        else:  # also so that a failure counts as retrieved
            failure = response.exception()
            self._count("ok" if failure is None else outcome_of(failure), began)

    def _count(self, outcome: str, began: float) -> None:
        if self.calls is not None:
            self.calls.ended(outcome, perf_counter() - began)


def parsed(kind: type[_Request], encoded: bytes) -> _Request:
    """Returns the message. Raises InvalidRequestError."""
    try:
        return kind.FromString(encoded)
    except DecodeError as error:
        raise InvalidRequestError("the request is not a message of this call's type") from error


def _answer(response: bytes | Awaitable[Any], encode: Callable[[Any], bytes], size: int = 0) -> bytes | Later:
    return encode(response) if isinstance(response, bytes) else Later(response, encode, size)


def _waits(kind: type[_Request], call: Callable[[_Request], Awaitable[Message]]) -> Respond:
    """Returns the response to a method that takes a message and has to be waited for."""
    return lambda request, _: Later(call(parsed(kind, request)), lambda response: response.SerializeToString())


@dataclass(eq=False)
class ReadMethods:
    """The reads that both services have: requests are checked first."""

    reads: Reads
    query_limits: Limits
    limits: CallLimits

    def encode(self, response: bytes) -> bytes:
        """Returns the response of this service around an encoded response of the public one."""
        return response

    def get(self, request: api.GetStateRequest, left_s: float | None) -> bytes | Later:
        request_checks.check_known(request)
        request_checks.check_bounds(request)
        return _answer(self.reads.get(request, self.limits.deadline(left_s)), self.encode)

    def batch(
        self, request: api.BatchGetStatesRequest, left_s: float | None, encode: Callable[[bytes], bytes]
    ) -> bytes | Later:
        needed = QUERY_BYTES * (len(request.keys) + len(request.ranges))
        self.limits.in_flight.check_room(needed)
        request_checks.check_batch(request, self.query_limits)
        answer = self.reads.batch(request, self.limits.deadline(left_s, batch.wait_s_of(request)))
        return _answer(answer, lambda response: encode(batch.bytes_of(response)), needed)

    def scan(self, request: api.ScanStatesRequest, left_s: float | None, partition: int | None = None) -> Later:
        request_checks.check_scan(request)
        size = self._room_for_page(request.page_size)
        page = self.reads.scan(request, self.limits.deadline(left_s), partition)
        return Later(page, lambda page: self.encode(page.encoded()), size)

    def versions(self, request: api.ListVersionsRequest, left_s: float | None) -> Later:
        request_checks.check_versions(request)
        size = self._room_for_page(request.page_size)
        return Later(self.reads.versions(request, self.limits.deadline(left_s)), self.encode, size)

    def _room_for_page(self, rows: int) -> int:
        """Returns the bytes that a page holds while it is read. Raises OverloadedError when there are not so many."""
        size = min(MAX_PAGE_BYTES, QUERY_BYTES * self.query_limits.rows(rows))
        self.limits.in_flight.check_room(size)
        return size


@dataclass(eq=False)
class QueryMethods(ReadMethods):
    """The public methods."""

    listing: ShardListing
    metrics: Metrics

    def methods(self) -> Sequence[Method]:
        """Returns the methods for a server; all are counted."""
        responds: dict[str, Respond] = {
            "GetState": lambda request, left_s: self.get(parsed(api.GetStateRequest, request), left_s),
            "BatchGetStates": self._batch,
            "ScanStates": lambda request, left_s: self.scan(parsed(api.ScanStatesRequest, request), left_s),
            "ListVersions": lambda request, left_s: self.versions(parsed(api.ListVersionsRequest, request), left_s),
            "ListShards": lambda request, _: self._list_shards(parsed(api.ListShardsRequest, request)),
        }
        in_flight, calls = self.limits.in_flight, self.metrics.calls
        return [Method(QUERY, name, respond, in_flight, calls.of(name)) for name, respond in responds.items()]

    def _batch(self, request: bytes, left_s: float | None) -> bytes | Later:
        """Answers a batch; parts beyond the largest response fail key by key with RESOURCE_EXHAUSTED."""
        message = parsed(api.BatchGetStatesRequest, request)
        limit = min(response_limit(message), self.query_limits.answer_bytes)
        return self.batch(message, left_s, lambda response: capped(response, limit))

    def _list_shards(self, request: api.ListShardsRequest) -> Later:
        limit = response_limit(request)

        def encode(response: api.ListShardsResponse) -> bytes:
            encoded = response.SerializeToString()
            if len(encoded) > limit:
                way_out = "accept more by max_response_bytes, or name a store"
                raise TooLargeError(f"the shard map has {len(encoded)} bytes, above {limit}: {way_out}")
            return encoded

        return Later(self.listing.shards(request.store, request.known_version), encode)


@dataclass(eq=False)
class ShardMethods(ReadMethods):
    """The internal methods: they read this instance's own stores alone. Anyone who reaches the port may call them."""

    listing: PartitionListing
    checkpoints: Checkpoints
    pace: Pace

    def methods(self) -> Sequence[Method]:
        """Returns the methods for a server."""
        responds: dict[str, Respond] = {
            "GetState": lambda request, left_s: self.get(parsed(shard.GetStateRequest, request).query, left_s),
            "BatchGetStates": lambda request, left_s: self.batch(
                parsed(shard.BatchGetStatesRequest, request).query, left_s, self.encode
            ),
            "ScanStates": self._scan,
            "ListVersions": lambda request, left_s: self.versions(
                parsed(shard.ListVersionsRequest, request).query, left_s
            ),
            "DescribeMember": lambda _request, _left_s: self._describe_member(),
            "ListPartitions": self._list_partitions,
            "CreateCheckpoint": _waits(shard.CreateCheckpointRequest, self._create_checkpoint),
            "ReadCheckpoint": _waits(shard.ReadCheckpointRequest, self._read_checkpoint),
            "DeleteCheckpoint": _waits(shard.DeleteCheckpointRequest, self._delete_checkpoint),
        }
        return [Method(SHARD, name, respond, self.limits.in_flight) for name, respond in responds.items()]

    @override
    def encode(self, response: bytes) -> bytes:
        return sized(FIRST, response)  # the only field

    def _scan(self, request: bytes, left_s: float | None) -> Later:
        message = parsed(shard.ScanStatesRequest, request)
        partition = message.partition if message.HasField("partition") else None
        return self.scan(message.query, left_s, partition)

    def _describe_member(self) -> bytes:
        return shard.DescribeMemberResponse(member=message_of(self.listing.view.me)).SerializeToString()

    def _list_partitions(self, request: bytes, _left_s: float | None) -> bytes:
        known_version = parsed(shard.ListPartitionsRequest, request).known_version
        return self.listing.answer(known_version).SerializeToString()

    async def _create_checkpoint(self, request: shard.CreateCheckpointRequest) -> shard.CreateCheckpointResponse:
        replica = self.listing.view.replica(request.store, request.partition)
        return await asyncio.to_thread(self.checkpoints.create, replica)

    async def _read_checkpoint(self, request: shard.ReadCheckpointRequest) -> shard.ReadCheckpointResponse:
        length = min(request.length, MAX_PIECE_BYTES)
        await asyncio.sleep(self.pace.delay_s(length))
        return await asyncio.to_thread(
            self.checkpoints.read, request.checkpoint_id, request.file, request.offset, length
        )

    async def _delete_checkpoint(self, request: shard.DeleteCheckpointRequest) -> shard.DeleteCheckpointResponse:
        await asyncio.to_thread(self.checkpoints.delete, request.checkpoint_id)
        return shard.DeleteCheckpointResponse()
