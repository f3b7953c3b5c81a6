"""Runs the application on uvicorn, and drains it when the process is asked to stop."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from types import FrameType

import uvicorn
from typing_extensions import override

from statecast_service.errors import PortInUseError
from statecast_service.tls import channel_tls, server_tls
from ws_edge.rest.app import App
from ws_edge.session.protocol import EdgeHttpProtocol, EdgeSocketProtocol
from ws_edge.settings import Settings

BACKLOG = 16_384
"""Connections that may wait to be accepted; the kernel allows net.core.somaxconn at most. When everybody reconnects, a
caller's kernel retries those that do not fit after one second, then three, seven and fifteen."""

LAST_CALLS_S = 3
"""How long unfinished calls may take once all sockets are closed."""

port_tls = partial(server_tls, certificate="tls_certificate", key="tls_key", client_ca="tls_client_ca")
"""Returns the TLS of the edge's own port; None without certificate. Raises SettingsError."""

query_tls = partial(channel_tls, ca="query_tls_ca", certificate="query_tls_certificate", key="query_tls_key")
"""Returns the TLS of connections to the query service; None without CA. Raises SettingsError."""


def listen(settings: Settings) -> socket.socket:
    """Binds the port and listens on it. Raises PortInUseError."""
    listener = socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        variables = settings.variable("host"), settings.variable("port")
        raise PortInUseError(settings.host, settings.port, error, *variables) from error
    return listener


class Server(uvicorn.Server):
    """uvicorn, but the first signal starts the drain, and a second one ends it."""

    def __init__(self, app: App, settings: Settings, drain: Callable[[], Awaitable[None]]) -> None:
        """The files of `port_tls` must have been checked."""
        protocol = partial(EdgeSocketProtocol, send_buffer=settings.send_buffer_bytes)
        super().__init__(
            uvicorn.Config(
                app,
                http=EdgeHttpProtocol,
                loop="uvloop",
                ws=protocol,  # type: ignore[arg-type]  # uvicorn only calls it
                lifespan="off",
                ws_max_size=settings.max_frame_bytes,
                ws_ping_interval=settings.ping_interval_s,
                ws_ping_timeout=settings.ping_timeout_s,
                ws_per_message_deflate=False,
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                ssl_certfile=settings.tls_certificate,
                ssl_keyfile=settings.tls_key,
                ssl_ca_certs=None if settings.tls_client_ca is None else str(settings.tls_client_ca),
                ssl_cert_reqs=ssl.CERT_NONE if settings.tls_client_ca is None else ssl.CERT_REQUIRED,
                timeout_graceful_shutdown=LAST_CALLS_S,
            )
        )
        self._drain = drain
        self._drained: asyncio.Task[None] | None = None

    @override
    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # The base would raise the signal again at the end, so that the process would not exit with 0.
        if not self.started or self._drained is not None:
            self.should_exit = self.force_exit = True
        else:
            asyncio.get_running_loop().call_soon_threadsafe(self._begin_drain)

    def _begin_drain(self) -> None:
        if self._drained is None:
            self._drained = asyncio.get_running_loop().create_task(self._drain_and_exit())

    async def _drain_and_exit(self) -> None:
        try:
            await self._drain()
        finally:
            self.should_exit = True
