"""Opens sockets, keeps the register of those that are open, and closes them when the edge is stopped."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import chain
from math import ceil
from random import randrange
from typing import Any

import structlog

from ws_edge.auth.admission import Admission
from ws_edge.auth.gateway import Caller, Gateway, check_request
from ws_edge.channels.revocations import Revocations
from ws_edge.codec.frames import BINARY_SUBPROTOCOL, HAS_READ, Codec, StreamCodec
from ws_edge.codec.requests import ClientRequest
from ws_edge.errors import (
    CLOSE_RESTART,
    LOST,
    BusyError,
    HandshakeError,
    LeftError,
    MalformedFrameError,
    RequestError,
    UnknownPathError,
    reason_of,
)
from ws_edge.order_updates import OrderUpdates
from ws_edge.session.context import SessionContext
from ws_edge.session.outbox import Send
from ws_edge.session.pace import Pace, departures
from ws_edge.session.session import Receive, Session

ORDERS = "/update/orders"
STREAM = "/v1/stream"
TICKET_STREAM = "/v1/tickets/stream"
"""The same for browsers. Their sockets cannot send headers: a ticket among their subprotocols names the consumer."""
TICKET_SUBPROTOCOL = "statecast.ticket."
"""Prefix of a ticket there. It is not in the address, because gateways write addresses to their logs."""
REAPING_S = 1.0
ENDING_S = 0.005
"""For how long outdated watches are ended before others get their turn."""
MIN_RETRY_SPREAD_S, MAX_RETRY_SPREAD_S = 5, 20
TRANSIENT = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
"""The statuses of refusals that pass by themselves."""

log = structlog.get_logger(__name__)


@dataclass(eq=False)
class Sockets:
    """The ASGI application of all WebSockets, and the register of those that are open.

    It stands beside FastAPI, not inside it: the middleware of an HTTP framework would handle every frame.
    """

    context: SessionContext
    revocations: Revocations
    gateway: Gateway
    admission: Admission
    pace: Pace
    stall_timeout: float
    """For how many seconds a client may read nothing while frames wait; then it is cut off."""
    draining: bool = field(default=False, init=False)
    _open: dict[Session, asyncio.Task[Any]] = field(default_factory=dict, init=False)
    _has_outdated: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    """Set when a store has changed since outdated watches were last looked for."""
    _json: StreamCodec = field(default_factory=lambda: StreamCodec(binary=False), init=False)
    _binary: StreamCodec = field(default_factory=lambda: StreamCodec(binary=True), init=False)

    def __len__(self) -> int:
        return len(self._open)

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Serves one socket from its handshake to its end (ASGI)."""
        await receive()
        try:
            check_request(scope)
            caller = self._caller(scope)
            codec, first = self._route(scope, caller)
            self._check_draining()
            with self.admission.admit(scope, caller) as reservation:
                if (turn := self.pace.turn()) is not None:
                    await self._wait_in_line(turn, receive)
                self._check_draining()
                session = Session(self.context, caller, reservation, codec, scope[HAS_READ], send)
                try:
                    await self.revocations.enter(session)
                    self._check_draining()
                    await self._serve(session, scope, receive, send, first)
                finally:
                    self.revocations.leave(session)
        except (HandshakeError, RequestError) as error:
            await self._refuse(scope, send, error)

    async def _wait_in_line(self, turn: "asyncio.Future[None]", receive: Receive) -> None:
        """Waits for the turn of a handshake. Raises BusyError as Pace.turn says, LeftError when its client goes."""
        event = asyncio.ensure_future(receive())  # only the loss of the connection may come before the answer
        event.add_done_callback(lambda _: turn.cancel())
        try:
            await turn
        except asyncio.CancelledError:
            if not event.done():
                raise
        finally:
            is_left = event.done()
            event.cancel()
        if is_left:
            raise LeftError("the client has left before its handshake was answered")

    async def reap(self) -> None:
        """Cuts off clients that do not read; goes on until it is cancelled."""
        while True:
            await asyncio.sleep(REAPING_S)
            self.admission.quotas.forget_idle()
            self._cut_off_stalled()
            now = self.context.clock()
            for session in tuple(self._open):
                session.tick(now)

    def stores_changed(self) -> None:
        """Ends watches of stores that are others now; their clients ask for them again, and are checked anew.

        Does not wait for the ends, but no such watch is sent anything else from now on.
        """
        self._has_outdated.set()

    async def end_outdated(self) -> None:
        """Ends outdated watches in pieces, between which others get their turn; goes on until it is cancelled."""
        while True:
            await self._has_outdated.wait()
            self._has_outdated.clear()
            began = self.context.clock()
            for _ in chain.from_iterable(session.end_outdated() for session in tuple(self._open)):
                if self.context.clock() - began >= ENDING_S:
                    await asyncio.sleep(0)
                    began = self.context.clock()

    def _cut_off_stalled(self) -> None:
        now = self.context.clock()
        for session, task in tuple(self._open.items()):
            if session.is_stalled(now, self.stall_timeout):
                session.stalled = True
                task.cancel()

    async def drain(self, notice: float, window: float) -> None:
        """Refuses new sockets, tells the clients of all open ones when to go, and closes their sockets then.

        The first is closed after `notice` seconds, in which the gateway can notice that this edge is not ready and
        sends nobody back to it; the others follow as fast as another edge opens sockets, but within `window` seconds,
        whether a client reads or not.
        """
        self.draining = True
        sessions = tuple(self._open)
        log.info("draining", sockets=len(sessions), notice_s=notice, window_s=window)
        after = departures(len(sessions), self.pace.per_second, window)
        delays = [(session, notice + each) for session, each in zip(sessions, after, strict=True)]
        for session, delay in delays:
            session.leave(delay)
        loop = asyncio.get_running_loop()
        began = loop.time()
        for session, delay in delays:
            await asyncio.sleep(max(0.0, began + delay - loop.time()))
            if session in self._open:
                session.writer.close(CLOSE_RESTART, "this edge restarts: connect again with your tokens")

    async def _serve(
        self, session: Session, scope: Mapping[str, Any], receive: Receive, send: Send, first: ClientRequest | None
    ) -> None:
        """Opens a socket and awaits its end; it is registered, counted and logged meanwhile."""
        correlation_id = next((value for name, value in scope["headers"] if name == b"x-correlation-id"), b"")
        subprotocol = session.codec.subprotocol
        offered = subprotocol if subprotocol in scope["subprotocols"] else None
        metrics, caller = self.context.metrics, session.caller
        about = {"path": scope["path"], "consumer": caller.consumer.label, "client": caller.address}
        await send({"type": "websocket.accept", "subprotocol": offered})  # which clears the scope
        metrics.sockets_opened.inc()
        log.info("socket_opened", **about, correlation_id=correlation_id.decode("latin-1"))
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  every ASGI application runs in a task
        self._open[session] = task
        code = LOST
        try:
            code = await session.run(receive, first)
        except asyncio.CancelledError:
            if not session.stalled and not self.draining:
                raise
        finally:
            del self._open[session]
            reason = reason_of(session.stalled, session.writer.end_code, code)
            metrics.sockets_closed.labels(reason).inc()
            throttled_s = round(session.throttled_s, 3)
            log.info("socket_closed", **about, code=code, reason=reason, throttled_s=throttled_s)

    def _route(self, scope: Mapping[str, Any], caller: Caller) -> tuple[Codec, ClientRequest | None]:
        """Returns a socket's codec, and the request that its address makes, if any.

        Raises UnknownPathError, or MalformedFrameError for wrong parameters.
        """
        path = scope["path"]
        root, _, order_id = path.partition(f"{ORDERS}/")
        if path == ORDERS:
            return OrderUpdates(), None
        if order_id and not root:
            orders = OrderUpdates()
            return orders, orders.path_request(order_id, scope["query_string"], self.context.finder(caller.consumer))
        if path not in (STREAM, TICKET_STREAM):
            raise UnknownPathError(f"there is no socket at {path[:200]}: there are {ORDERS} and {STREAM}")
        return self._binary if BINARY_SUBPROTOCOL in scope["subprotocols"] else self._json, None

    def _caller(self, scope: Mapping[str, Any]) -> Caller:
        if scope["path"] != TICKET_STREAM:
            return self.gateway.caller(scope)
        address = self.gateway.stranger_address(scope)
        tickets = [offer for offer in scope["subprotocols"] if offer.startswith(TICKET_SUBPROTOCOL)]
        if len(tickets) != 1:
            text = f"the subprotocol {TICKET_SUBPROTOCOL}TICKET must be offered once: get one from POST /v1/tickets"
            raise MalformedFrameError(text)
        return self.context.tickets.redeem(tickets[0].removeprefix(TICKET_SUBPROTOCOL), address=address)

    def _check_draining(self) -> None:
        if self.draining:
            raise BusyError("this edge is stopping: connect again", "draining")

    async def _refuse(self, scope: Mapping[str, Any], send: Send, error: HandshakeError | RequestError) -> None:
        reason, busy_s = (error.cause, error.busy_s) if isinstance(error, BusyError) else (error.code, 0.0)
        self.context.metrics.sockets_refused.labels(reason).inc()
        log.info("socket_refused", path=scope["path"], code=error.code, reason=str(error))
        body = json.dumps({"error": {"code": error.code, "message": str(error)}}).encode()
        headers = [(b"content-type", b"application/json")]
        if error.http_status in TRANSIENT:
            # At random, so that clients that were turned away together do not come back together.
            spread_s = min(max(MIN_RETRY_SPREAD_S, ceil(busy_s)), MAX_RETRY_SPREAD_S)
            headers.append((b"retry-after", str(1 + randrange(spread_s)).encode()))  # noqa: S311  it is no secret
        await send({"type": "websocket.http.response.start", "status": error.http_status, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": body})
