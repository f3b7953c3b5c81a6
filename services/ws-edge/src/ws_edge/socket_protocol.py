"""uvicorn's sans-I/O WebSocket protocol, made to let go of clients that do not read."""

import asyncio
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

LINGER_S = 1.0
"""How long the last bytes of a socket may take to leave."""


class EdgeSocketProtocol(WebSocketsSansIOProtocol):
    """As its base, but a closed socket does not wait for ever to flush.

    The base closes a transport gracefully, which never ends when the peer's window is full: the connection, its buffer
    and its subscriptions would stay until TCP gives up. Here what is not flushed soon is aborted.
    """

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        """The application has let go of the socket."""
        super().on_task_complete(task)
        self._abort_later()

    def keepalive_timeout(self) -> None:
        """The peer has not answered a ping in time."""
        super().keepalive_timeout()
        self._abort_later()

    def shutdown(self) -> None:
        """The server ends."""
        super().shutdown()
        self._abort_later()

    def _abort_later(self) -> None:
        transport: Any = self.transport
        if not self.disconnected and transport.get_write_buffer_size():
            self.loop.call_later(LINGER_S, transport.abort)
