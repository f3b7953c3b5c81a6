"""Opens sockets: which dialect is spoken where, who may come in, and how all of them are closed."""

import asyncio
import json
import re
from collections.abc import Mapping
from random import randrange
from typing import Any
from urllib.parse import parse_qs

import structlog

from ws_edge.admission import Admission
from ws_edge.drain import drain
from ws_edge.errors import (
    BusyError,
    EdgeError,
    HandshakeError,
    MalformedFrameError,
    RequestError,
    TooManySocketsError,
    UnknownPathError,
)
from ws_edge.frames import Dialect, WatchRequest, check_interval, check_position
from ws_edge.gateway import Caller, Gateway
from ws_edge.order_frames import STORE, OrderFrames
from ws_edge.quotas import Share
from ws_edge.session import Receive, Session
from ws_edge.socket_writer import Send
from ws_edge.states import Position, StoreKey
from ws_edge.stores import check_key_part
from ws_edge.stream_frames import BINARY_SUBPROTOCOL, StreamFrames
from ws_edge.surroundings import Surroundings

ORDERS = "/update/orders"
STREAM = "/v1/stream"
TICKET_STREAM = "/v1/tickets/stream"
"""The same for browsers, whose sockets cannot send headers: a ticket in the query says who comes."""
REAPING_S = 1.0
RETRY_SPREAD_S = 5
PASSING = frozenset({TooManySocketsError.http_status, BusyError.http_status})
"""The statuses of refusals that pass by themselves."""

WHOLE_NUMBER = re.compile(r"-?[0-9]{1,19}")

log = structlog.get_logger(__name__)


