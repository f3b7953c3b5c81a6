"""Opens sockets: which dialect is spoken where, who may come in, and how all of them are closed."""

import asyncio
import json
from collections.abc import Mapping
from random import randrange
from typing import Any
from urllib.parse import parse_qs

import structlog

from ws_edge.access.admission import Admission
from ws_edge.access.gateway import Caller, Gateway
from ws_edge.access.quotas import Share
from ws_edge.closes import LOST, reason_of
from ws_edge.dialects.frames import WatchRequest
from ws_edge.errors import (
    BusyError,
    EdgeError,
    HandshakeError,
    MalformedFrameError,
    RequestError,
    TooManySocketsError,
)
from ws_edge.hub.outbox import Reply
from ws_edge.shared.channels import Channels
from ws_edge.shared.revocations import Revocations
from ws_edge.sockets.channel_feed import ChannelFeed
from ws_edge.sockets.drain import drain
from ws_edge.sockets.routes import TICKET_STREAM, Route, Routes
from ws_edge.sockets.session import Receive, Session
from ws_edge.sockets.socket_writer import Send
from ws_edge.sockets.surroundings import Surroundings

REAPING_S = 1.0
RETRY_SPREAD_S = 5
PASSING = frozenset({TooManySocketsError.http_status, BusyError.http_status})
"""The statuses of refusals that pass by themselves."""

log = structlog.get_logger(__name__)


class Sockets:
    """The ASGI application of all WebSockets, and the register of those that are open.

    It stands beside FastAPI, not inside it: the middleware of an HTTP framework would be on the way of every frame.
    """

    def __init__(
        self,
        around: Surroundings,
        channels: Channels,
        revocations: Revocations,
        gateway: Gateway,
        admission: Admission,
        stall_timeout: float,
    ) -> None:
        """A client that reads nothing for `stall_timeout` seconds while frames wait is cut off."""
        self._around = around
        self._channels = channels
        self._revocations = revocations
        self._routes = Routes(around.stores)
        self._gateway = gateway
        self._admission = admission
        self._stall_timeout = stall_timeout
        self._open: dict[Session, asyncio.Task[Any]] = {}
        self.draining = False
        self.closed = 0
        """How many sockets have been open and are no longer."""

    def __len__(self) -> int:
        return len(self._open)

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Serves one socket from its handshake to its end (ASGI)."""
        await receive()
        try:
            caller = self._caller(scope)
            route = self._routes.find(scope)
            share = self._admit(scope, caller)
        except (HandshakeError, RequestError) as error:
            await self._refuse(scope, send, error)
            return
        with share:
            await self._welcome(Session(self._around, caller, share, route.dialect, send), route, scope, receive, send)

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

    async def _welcome(
        self, session: Session, route: Route, scope: Mapping[str, Any], receive: Receive, send: Send
    ) -> None:
        """Opens the socket and serves it, unless the query service tells that it may not be opened."""
        try:
            greeting = await self._enter(session, route)
        except (HandshakeError, RequestError) as error:
            await self._refuse(scope, send, error)
            return
        try:
            await send({"type": "websocket.accept", "subprotocol": route.subprotocol})
            for reply in (greeting, route.dialect.admitted(session.caller.credential.expires_at)):
                if reply is not None:
                    session.reply(reply)
            await self._serve(session, scope, receive, route.first)
        finally:
            self._revocations.leave(session)
            if session.feed is not None:
                session.feed.close()

    async def _enter(self, session: Session, route: Route) -> Reply | None:
        """Lets the session in, and returns what it begins with; `leave` must follow when this does not raise."""
        await self._revocations.enter(session)
        try:
            self._check_draining()
            if route.attachment is None:
                return None
            channel = await self._channels.open(route.attachment.channel, session.caller.consumer)
        except BaseException:
            self._revocations.leave(session)
            raise
        session.feed = ChannelFeed(self._channels, self._around, channel, session)
        return route.attachment.frames.attached(channel)

    async def _serve(
        self, session: Session, scope: Mapping[str, Any], receive: Receive, first: WatchRequest | None
    ) -> None:
        metrics, caller = self._around.metrics, session.caller
        metrics.sockets_opened.inc()
        told = log.bind(path=scope["path"], consumer=caller.consumer.principal, client=caller.address)
        told.info("socket_opened", correlation_id=_header(scope, b"x-correlation-id"))
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
            self.closed += 1
            reason = reason_of(session.stalled, session.end_code, code)
            metrics.sockets_closed.labels(reason).inc()
            told.info("socket_closed", code=code, reason=reason)

    def _admit(self, scope: Mapping[str, Any], caller: Caller) -> Share:
        self._check_draining()
        return self._admission.admit(scope, caller)

    def _caller(self, scope: Mapping[str, Any]) -> Caller:
        if scope["path"] != TICKET_STREAM:
            return self._gateway.caller(scope)
        address = self._gateway.stranger_address(scope)
        tickets = parse_qs(scope["query_string"].decode("latin-1")).get("ticket", [])
        if len(tickets) != 1:
            raise MalformedFrameError("the query parameter ticket must be there once: get one from POST /v1/tickets")
        return self._around.tickets.holder(tickets[0], address)

    def _check_draining(self) -> None:
        if self.draining:
            raise BusyError("this edge is being stopped: connect again", "draining")

    async def _refuse(self, scope: Mapping[str, Any], send: Send, error: EdgeError) -> None:
        reason = error.cause if isinstance(error, BusyError) else error.code
        self._around.metrics.sockets_refused.labels(reason).inc()
        log.info("socket_refused", path=scope["path"], code=error.code, reason=str(error))
        await _answer(send, error)


def _header(scope: Mapping[str, Any], name: bytes) -> str:
    return next((value.decode("latin-1") for known, value in scope["headers"] if known == name), "")


async def _answer(send: Send, error: EdgeError) -> None:
    body = json.dumps({"error": {"code": error.code, "message": str(error)}}).encode()
    headers = [(b"content-type", b"application/json")]
    if error.http_status in PASSING:
        # By chance, so that those who were turned away together do not come back together.
        headers.append((b"retry-after", str(1 + randrange(RETRY_SPREAD_S)).encode()))  # noqa: S311  it is no secret
    await send({"type": "websocket.http.response.start", "status": error.http_status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": body})
