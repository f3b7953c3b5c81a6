"""The calls that the native server has in work: their limits, their answers, and how each of them ends."""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

import grpc
import structlog
from pygrpc_native import EVENT_CANCEL, NativeGrpcFront

from query_service.errors import LookupFailedError
from query_service.reads.status import ending_of
from query_service.server.limits import InFlight
from query_service.server.methods import Method
from query_service.server.unread import UnreadResponses

Metadata: TypeAlias = Sequence[tuple[str, str | bytes]]
Details: TypeAlias = tuple[Metadata, str, float | None]
"""Of a call, as the library has them: metadata, peer, seconds until the deadline."""
Event: TypeAlias = tuple[int, int, int, bytes | None, bytes | str | None, Details | None]
"""As the library has it: kind, call, method, request, client, details; the last three are those of new calls."""

_OVERLOADED = "the instance is overloaded: it works on as many calls as it may: ask again later"
_STOPPING = "the instance is stopping"
_POLL_S = 0.005
_TURN_S = 0.005  # batches that are answered at once take a millisecond or more each

_log = structlog.get_logger()


class NativeCalls:
    """Responds at once where a method does, and else when its answer has come, unless the client has gone.

    For the event loop only.
    """

    def __init__(
        self,
        front: NativeGrpcFront,
        methods: Sequence[Method],
        max_calls: int,
        max_request_bytes: int,
        in_flight: InFlight,
    ) -> None:
        """`methods` are those of `front`, in its order; -1 byte is no limit of requests. Needs a running event loop."""
        self._front = front
        self._methods = methods
        self._max_calls = max_calls
        self._max_request_bytes = max_request_bytes
        self._unread = UnreadResponses(front, in_flight, self._in_work)
        self._tasks: dict[int, asyncio.Future[bytes]] = {}  # the answers of calls that have to wait
        self._over: set[int] = set()  # those of them that are given up, and about to end
        self._events: deque[Event] = deque()
        self._goes_on = False
        self._stopping = False

    def take(self, events: Sequence[Event]) -> None:
        """Takes new calls on, and gives up those that lost their client or passed their deadline."""
        self._events.extend(events)
        if not self._goes_on:
            self._go_on()

    def _go_on(self) -> None:
        """Takes events in their order, as many as one turn of the loop has time for."""
        until = time.monotonic() + _TURN_S
        while self._events and time.monotonic() < until:
            self._take(self._events.popleft())
        self._goes_on = bool(self._events)
        if self._goes_on:
            asyncio.get_running_loop().call_soon(self._go_on)

    def _take(self, event: Event) -> None:
        kind, call_id, number, request, _, details = event
        if kind == EVENT_CANCEL:
            if task := self._tasks.get(call_id):
                task.cancel()
                self._over.add(call_id)
        elif request is not None and details is not None and self._may_begin(call_id, len(request)):
            try:
                self._begin(call_id, self._methods[number], request, details)
            except Exception as defect:  # noqa: BLE001  it must not take the other calls with it
                self._report(call_id, defect)

    async def finish(self, grace_s: float) -> None:
        """Refuses new calls from now on; lets those in work end for up to `grace_s`, and their responses be read."""
        self._stopping = True
        deadline = time.monotonic() + grace_s
        if self._tasks and time.monotonic() < deadline:
            await asyncio.wait(list(self._tasks.values()), timeout=deadline - time.monotonic())
        while self._tasks:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        # Responses that were handed over would be lost if the connections were closed now.
        while self._unread.open_calls() and time.monotonic() < deadline:  # noqa: ASYNC110  the library tells nobody
            await asyncio.sleep(_POLL_S)

    def close(self) -> None:
        """Forgets the responses that were not read, when all connections are closed."""
        self._unread.close()

    def _in_work(self) -> int:
        return len(self._tasks) - len(self._over) + len(self._events)

    def _may_begin(self, call_id: int, size: int) -> bool:
        if self._stopping:
            self._fail(call_id, grpc.StatusCode.UNAVAILABLE, _STOPPING)
        elif len(self._tasks) >= self._max_calls:
            self._fail(call_id, grpc.StatusCode.RESOURCE_EXHAUSTED, _OVERLOADED)
        elif 0 <= self._max_request_bytes < size:
            text = f"the request has {size} bytes, and may have {self._max_request_bytes}"
            self._fail(call_id, grpc.StatusCode.RESOURCE_EXHAUSTED, text)
        else:
            return True
        return False

    def _begin(self, call_id: int, method: Method, request: bytes, details: Details) -> None:
        try:
            answer = method.answer(request, details[2])
        except LookupFailedError as failure:
            self._fail(call_id, *ending_of(failure))
            return
        if isinstance(answer, bytes):
            self._respond(call_id, answer)
        else:
            self._tasks[call_id] = answer
            answer.add_done_callback(partial(self._ended, call_id))

    def _ended(self, call_id: int, answer: "asyncio.Future[bytes]") -> None:
        del self._tasks[call_id]
        self._over.discard(call_id)
        if answer.cancelled():  # a client that has gone gets nothing; one of a server that stops gets this
            self._fail(call_id, grpc.StatusCode.UNAVAILABLE, _STOPPING)
        elif (failure := answer.exception()) is None:
            self._respond(call_id, answer.result())
        elif isinstance(failure, LookupFailedError):
            self._fail(call_id, *ending_of(failure))
        else:
            self._report(call_id, failure)

    def _respond(self, call_id: int, response: bytes) -> None:
        if self._front.respond(call_id, response):
            self._unread.add(len(response))

    def _fail(self, call_id: int, code: grpc.StatusCode, details: str, trailing_metadata: Metadata = ()) -> None:
        self._front.fail(call_id, code.value[0], details, list(trailing_metadata))

    def _report(self, call_id: int, defect: BaseException) -> None:
        _log.error("unexpected error in a call", exc_info=defect)
        self._fail(call_id, grpc.StatusCode.UNKNOWN, f"Unexpected {type(defect)}: {defect}")
