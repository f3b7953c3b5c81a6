"""Gets that are passed on: those that are in flight together are one batch to a peer."""

import asyncio
import math
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from query_service.cluster.shard_map import StorePartition
from query_service.errors import AbsentError, LookupFailedError, OverloadedError
from query_service.reads.route import Route
from query_service.reads.wire import FIRST, SECOND, sized
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api

_MAX_GETS = 128  # of one batch: their answers wait for each other
_MAX_CALLS = 2  # in flight to one route: with more the batches fall apart, with one the peer stands idle in between
_MAX_WAIT_S = 0.005
_NOTHING = query_pb2.Freshness()

_Response: TypeAlias = bytes | LookupFailedError | None


class Get(NamedTuple):
    """A get that waits for its response."""

    place: StorePartition
    request: api.GetStateRequest
    deadline: float
    response: "asyncio.Future[bytes]"


_Group: TypeAlias = tuple[str, Route, int]
"""Store, route, and the power of two of the time left: who has little time shortens the call for few others."""


class _Queue:
    """Those that wait for their turn, and how many batches are in flight."""

    __slots__ = ("in_flight", "timer", "waiting")

    def __init__(self) -> None:
        self.waiting: list[Get] = []
        self.in_flight = 0
        self.timer: asyncio.Handle | None = None


class CoalescedGets:
    """Gets of one turn of the event loop go out together at its end.

    While two batches of a group are in flight, later gets gather until one of them has ended, for 5 ms at most, so that
    a call that hangs delays no others. A caller that is cancelled cancels nobody else.
    """

    def __init__(
        self,
        together: Callable[[Route, Sequence[Get]], Coroutine[None, None, api.BatchGetStatesResponse]],
        alone: Callable[[api.GetStateRequest, float], Coroutine[None, None, bytes]],
        check_room: Callable[[int], None],
        max_keys: int,
    ) -> None:
        """`together` asks a route for many keys at once; keys that it does not answer go `alone`.

        `check_room` raises OverloadedError when there is no memory for responses of so many bytes.
        """
        self._together = together
        self._alone = alone
        self._check_room = check_room
        self._max_gets = min(_MAX_GETS, max_keys)
        self._queues: dict[_Group, _Queue] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def get(
        self, route: Route, place: StorePartition, request: api.GetStateRequest, deadline: float, left_s: float
    ) -> "asyncio.Future[bytes]":
        """Passes a get on; `left_s` is how long a peer may take. The future has Reads.get's result."""
        group = request.store, route, math.frexp(left_s)[1]
        queue = self._queues.get(group)
        if queue is None:
            queue = self._queues[group] = _Queue()
        loop = asyncio.get_running_loop()
        response: asyncio.Future[bytes] = loop.create_future()
        queue.waiting.append(Get(place, request, deadline, response))
        if queue.timer is None and queue.in_flight < _MAX_CALLS:
            queue.timer = loop.call_soon(self._send, group, queue)
        elif queue.timer is None:
            queue.timer = loop.call_later(_MAX_WAIT_S, self._send, group, queue, True)
        return response

    def _send(self, group: _Group, queue: _Queue, is_due: bool = False) -> None:
        """Sends those that wait, as far as the calls in flight allow; all of them when it `is_due`."""
        loop = asyncio.get_running_loop()
        if queue.timer is not None:
            queue.timer.cancel()
            queue.timer = None
        while queue.waiting and (is_due or queue.in_flight < _MAX_CALLS):
            gets, queue.waiting = queue.waiting[: self._max_gets], queue.waiting[self._max_gets :]
            gets = [get for get in gets if not get.response.done()]  # the others were cancelled
            if gets:
                queue.in_flight += 1
                task = loop.create_task(self._look_up(group, gets))
                self._tasks.add(task)
                task.add_done_callback(partial(self._ended, group, queue, gets))
        if queue.waiting:
            queue.timer = loop.call_later(_MAX_WAIT_S, self._send, group, queue, True)
        elif not queue.in_flight:
            self._queues.pop(group, None)

    def _ended(self, group: _Group, queue: _Queue, gets: Sequence[Get], task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        queue.in_flight -= 1
        self._send(group, queue)
        defect = None if task.cancelled() else task.exception()
        if defect is not None:
            for get in gets:
                if not get.response.done():
                    get.response.set_exception(defect)

    async def _look_up(self, group: _Group, gets: Sequence[Get]) -> None:
        store, route, _ = group
        try:
            responses = _responses(store, gets, await self._together(route, gets))
        except LookupFailedError:  # each finds out by itself whose failure it is
            responses = [None] * len(gets)
        taken = 0
        for get, response in zip(gets, responses, strict=True):
            if get.response.done():
                continue
            if response is None:
                self._look_up_alone(get)
            elif isinstance(response, bytes):
                taken += self._respond(get, response, taken)
            else:
                get.response.set_exception(response)

    def _respond(self, get: Get, response: bytes, taken: int) -> int:
        """Returns how many bytes it takes until it is sent: it fails when there is no memory for them."""
        try:
            self._check_room(taken + len(response))
        except OverloadedError as failure:
            get.response.set_exception(failure)
            return 0
        get.response.set_result(response)
        return len(response)

    def _look_up_alone(self, get: Get) -> None:
        task = asyncio.get_running_loop().create_task(self._alone(get.request, get.deadline))
        task.add_done_callback(partial(_settle, get.response))
        get.response.add_done_callback(lambda _: task.cancel())  # a caller that goes away ends it


def _settle(response: "asyncio.Future[bytes]", task: "asyncio.Task[bytes]") -> None:
    failure = None if task.cancelled() else task.exception()
    if response.done():
        return
    if task.cancelled():
        response.cancel()
    elif failure is not None:
        response.set_exception(failure)
    else:
        response.set_result(task.result())


def _responses(store: str, gets: Sequence[Get], answer: api.BatchGetStatesResponse) -> Sequence[_Response]:
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
