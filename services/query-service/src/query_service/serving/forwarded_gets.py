"""Gets that are passed on: those that are in flight together are one call to a peer."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from query_service.cluster.shard_map import StorePartition
from query_service.errors import AbsentError, OverloadedError
from query_service.metrics import MethodCalls
from query_service.serving.call_limits import MIN_CALL_BYTES, QUERY_BYTES
from query_service.serving.forwards import Forwards, Route, hold
from query_service.serving.messages import absence_of, freshness_of
from query_service.serving.wire import FIRST, SECOND, sized
from query_service.storage.replica import Replica
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api
from statecast.shard.v1 import shard_service_pb2 as shard
from statecast.state.v1 import state_pb2
from statecast_client.coalescing import Batcher

_MAX_GETS = 128  # of one batch: their answers wait for each other
_MAX_CALLS = 2  # in flight to one route: with more the batches fall apart, with one the peer stands idle in between
_EMPTY = query_pb2.Freshness()


class _Get(NamedTuple):
    key: state_pb2.StateKey
    patience_s: float


_Group: TypeAlias = tuple[str, Route, int]
"""Store, route, and the power of two of the patience: who has little time shortens the call for few others."""


@dataclass(eq=False)
class ForwardedGets:
    """Gets that are in flight together are one call to a peer."""

    forwards: Forwards
    calls: MethodCalls
    max_keys: int
    """Of one batch, as the peers allow them."""
    _batcher: Batcher[_Group, _Get, bytes] = field(init=False)

    def __post_init__(self) -> None:
        self._batcher = Batcher(self._together, max_batch=min(_MAX_GETS, self.max_keys), max_in_flight=_MAX_CALLS)

    def get(
        self, place: StorePartition, request: api.GetStateRequest, size: int, left_s: float | None
    ) -> "asyncio.Future[bytes | None] | Replica | None":
        """Passes on a request of this size, and counts it; returns the own replica when no peer is to be asked first.

        None without memory, time, or anybody to ask: then the servicer must answer. The future has the encoded
        response, or None likewise. It raises AbsentError and OverloadedError.
        """
        in_flight, held = self.forwards.limits.in_flight, size + MIN_CALL_BYTES + QUERY_BYTES
        patience_s = self.forwards.patience_s(left_s)
        route = self.forwards.route(place) if patience_s > 0 and in_flight.has_room(held) else None
        if not isinstance(route, Route):
            return route
        group = request.store, route, math.frexp(patience_s)[1]
        future = self._batcher.batched(group, _Get(request.key, patience_s))
        hold(future, in_flight, held, self.calls)
        return future

    async def _together(self, group: _Group, gets: Sequence[_Get]) -> Sequence[bytes | Exception | None]:
        store, route, _ = group
        request = shard.BatchGetStatesRequest()
        request.query.store = store
        for get in gets:
            request.query.keys.add().key.CopyFrom(get.key)
        answer = await self.forwards.batch("get", route, request, min(get.patience_s for get in gets))
        if answer is None:
            return [None] * len(gets)
        return self._within_memory(_responses(store, gets, answer))

    def _within_memory(self, responses: Sequence[bytes | Exception | None]) -> Sequence[bytes | Exception | None]:
        """Replaces responses by errors for which there is no memory until they are sent."""
        checked: list[bytes | Exception | None] = []
        taken = 0
        for response in responses:
            size = len(response) if isinstance(response, bytes) else 0
            try:
                self.forwards.limits.in_flight.check_room(taken + size)
            except OverloadedError as error:
                checked.append(error)
            else:
                taken += size
                checked.append(response)
        return checked


def _responses(
    store: str, gets: Sequence[_Get], answer: api.BatchGetStatesResponse
) -> Sequence[bytes | Exception | None]:
    """Returns what each get would have had alone; None for those that have failed."""
    responses: list[bytes | Exception | None] = [None] * len(gets)
    known: list[tuple[query_pb2.Freshness, bytes]] = [(_EMPTY, b"")] * len(gets)
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
            absence = absence_of(result.absence)._replace(purged_offset=None)  # which a batch says, and a get does not
            responses[index] = AbsentError.of(store, gets[index].key.group, absence, freshness_of(its_freshness))
    return responses
