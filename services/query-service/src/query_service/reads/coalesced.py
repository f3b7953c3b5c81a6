"""Gets that are passed on: those that are in flight together are one batch to a peer."""

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from copy import copy
from typing import NamedTuple, TypeAlias

from query_service.cluster.shard_map import StorePartition
from query_service.errors import (
    AbsentError,
    InvalidRequestError,
    LookupFailedError,
    OverloadedError,
    PeerOverloadedError,
)
from query_service.reads.route import Route
from query_service.reads.wire import FIRST, SECOND, sized
from statecast.coalescing import Coalescer
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api

_MAX_GETS = 128  # of one batch: their answers wait for each other
_MAX_CALLS = 2  # in flight to one route: with more the batches fall apart, with one the peer stands idle in between
_NOTHING = query_pb2.Freshness()

_Response: TypeAlias = bytes | LookupFailedError | None


class Get(NamedTuple):
    """A get that waits for its response."""

    place: StorePartition
    request: api.GetStateRequest
    deadline: float


_Group: TypeAlias = tuple[str, Route, int]
"""Store, route, and the power of two of the time left: who has little time shortens the call for few others."""


class CoalescedGets:
    """Gets of one turn of the event loop go out together at its end, as a Coalescer says."""

    def __init__(
        self,
        together: Callable[[Route, Sequence[Get]], Coroutine[None, None, api.BatchGetStatesResponse]],
        of_partition: Callable[[Sequence[Get]], Coroutine[None, None, api.BatchGetStatesResponse]],
        alone: Callable[[api.GetStateRequest, float], Coroutine[None, None, bytes]],
        check_room: Callable[[int], None],
        max_keys: int,
    ) -> None:
        """`together` asks a route for many keys at once. Unless it is busy, `of_partition` asks any replica for those
        of a partition that it does not answer, and gets that are still open go `alone`.

        So a failure costs a call for each partition, not for each get.

        `check_room` raises OverloadedError when there is no memory for responses of so many bytes.
        """
        self._together = together
        self._of_partition = of_partition
        self._check_room = check_room
        self._coalescer: Coalescer[_Group, Get, bytes] = Coalescer(
            lambda _, get: alone(get.request, get.deadline),
            self._look_up,
            max_batch=min(_MAX_GETS, max_keys),
            max_in_flight=_MAX_CALLS,
        )

    def get(
        self, route: Route, place: StorePartition, request: api.GetStateRequest, deadline: float, left_s: float
    ) -> "asyncio.Future[bytes]":
        """Passes a get on; `left_s` is how long a peer may take. The future has Reads.get's result."""
        return self._coalescer.result((request.store, route, math.frexp(left_s)[1]), Get(place, request, deadline))

    async def _look_up(self, group: _Group, gets: Sequence[Get]) -> Sequence[_Response]:
        store, route, _ = group
        try:
            responses = _responses(store, gets, await self._together(route, gets))
        except PeerOverloadedError:  # by partition, they would be many calls in place of the one that it refused
            raise
        except LookupFailedError:  # each partition finds out by itself which get fails
            responses = [None] * len(gets)
        await self._look_up_left(store, gets, responses)
        taken = 0
        for at, response in enumerate(responses):
            if isinstance(response, bytes):
                taken += len(response)
                try:
                    self._check_room(taken)
                except OverloadedError as failure:
                    taken -= len(response)
                    responses[at] = failure
        return responses

    async def _look_up_left(self, store: str, gets: Sequence[Get], responses: list[_Response]) -> None:
        """Fills in the responses that several gets of a partition lack."""
        left = defaultdict[tuple[StorePartition, int], list[int]](list)
        for at, get in enumerate(gets):
            if responses[at] is None:
                left[get.place, int(get.deadline)].append(at)  # by second: the first deadline counts for all

        async def look_up(indexes: list[int]) -> None:
            asked = [gets[at] for at in indexes]
            answers: Sequence[_Response]
            try:
                answers = _responses(store, asked, await self._of_partition(asked))
            except InvalidRequestError:  # one of them is wrong: each finds out alone whether it is
                return
            except LookupFailedError as failure:
                answers = [copy(failure) for _ in asked]  # each is raised to a caller of its own
            for at, answer in zip(indexes, answers, strict=True):
                responses[at] = answer

        await asyncio.gather(*(look_up(indexes) for indexes in left.values() if len(indexes) > 1))


def _responses(store: str, gets: Sequence[Get], answer: api.BatchGetStatesResponse) -> list[_Response]:
    """Returns the response of each get as if it were alone; None for failed ones."""
    responses: list[_Response] = [None] * len(gets)
    known: list[tuple[query_pb2.Freshness, bytes]] = [(_NOTHING, b"")] * len(gets)
    for freshness in answer.freshness:
        indexes = tuple(freshness.keys)
        freshness.ClearField("keys")
        encoded = sized(SECOND, freshness.SerializeToString())
        for index in indexes:
            known[index] = freshness, encoded
    for result in answer.results:
        index = result.index
        its_freshness, encoded = known[index]
        if not encoded:
            continue
        if result.HasField("state"):
            responses[index] = sized(FIRST, result.state.SerializeToString()) + encoded
        elif result.HasField("absence"):
            result.absence.ClearField("unchanged_since")  # which a batch says, and a get does not
            responses[index] = AbsentError.of(store, gets[index].request.key.group, result.absence, its_freshness)
    return responses
