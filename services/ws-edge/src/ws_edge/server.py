"""Runs the application on uvicorn, and drains it when the process is asked to end."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from functools import partial
from types import FrameType
from typing import Any

import uvicorn

from ws_edge.errors import SettingsError
from ws_edge.settings import Settings
from ws_edge.sockets.socket_protocol import EdgeSocketProtocol
from ws_edge.tls import PortTls
from ws_edge.web.app import App

BACKLOG = 16_384
"""Connections that may wait to be accepted, of which the kernel keeps net.core.somaxconn at the most. What does not fit
when everybody comes back is tried again by the caller's kernel, after one second, then three, seven, fifteen."""

LAST_CALLS_S = 3
"""How long calls that are being answered may take when all sockets are closed."""


def listen(settings: Settings) -> socket.socket:
    """Takes the port; raises SettingsError when it cannot be had."""
    listener = socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        reason = error.strerror or str(error)
        raise SettingsError(
            f"cannot listen on {settings.host}:{settings.port} ({reason}): set WS_EDGE_HOST or WS_EDGE_PORT to others"
        ) from error
    return listener


class Server(uvicorn.Server):
    """uvicorn, but a signal starts the drain first; a second one ends it."""

    def __init__(self, app: App, settings: Settings, tls: PortTls | None, drain: Callable[[], Awaitable[None]]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http="httptools",
                loop="uvloop",
                ws=partial(  # type: ignore[arg-type]  # uvicorn only calls it
                    EdgeSocketProtocol, send_buffer=settings.send_buffer_bytes
                ),
                lifespan="off",
                ws_max_size=settings.max_frame_bytes,
                ws_ping_interval=settings.ping_interval_s,
                ws_ping_timeout=settings.ping_timeout_s,
                ws_per_message_deflate=False,
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                **_encryption(tls),
                timeout_graceful_shutdown=LAST_CALLS_S,
            )
        )
        self._drain = drain
        self._drained: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context = copy_context()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to serve."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002  the base names them
        """Takes SIGTERM and SIGINT. The base would raise the signal again at the end, and so not exit with 0."""
        if self._loop is None or self._drained is not None:
            self.should_exit = self.force_exit = True
        else:
            self._loop.call_soon_threadsafe(self._begin_drain, context=self._context)

    def _begin_drain(self) -> None:
        if self._drained is None:
            self._drained = asyncio.get_running_loop().create_task(self._drain_and_exit())

    async def _drain_and_exit(self) -> None:
        try:
            await self._drain()
        finally:
            self.should_exit = True


def _encryption(tls: PortTls | None) -> dict[str, Any]:
    """What uvicorn calls the parts of TLS."""
    if tls is None:
        return {}
    return {
        "ssl_certfile": tls.certificate,
        "ssl_keyfile": tls.key,
        "ssl_ca_certs": None if tls.client_ca is None else str(tls.client_ca),
        "ssl_cert_reqs": ssl.CERT_REQUIRED if tls.mutual else ssl.CERT_NONE,
    }
