"""The calls that the native server has in work: their limits, their tasks, and how each of them ends."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

import grpc
import structlog
from pygrpc_native import EVENT_CANCEL, NativeGrpcFront

from query_service.errors import LookupFailedError
from query_service.metrics import CALL_BEGAN
from query_service.serving.call_limits import Context, InFlight, ending_of
from query_service.serving.grpc_server import Method
from query_service.serving.native_context import Metadata, NativeContext
from query_service.serving.unread import UnreadResponses

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
    """Responds at once to what methods can answer so; a task works on each other call, until its client has gone.

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
        self._tasks: dict[int, asyncio.Future[Any]] = {}  # what works on each call that was not answered at once
        self._over: set[int] = set()  # those of them that are answered or given up, and about to end
        self._events: deque[Event] = deque()
        self._goes_on = False
        self._stopping = False

    def take(self, events: Sequence[Event]) -> None:
        """Takes new calls on, and gives up those whose client has gone, or whose deadline has passed."""
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
        while self._tasks and time.monotonic() < deadline:  # a peer's answer may leave a call to a task here
            await asyncio.wait(list(self._tasks.values()), timeout=deadline - time.monotonic())
        while self._tasks:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        # What was handed over would be lost if the connections were closed now.
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
        response = None if method.fast_answer is None else method.fast_answer(request, details[2])
        if isinstance(response, bytes):
            self._respond(call_id, response)
            return
        work = partial(self._begin_task, call_id, method, request, NativeContext(*details))
        if response is None:
            work()
        else:
            self._tasks[call_id] = response
            response.add_done_callback(partial(self._forwarded, call_id, work))

    def _begin_task(self, call_id: int, method: Method, request: bytes, context: NativeContext) -> None:
        task = asyncio.create_task(self._work(call_id, method, request, context))
        # Not at the end of `_work`, which never begins when the client goes away at once.
        task.add_done_callback(partial(self._ended, call_id, context))
        self._tasks[call_id] = task

    async def _work(self, call_id: int, method: Method, request: bytes, context: NativeContext) -> None:
        CALL_BEGAN.set(context.began)
        try:
            response = await method.slow_handler(request, cast("Context", context))
        except grpc.aio.AbortError:
            self._over.add(call_id)
            self._fail(call_id, context.code, context.details, context.trailing_metadata)
        else:
            self._over.add(call_id)
            self._respond(call_id, response)

    def _forwarded(self, call_id: int, answer_here: Callable[[], None], answer: "asyncio.Future[bytes | None]") -> None:
        """Responds with what a peer has answered; what it has not is answered here."""
        if answer.cancelled():
            self._forget(call_id)
            self._fail(call_id, grpc.StatusCode.UNAVAILABLE, _STOPPING)
        elif isinstance(failure := answer.exception(), LookupFailedError):
            self._forget(call_id)
            self._fail(call_id, *ending_of(failure))
        elif failure is not None:
            self._forget(call_id)
            self._report(call_id, failure)
        elif (response := answer.result()) is None and call_id not in self._over:
            answer_here()
        elif response is None:  # nobody waits for it any more
            self._forget(call_id)
        else:
            self._forget(call_id)
            self._respond(call_id, response)

    def _forget(self, call_id: int) -> None:
        del self._tasks[call_id]
        self._over.discard(call_id)

    def _respond(self, call_id: int, response: bytes) -> None:
        if self._front.respond(call_id, response):
            self._unread.add(len(response))

    def _fail(self, call_id: int, code: grpc.StatusCode, details: str, trailing_metadata: Metadata = ()) -> None:
        self._front.fail(call_id, code.value[0], details, list(trailing_metadata))

    def _report(self, call_id: int, defect: BaseException) -> None:
        _log.error("unexpected error in a call", exc_info=defect)
        self._fail(call_id, grpc.StatusCode.UNKNOWN, f"Unexpected {type(defect)}: {defect}")

    def _ended(self, call_id: int, context: NativeContext, task: "asyncio.Task[None]") -> None:
        self._forget(call_id)
        if task.cancelled():  # a client that has gone gets nothing; one of a server that stops gets this
            self._fail(call_id, grpc.StatusCode.UNAVAILABLE, _STOPPING)
        elif defect := task.exception():
            self._report(call_id, defect)
        context.end()
