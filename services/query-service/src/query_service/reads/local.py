"""Reads the stores of this instance, and nothing else."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from typing_extensions import override

from query_service.cluster.view import View
from query_service.errors import AbsentError, ColdError, LookupFailedError
from query_service.reads import Page, Reads, batch, page_token, scan
from query_service.reads.batch import MAX_KEYS_AT_ONCE, Part, Pieces
from query_service.reads.messages import absence_of, fill_position, freshness_message
from query_service.reads.replica_reads import check_history, shortfall, version_at, wait_until_met
from query_service.reads.request_checks import Limits, Room, checked_key
from query_service.reads.wire import FIRST, SECOND, epoch_bytes, freshness_bytes, header_fields, state_bytes, varint
from query_service.storage.replica import Replica
from query_service.storage.store_keys import DELETED, FLAGS_AT, HEADER_SIZE, MAX_OFFSET, UNTIMED, offset_of, row_key
from statecast.position import Position
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api

_GATHER_S = 0.003


def value_of(
    replica: Replica, request: api.GetStateRequest, stored_key: bytes, instance: str, *, may_block: bool = False
) -> bytes:
    """Returns the encoded GetStateResponse of a key as it is now.

    Raises AbsentError, NoHistoryError and BeforeHistoryError for `as_of`, else as Replica.get does, or, where it
    `may_block`, as Replica.read does.
    """
    freshness = replica.freshness(instance)  # before the value, so that it never claims more than was read
    if request.HasField("as_of"):
        check_history(replica.definition)
        value = version_at(replica, stored_key, (request.as_of.seconds, request.as_of.nanos))
    else:
        value = replica.read([stored_key])[0] if may_block else replica.get(stored_key)
    if value is None or value[FLAGS_AT] & DELETED:
        absence = absence_of(value, freshness)
        raise AbsentError.of(request.store, request.key.group, absence, freshness_message(freshness))
    state = state_bytes(stored_key, epoch_bytes(freshness.epoch), header_fields(value), value)
    fresh = freshness_bytes(freshness)
    return b"".join((FIRST, varint(len(state)), state, SECOND, varint(len(fresh)), fresh))


def meets_bounds(
    replica: Replica,
    request: api.GetStateRequest | api.BatchGetStatesRequest,
) -> bool:
    """Returns whether the replica is fresh enough for a request now. Raises BoundsError when it never will be."""
    return not request.HasField("bounds") or shortfall(replica, request.bounds) is None


@dataclass(eq=False)
class LocalReads(Reads):
    """Reads the partitions that this instance serves; raises NotServedError for all others."""

    view: View
    limits: Limits
    monotonic: Callable[[], float]

    @override
    def get(self, request: api.GetStateRequest, deadline: float) -> bytes | Awaitable[bytes]:
        stored_key = checked_key(request.key)
        replica = self.view.replica(*self.view.shard_of(request.store, request.key.group))
        if not request.HasField("as_of") and meets_bounds(replica, request):
            with suppress(ColdError):
                return value_of(replica, request, stored_key, self.view.me.instance)
        return self._get_later(replica, request, stored_key, deadline)

    async def _get_later(
        self, replica: Replica, request: api.GetStateRequest, stored_key: bytes, deadline: float
    ) -> bytes:
        if request.HasField("bounds"):
            await wait_until_met(replica, request.bounds, deadline, self.monotonic)
        instance = self.view.me.instance
        return await asyncio.to_thread(value_of, replica, request, stored_key, instance, may_block=True)

    @override
    def batch(self, request: api.BatchGetStatesRequest, deadline: float) -> bytes | Awaitable[bytes]:
        pieces = Pieces(self.limits.room())
        if len(request.keys) > MAX_KEYS_AT_ONCE or batch.wait_s_of(request) > 0:
            return self._batch_later(request, deadline)
        parts = batch.split(request, self.view, pieces)
        for part in parts:
            try:
                replica = self.view.replica(request.store, part.partition)
                if not (batch.is_in_memory(replica, request, part) and meets_bounds(replica, request)):
                    return self._batch_later(request, deadline)
                self.read_part(replica, request, part, pieces)
            except LookupFailedError as failure:
                if len(parts) == 1:
                    raise
                pieces.fail(part, failure)
        return pieces.encoded()

    def read_part(self, replica: Replica, request: api.BatchGetStatesRequest, part: Part, pieces: Pieces) -> None:
        """Adds the news of a part of a batch, in any thread. Raises NotServedError; then nothing has been added."""
        batch.read_part(replica, request, part, self.view.me.instance, self.limits, pieces)

    async def _batch_later(self, request: api.BatchGetStatesRequest, deadline: float) -> bytes:
        """Reads in a thread where it takes long, and waits for bounds and news."""
        pieces = Pieces(self.limits.room())
        parts = await batch.unblocking(len(request.keys), lambda: batch.split(request, self.view, pieces))

        async def look_up(part: Part, wait_s: float) -> Pieces:
            try:
                return await self.look_up(request, part, wait_s, deadline, pieces.room)
            except LookupFailedError as failure:
                if len(parts) == 1:
                    raise
                failed = Pieces(pieces.room)
                failed.fail(part, failure)
                return failed

        await batch.look(parts, look_up, batch.wait_s_of(request), lambda: deadline - self.monotonic(), pieces)
        return pieces.encoded()

    async def look_up(
        self, request: api.BatchGetStatesRequest, part: Part, wait_s: float, deadline: float, room: Room
    ) -> Pieces:
        """Returns the news of a part, waiting for the first change of a key or range.

        The bounds count when it answers, too: a replica may fall behind while a call waits. Raises as `read` does, and
        as `wait_until_met`.
        """
        replica = self.view.replica(request.store, part.partition)

        async def look() -> Pieces:
            if request.HasField("bounds"):
                await wait_until_met(replica, request.bounds, deadline, self.monotonic)
            return await self.read(replica, request, part, room)

        until = min(self.monotonic() + wait_s, deadline)
        if until <= self.monotonic():
            return await look()
        keys, groups = (
            {key for _, key, _, _ in part.keys},
            {request.ranges[index].group.encode() for index in part.ranges},
        )
        with replica.changes.watch(keys, groups) as watcher:
            pieces = await look()
            while not pieces.news and await watcher.wait(until - self.monotonic()):
                await asyncio.sleep(_GATHER_S)
                pieces = await look()
            return pieces if pieces.news else await look()

    async def read(self, replica: Replica, request: api.BatchGetStatesRequest, part: Part, room: Room) -> Pieces:
        """Returns the news of a part of a batch, read in a thread where it takes long. Raises NotServedError."""
        pieces = Pieces(room)
        if len(request.keys) <= MAX_KEYS_AT_ONCE and batch.is_in_memory(replica, request, part):
            self.read_part(replica, request, part, pieces)
        else:
            await asyncio.to_thread(self.read_part, replica, request, part, pieces)
        return pieces

    @override
    async def scan(self, request: api.ScanStatesRequest, deadline: float, partition: int | None = None) -> Page:
        """Scans; without group and partition all partitions of the store, or, with `local_only`, those that it owns."""
        if partition is None and not request.group:
            return await scan.store_page(request, self.view, self.limits, lambda part, n: self.scan(part, deadline, n))
        cursor = page_token.decode_scan(request, request.page_token)
        number = self.view.shard_of(request.store, request.group)[1] if partition is None else partition
        replica = self.view.replica(request.store, number)
        if request.HasField("bounds"):
            await wait_until_met(replica, request.bounds, deadline, self.monotonic)
        freshness = replica.freshness(self.view.me.instance)
        # In a thread, as all reads of many rows: while the event loop stands still, peers take the instance for dead.
        rows = self.limits.rows(request.page_size)
        return await asyncio.to_thread(scan.partition_page, request, replica, cursor, rows, freshness)

    @override
    async def versions(self, request: api.ListVersionsRequest, deadline: float) -> bytes:
        replica = self.view.replica(*self.view.shard_of(request.store, request.key.group))
        check_history(replica.definition)
        before_offset = page_token.decode_versions(request, replica.topic.epoch)
        if request.HasField("bounds"):
            await wait_until_met(replica, request.bounds, deadline, self.monotonic)
        return await asyncio.to_thread(self._versions, replica, request, before_offset)

    def _versions(self, replica: Replica, request: api.ListVersionsRequest, before_offset: int) -> bytes:
        key, freshness = request.key, replica.freshness(self.view.me.instance)
        response = api.ListVersionsResponse(freshness=freshness_message(freshness))
        size, used, next_offset = self.limits.rows(request.page_size), 0, before_offset
        for value in replica.versions(row_key(key.group, key.sort, key.member), before_offset):
            if len(response.versions) == size or (response.versions and used + len(value) > scan.MAX_PAGE_BYTES):
                response.next_page_token = page_token.encode_versions(request, freshness.epoch, next_offset)
                break
            next_offset = offset_of(value)
            used += len(value)
            _fill_version(response.versions.add(), freshness.epoch, value)
        if not response.versions and before_offset == MAX_OFFSET:
            raise AbsentError.of(request.store, key.group, absence_of(None, freshness), freshness_message(freshness))
        return response.SerializeToString()


def _fill_version(version: query_pb2.Version, epoch: int, value: bytes) -> None:
    _, _, offset, seconds, nanos, flags = header_fields(value)
    fill_position(version.position, Position(epoch, offset))
    if not flags & UNTIMED:
        version.commit_time.seconds, version.commit_time.nanos = seconds, nanos
    version.deleted = bool(flags & DELETED)
    version.payload = value[HEADER_SIZE:]