class Sockets:
    """The ASGI application of all WebSockets, and the register of those that are open.

    It stands beside FastAPI, not inside it: the middleware of an HTTP framework would be on the way of every frame.
    """

    def __init__(self, around: Surroundings, gateway: Gateway, admission: Admission, stall_timeout: float) -> None:
        """A client that reads nothing for `stall_timeout` seconds while frames wait is cut off."""
        self._around = around
        self._gateway = gateway
        self._admission = admission
        self._stall_timeout = stall_timeout
        self._order_frames = OrderFrames()
        self._stream_frames = {binary: StreamFrames(around.stores, binary) for binary in (False, True)}
        self._open: dict[Session, asyncio.Task[Any]] = {}
        self.draining = False

    def __len__(self) -> int:
        return len(self._open)

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Serves one socket from its handshake to its end (ASGI)."""
        await receive()
        try:
            caller, dialect, first = self._asked_for(scope)
            share = self._admit(scope, caller)
        except (HandshakeError, RequestError) as error:
            self._around.metrics.errors.labels(error.code).inc()
            log.info("socket_refused", path=scope["path"], code=error.code, reason=str(error))
            await _refuse(send, error)
            return
        binary = dialect is self._stream_frames[True]
        with share:
            await send({"type": "websocket.accept", "subprotocol": BINARY_SUBPROTOCOL if binary else None})
            await self._serve(Session(self._around, caller, share, dialect, send), caller, scope, receive, first)

    async def reap(self) -> None:
        """Cuts off clients that do not read; goes on until it is cancelled."""
        while True:
            await asyncio.sleep(REAPING_S)
            self._admission.tidy()
            stalled_before = self._around.clock() - self._stall_timeout
            for session, task in tuple(self._open.items()):
                if session.writing_since is not None and session.writing_since < stalled_before:
                    session.stalled = True
                    task.cancel()

    async def drain(self, notice: float, window: float) -> None:
        """Lets nobody in any more and sends everybody away, the first after `notice` seconds, over `window` seconds."""
        self.draining = True
        sessions = tuple(self._open)
        log.info("draining", sockets=len(sessions), notice_s=notice, window_s=window)
        await drain(sessions, self._open, notice, window)

    async def _serve(
        self,
        session: Session,
        caller: Caller,
        scope: Mapping[str, Any],
        receive: Receive,
        first: WatchRequest | None,
    ) -> None:
        metrics = self._around.metrics
        metrics.sockets_opened.inc()
        consumer = caller.consumer
        told = log.bind(path=scope["path"], consumer=consumer.id or consumer.name, client=caller.address)
        told.info("socket_opened", correlation_id=_header(scope, b"x-correlation-id"))
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  every ASGI application runs in a task
        self._open[session] = task
        code = 1006
        try:
            code = await session.run(receive, first)
        except asyncio.CancelledError:
            if not session.stalled and not self.draining:
                raise
            metrics.stalled.inc(session.stalled)
        finally:
            del self._open[session]
            told.info("socket_closed", code=code, stalled=session.stalled)

    def _admit(self, scope: Mapping[str, Any], caller: Caller) -> Share:
        if self.draining:
            raise BusyError("this edge is being stopped: connect again")
        return self._admission.admit(scope, caller, len(self._open))

    def _asked_for(self, scope: Mapping[str, Any]) -> tuple[Caller, Dialect, WatchRequest | None]:
        caller = self._caller(scope)
        path = scope["path"]
        if path in (STREAM, TICKET_STREAM):
            return caller, self._stream_frames[BINARY_SUBPROTOCOL in scope["subprotocols"]], None
        if path == ORDERS:
            return caller, self._order_frames, None
        if path.startswith(ORDERS + "/") and len(path) > len(ORDERS) + 1:
            return caller, self._order_frames, _path_request(path[len(ORDERS) + 1 :], scope["query_string"])
        raise UnknownPathError(f"there is no socket at {path[:200]}: there are {ORDERS} and {STREAM}")

    def _caller(self, scope: Mapping[str, Any]) -> Caller:
        if scope["path"] != TICKET_STREAM:
            return self._gateway.caller(scope)
        address = self._gateway.stranger_address(scope)
        tickets = parse_qs(scope["query_string"].decode("latin-1")).get("ticket", [])
        if len(tickets) != 1:
            raise MalformedFrameError("the query parameter ticket must be there once: get one from POST /v1/tickets")
        return self._around.tickets.holder(tickets[0], address)


def _path_request(order_id: str, query_string: bytes) -> WatchRequest:
    """The subscription that an address makes; raises MalformedFrameError."""
    query = parse_qs(query_string.decode("latin-1"), keep_blank_values=True)
    check_key_part("order_id", order_id)
    epoch, offset, interval = (_number(query, name) for name in ("position_epoch", "position_offset", "interval_ms"))
    after: Position | None = None
    if epoch is not None and offset is not None:
        after = check_position(epoch, offset)
    elif epoch is not None or offset is not None:
        raise MalformedFrameError("position_epoch and position_offset go together: send both, or none")
    interval_ms = None if interval is None else check_interval(interval)
    return WatchRequest(StoreKey(STORE, order_id), after, interval_ms, order_id)


def _number(query: Mapping[str, list[str]], name: str) -> int | None:
    values = query.get(name)
    if values is None:
        return None
    if len(values) > 1 or WHOLE_NUMBER.fullmatch(values[0]) is None:
        raise MalformedFrameError(f"the query parameter {name} is not one whole number")
    return int(values[0])


def _header(scope: Mapping[str, Any], name: bytes) -> str:
    return next((value.decode("latin-1") for known, value in scope["headers"] if known == name), "")


async def _refuse(send: Send, error: EdgeError) -> None:
    body = json.dumps({"error": {"code": error.code, "message": str(error)}}).encode()
    headers = [(b"content-type", b"application/json")]
    if error.http_status in PASSING:
        # By chance, so that those who were turned away together do not come back together.
        headers.append((b"retry-after", str(1 + randrange(RETRY_SPREAD_S)).encode()))  # noqa: S311  it is no secret
    await send({"type": "websocket.http.response.start", "status": error.http_status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": body})
