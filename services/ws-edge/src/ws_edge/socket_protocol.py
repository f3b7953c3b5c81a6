"""uvicorn's sans-I/O WebSocket protocol, made to let go of clients well, whether they read or not."""

import asyncio
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

LINGER_S = 1.0
"""How long the last bytes of a socket may take to leave, and those of a refused frame to arrive."""


class EdgeSocketProtocol(WebSocketsSansIOProtocol):
    """As its base, with two differences in how a socket ends.

    The base closes a transport gracefully, which never ends when the peer's window is full: the connection, its buffer
    and its subscriptions would stay until TCP gives up. Here what is not flushed soon is aborted.

    The base closes at once after a frame that breaks the protocol, for example one that is too large. What the peer
    is still sending then makes the kernel reset the connection, and the peer never reads the close code. Here the
    rest is read and thrown away for a moment.
    """

    def data_received(self, data: bytes) -> None:
        """Bytes from the peer."""
        if self.conn.parser_exc is None:
            super().data_received(data)

    def handle_parser_exception(self) -> None:
        """The peer has broken the protocol; the library has made the close frame."""
        assert self.conn.close_sent is not None  # noqa: S101  the base relies on it as well
        code, reason = self.conn.close_sent.code, self.conn.close_sent.reason
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        # A pending close timer keeps the base from closing the transport when the application returns.
        self.close_timer = self.loop.call_later(LINGER_S, self.transport.close)

    def eof_received(self) -> None:
        """The peer will send nothing more."""
        if self.conn.parser_exc is not None:
            self.transport.close()

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
            self.loop.call_later(2 * LINGER_S, transport.abort)
