"""Reads of all partitions: local ones are answered at once, the others by whichever replica answers."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from typing_extensions import override

from query_service.cluster.shard_map import StorePartition
from query_service.cluster.view import View
from query_service.errors import (
    BoundsError,
    LookupFailedError,
    NotServedError,
    TimedOutError,
)
from query_service.reads import Page, Reads, batch, page_token, scan
from query_service.reads.batch import MAX_KEYS_AT_ONCE, Part, Pieces
from query_service.reads.coalesced import CoalescedGets, Get
from query_service.reads.dispatch import Call, Dispatch
from query_service.reads.local import LocalReads, meets_bounds, value_of
from query_service.reads.replica_reads import check_history
from query_service.reads.request_checks import Limits, Room, checked_key
from query_service.reads.route import Route
from query_service.storage.replica import Replica
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api


@dataclass(eq=False)
class RoutedReads(Reads):
    """Reads all partitions of all stores. Raises UnknownStoreError for a store that there is not.

    A read that this instance is the first to be asked for is answered here at once; others go through the Dispatch.
    Gets, and the parts of a batch, go to a peer together; those that it does not answer are asked for by partition.
    """

    view: View
    local: LocalReads
    dispatch: Dispatch
    limits: Limits
    check_room: Callable[[int], None]
    """Raises OverloadedError when there is no memory for so many bytes."""
    _gets: CoalescedGets = field(init=False)

    def __post_init__(self) -> None:
        self._gets = CoalescedGets(
            self._gets_together, self._gets_of_partition, self._get_alone, self.check_room, self.limits.batch_keys
        )

    @override
    def get(self, request: api.GetStateRequest, deadline: float) -> bytes | Awaitable[bytes]:
        key = checked_key(request.key)
        shard = self.view.shard_of(request.store, request.key.group)
        own = self.dispatch.preference.own(shard)
        if own is None:
            return self._passed_on(shard, request, key, deadline)
        if request.HasField("as_of") or not _is_ready(own, request):
            return self._get_alone(request, deadline)
        try:
            return value_of(own, request, key, self.view.me.instance)
        except NotServedError:  # it was closed, has begun anew, or waits for the disk
            return self._get_alone(request, deadline)

    def _passed_on(
        self, shard: StorePartition, request: api.GetStateRequest, key: bytes, deadline: float
    ) -> bytes | Awaitable[bytes]:
        """Answers a get that another instance is asked for first; gets that wait or look back go alone."""
        if request.HasField("as_of"):
            check_history(self.view.store(request.store))
            return self._get_alone(request, deadline)
        if request.HasField("bounds"):
            return self._get_alone(request, deadline)
        self._check_time(deadline)
        holder = self.dispatch.preference.holder(shard)
        if isinstance(holder, Replica):  # the peers have failed lately
            with suppress(NotServedError):
                return value_of(holder, request, key, self.view.me.instance)
        if not isinstance(holder, Route):
            return self._get_alone(request, deadline)
        return self._gets.get(
            holder, shard, request, deadline, min(self.dispatch.peer_timeout_s, deadline - self.dispatch.monotonic())
        )

    async def _get_alone(self, request: api.GetStateRequest, deadline: float) -> bytes:
        async def call(reads: Reads, until: float) -> bytes:
            answer = reads.get(request, until)
            return answer if isinstance(answer, bytes) else await answer

        shard = self.view.shard_of(request.store, request.key.group)
        return await self.dispatch.first_answer(shard, call, deadline, "get", bounds=_bounds_of(request))

    async def _gets_together(self, route: Route, gets: Sequence[Get]) -> api.BatchGetStatesResponse:
        places = {get.place for get in gets}
        return await self.dispatch.of_route(route, _gets_call(gets), _first_deadline(gets), "get", places)

    async def _gets_of_partition(self, gets: Sequence[Get]) -> api.BatchGetStatesResponse:
        return await self.dispatch.first_answer(gets[0].place, _gets_call(gets), _first_deadline(gets), "get")

    @override
    def batch(self, request: api.BatchGetStatesRequest, deadline: float) -> bytes | Awaitable[bytes]:
        if len(request.keys) > MAX_KEYS_AT_ONCE or batch.wait_s_of(request) > 0:
            return self._batch_later(request, deadline)
        pieces = Pieces(self.limits.room())
        parts = batch.split(request, self.view, pieces)
        holders = self._holders(request, parts, deadline)
        here: list[Replica] = []
        for holder, part in zip(holders, parts, strict=True):
            if not isinstance(holder, Replica) or not batch.is_in_memory(holder, request, part):
                return self._joined(request, parts, holders, pieces, deadline)
            here.append(holder)
        for read, (replica, part) in enumerate(zip(here, parts, strict=True)):
            try:
                self.local.read_part(replica, request, part, pieces)
            except NotServedError:  # it was closed, or has begun anew
                return self._joined(request, parts[read:], [None] * len(parts[read:]), pieces, deadline)
        return self._counted(request, pieces)

    def _holders(
        self, request: api.BatchGetStatesRequest, parts: Sequence[Part], deadline: float
    ) -> list[Replica | Route | None]:
        """Returns who is to read each part; None for those that are asked for alone, as all that wait for bounds are.

        Raises TimedOutError.
        """
        holders: list[Replica | Route | None] = []
        for part in parts:
            shard = request.store, part.partition
            holder: Replica | Route | None = self.dispatch.preference.own(shard)
            if request.HasField("bounds"):
                holder = holder if isinstance(holder, Replica) and _is_ready(holder, request) else None
            elif holder is None:
                self._check_time(deadline)
                holder = self.dispatch.preference.holder(shard)
            holders.append(holder)
        return holders

    async def _batch_later(self, request: api.BatchGetStatesRequest, deadline: float) -> bytes:
        """Splits large batches in a thread; waits for news."""
        pieces, wait_s = Pieces(self.limits.room()), batch.wait_s_of(request)
        monotonic = self.dispatch.monotonic
        parts = await batch.unblocking(len(request.keys), lambda: batch.split(request, self.view, pieces))
        if not wait_s or pieces.news:
            return await self._joined(request, parts, self._holders(request, parts, deadline), pieces, deadline)

        async def look_up(part: Part, wait_s: float) -> Pieces:
            own, until = self.dispatch.preference.own((request.store, part.partition)), monotonic() + wait_s
            if own is not None and _is_ready(own, request):
                given_up_at = min(until + self.dispatch.peer_timeout_s, deadline)
                with suppress(NotServedError, BoundsError):  # it was closed, has begun anew, or has fallen behind
                    return await self.local.look_up(request, part, wait_s, given_up_at, pieces.room)
            return await self._part_alone(request, part, until - monotonic(), deadline, pieces.room)

        await batch.look(parts, look_up, wait_s, lambda: deadline - monotonic(), pieces)
        return self._counted(request, pieces)

    async def _joined(
        self,
        request: api.BatchGetStatesRequest,
        parts: Sequence[Part],
        holders: Sequence[Replica | Route | None],
        pieces: Pieces,
        deadline: float,
    ) -> bytes:
        """Reads the parts that lie here while the peers read the rest, each route all its parts in one call.

        A part that is not answered so is asked for alone, and fails its own keys and ranges alone.
        """
        elsewhere, left = dict[Route, list[Part]](), list[Part]()
        for part, holder in zip(parts, holders, strict=True):
            if isinstance(holder, Route):
                elsewhere.setdefault(holder, []).append(part)
        calls = [asyncio.create_task(self._parts_of(request, *each, deadline)) for each in elsewhere.items()]
        try:
            await asyncio.sleep(0)  # so that the calls are on their way
            for part, holder in zip(parts, holders, strict=True):
                if not isinstance(holder, Route) and not await self._is_read_here(request, part, holder, pieces):
                    left.append(part)
            for answer, asked in zip(await asyncio.gather(*calls), elsewhere.values(), strict=True):
                left += asked if answer is None else pieces.join(answer, asked)
        finally:
            for call in calls:
                call.cancel()
        alone = (self._part_alone(request, part, 0.0, deadline, pieces.room) for part in left)
        for each in await asyncio.gather(*alone):
            pieces.take(each)
        return self._counted(request, pieces)

    async def _is_read_here(
        self, request: api.BatchGetStatesRequest, part: Part, holder: Replica | None, pieces: Pieces
    ) -> bool:
        """Adds the news of a part that this instance holds; False when another one has to be asked."""
        if holder is None:
            return False
        try:
            pieces.take(await self.local.read(holder, request, part, pieces.room))
        except NotServedError:
            return False
        return True

    async def _parts_of(
        self, request: api.BatchGetStatesRequest, route: Route, parts: Sequence[Part], deadline: float
    ) -> api.BatchGetStatesResponse | None:
        """Returns the answer of a route to some parts of a batch; None when there is none."""
        places = {(request.store, part.partition) for part in parts}
        call = _batch_call(batch.part_request(request, parts))
        try:
            return await self.dispatch.of_route(route, call, deadline, "batch", places)
        except LookupFailedError:  # each part finds out by itself which get fails
            return None

    async def _part_alone(
        self, request: api.BatchGetStatesRequest, part: Part, wait_s: float, deadline: float, room: Room
    ) -> Pieces:
        """Returns the news of one part, from any replica, or the failure of all its keys and ranges."""
        pieces, shard = Pieces(room), (request.store, part.partition)
        call = _batch_call(batch.part_request(request, [part], wait_s))
        try:
            answer = await self.dispatch.first_answer(shard, call, deadline, "batch", wait_s, _bounds_of(request))
        except LookupFailedError as failure:
            pieces.fail(part, failure)
        else:
            pieces.join(answer, [part])
        return pieces

    def _counted(self, request: api.BatchGetStatesRequest, pieces: Pieces) -> bytes:
        self.dispatch.metrics.batch_keys.inc(len(request.keys) + len(request.ranges))
        self.dispatch.metrics.batch_results.inc(pieces.news)
        return pieces.encoded()

    @override
    async def scan(self, request: api.ScanStatesRequest, deadline: float, partition: int | None = None) -> Page:
        """Returns a page. A request with `local_only` is answered here, and nowhere else."""
        if request.local_only:
            return await self.local.scan(request, deadline)
        if partition is None and not request.group:
            return await scan.store_page(request, self.view, self.limits, lambda part, n: self.scan(part, deadline, n))
        page_token.decode_scan(request, request.page_token)  # so that a bad token is refused here
        number = self.view.shard_of(request.store, request.group)[1] if partition is None else partition
        return await self.dispatch.first_answer(
            (request.store, number),
            lambda reads, until: reads.scan(request, until, partition),
            deadline,
            "scan",
            bounds=_bounds_of(request),
            needs=scan.features_of(request),
        )

    @override
    async def versions(self, request: api.ListVersionsRequest, deadline: float) -> bytes:
        check_history(self.view.store(request.store))
        shard = self.view.shard_of(request.store, request.key.group)
        return await self.dispatch.first_answer(
            shard, lambda reads, until: reads.versions(request, until), deadline, "versions", bounds=_bounds_of(request)
        )

    def _check_time(self, deadline: float) -> None:
        """Raises TimedOutError when nobody can be asked in time: it costs no peer its next try."""
        if self.dispatch.monotonic() >= deadline:
            raise TimedOutError("the deadline passed before an instance was asked")


def _batch_call(request: api.BatchGetStatesRequest) -> Call[api.BatchGetStatesResponse]:
    async def call(reads: Reads, until: float) -> api.BatchGetStatesResponse:
        return await batch.message_of(reads.batch(request, until))

    return call


def _gets_call(gets: Sequence[Get]) -> Call[api.BatchGetStatesResponse]:
    request = api.BatchGetStatesRequest(store=gets[0].request.store)
    for get in gets:
        request.keys.add().key.CopyFrom(get.request.key)
    return _batch_call(request)


def _first_deadline(gets: Sequence[Get]) -> float:
    return min(get.deadline for get in gets)


def _bounds_of(
    request: api.GetStateRequest | api.BatchGetStatesRequest | api.ScanStatesRequest | api.ListVersionsRequest,
) -> query_pb2.Bounds | None:
    return request.bounds if request.HasField("bounds") else None


def _is_ready(replica: Replica, request: api.GetStateRequest | api.BatchGetStatesRequest) -> bool:
    """Returns whether the replica need not be waited for to meet the bounds of a request."""
    try:
        return meets_bounds(replica, request)
    except BoundsError:  # another replica may have that incarnation of the topic
        return False
