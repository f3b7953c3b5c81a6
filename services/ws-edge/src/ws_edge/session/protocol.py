"""uvicorn's protocols, with shared frames, and an end for clients that do not read or do not finish their request."""

import asyncio
import select
import socket
from base64 import b64decode
from typing import Any
from urllib.parse import unquote

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.protocol import OPEN
from websockets.utils import accept_key

from ws_edge.codec.frames import FRAMES, HAS_READ
from ws_edge.errors import CONTROL, LOST, NO_PONG, by_protocol
from ws_edge.session.waiting import Inbox, Signal

CONTROL_EVENT: Any = {"type": "websocket.receive", CONTROL: True}

SLICE_BYTES = 1024
"""Bytes parsed at a time: a frame may have six bytes, and a read a quarter of a million."""

MAX_LATE_FRAMES = 1000
"""Frames that may come after this side has closed; after more, the peer is cut off."""

LINGER_S = 1.0
"""How long the last bytes of a socket may take to leave, and those of a refused frame to arrive."""

REQUEST_TIMEOUT_S = 10.0
"""How long a request, which may open a socket, may take from the connection or its first byte to its last."""

BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def has_hung_up(transport: Any) -> bool:
    """Returns whether the peer has closed the connection, although what it sent before is not all read.

    When everybody reconnects, many handshakes are read after their clients have given up and sent others.
    """
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), select.POLLRDHUP)
    return bool(poll.poll(0))


class EdgeHttpProtocol(HttpToolsProtocol):
    """As its base, but closes a connection if its request is not whole in time, and takes no trailers for headers.

    The base waits for ever for the first request, and for the rest of any (https://github.com/Kludex/uvicorn/issues/157
    and 160).
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        if self._timer is None:
            self._expect_request()
        super().data_received(data)

    def on_headers_complete(self) -> None:
        # The base would add a body's trailers to the same list, after it was checked.
        self.scope["headers"] = tuple(self.headers)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._forget_timer()
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        self._forget_timer()
        if has_hung_up(self.transport):
            self.transport.abort()
            return
        self.connections.discard(self)
        protocol: Any = self.ws_protocol_class
        opening = protocol(config=self.config, server_state=self.server_state, app_state=self.app_state)
        opening.connection_made(self.transport)
        opening.upgrade(self.scope, self.url)
        self.transport.set_protocol(opening)
        self.parser = None  # type: ignore[assignment]  # as the base does at other ends: it refers back

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_timer()
        super().connection_lost(exc)

    def _expect_request(self) -> None:
        self._timer = self.loop.call_later(REQUEST_TIMEOUT_S, self.transport.abort)

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class EdgeSocketProtocol(WebSocketsSansIOProtocol):
    """As its base, with ten differences.

    - It sends any number of frames in one write, as they are: their headers are encoded with them.
    - The base closes a transport gracefully, which never ends when the peer's window is full: the connection, its
      buffer and its subscriptions would stay until TCP gives up. Here a transport that is not flushed
      soon is aborted.
    - The base closes at once after a frame that breaks the protocol, for example one that is too large. The peer's
      further bytes then make the kernel reset the connection, and the peer never reads the close code. Here the
      rest is read and thrown away for a moment.
    - The base tells the application of an unanswered ping, and of a lost connection, as if the peer had closed without
      a code. Here each has its own, so that operators see which it was.
    - The base has a handshake parsed once more by the library, and its answer made there, which took a fifth of the
      CPU of a resumption. Here it is the request that was parsed.
    - The base parses all that was read at once, and tells the application of messages alone. A client that sends empty
      pings, pongs or fragments as fast as it can would hold the event loop for seconds, and count for nothing. Here
      little is parsed at a time, every frame is an event, and none is parsed before the application asks for it.
    - The base reads on from a client that does not read itself, and waits a bounded time for a pong that it has not
      read. Here nothing is read while more than `send_buffer` waits to be sent, and the time of a pong begins anew with
      each frame that is read and whenever the client has read; while the application asks for none, it rests.
    - The base logs an error for each handshake that the application refuses with an answer, and a traceback for text
      that is not UTF-8. Here neither is an error of the service.
    - The base keeps the handshake, and an event and a queue with room for many. Here its scope and headers are gone
      once it is answered, and an idle socket takes half of the memory.
    - Data for a client that reads slowly is bounded by `send_buffer` bytes here, and as many in the kernel; the
      kernel alone would take megabytes of frames that are old when they are read.
    """

    def __init__(self, *arguments: Any, send_buffer: int, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.queue, self.writable = Inbox(), Signal()  # type: ignore[assignment]  # all that the base calls
        self._send_buffer = send_buffer
        self._unparsed = bytearray()
        self._unread = 0
        """How many bytes waited to be sent when the client had last read a good part of them."""
        self._late_frames = 0
        self._key = ""
        self._is_alive = False
        """Whether the client has sent or read something since a pong was last awaited in vain."""

    def connection_made(self, transport: Any) -> None:
        # The base looks up addresses, which the handshake has.
        self.connections.add(self)
        self.transport = transport
        transport.set_write_buffer_limits(high=self._send_buffer)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer)

    def upgrade(self, request: Any, url: bytes) -> None:
        """Asks the application whether to open a socket for a request, of which `request` is the scope.

        Answers with 400 when it is none that opens a socket.
        """
        headers = request["headers"]
        values = dict(headers)
        self._key = values.get(b"sec-websocket-key", b"").decode("latin-1")
        has_body = b"transfer-encoding" in values or values.get(b"content-length", b"0") != b"0"
        is_known = request["http_version"] == "1.1" and values.get(b"sec-websocket-version") == b"13"
        if request["method"] != "GET" or has_body or not is_known or not _is_key(self._key) or not url.isascii():
            self.handshake_complete = self.close_sent = True
            self.transport.write(BAD_REQUEST)
            self.transport.close()
            return
        self.conn.state, self.handshake_initiated = OPEN, True
        self.conn.parser = self.conn.parse()
        next(self.conn.parser)
        raw_path, _, query_string = url.partition(b"?")
        offers = b",".join(value for name, value in headers if name == b"sec-websocket-protocol").decode("latin-1")
        self.scope: Any = {
            "type": "websocket",
            "path": unquote(raw_path.decode()),
            "raw_path": raw_path,
            "query_string": query_string,
            "headers": headers,
            "subprotocols": [offer.strip() for offer in offers.split(",") if offer],
            HAS_READ: self.has_read,
        }
        self.queue.put_nowait({"type": "websocket.connect"})
        task = self.loop.create_task(self.run_asgi())
        task.add_done_callback(self.on_task_complete)
        self.tasks.add(task)

    async def send(self, message: Any) -> None:
        """Sends an ASGI event; raises ClientDisconnected, an OSError, when the socket is closed."""
        if self.handshake_complete and self.close_sent:
            raise ClientDisconnected
        if message["type"] != "websocket.send" or not self.handshake_complete:
            if message["type"] == "websocket.accept":
                self._accept(message["subprotocol"])
            else:
                await super().send(message)
            self.handshake_complete = self.handshake_complete or self.close_sent
            if self.handshake_complete:
                self.scope.clear()
            self._parse_later()
            return
        if not self.writable.is_set():
            await self.writable.wait()
        if self.disconnected or self.close_sent or self.transport.is_closing():
            raise ClientDisconnected
        self.transport.write(b"".join(message[FRAMES]))

    async def receive(self) -> Any:
        if self.read_paused and self.queue.empty():
            await self.writable.wait()
            self.read_paused = False
            self._is_alive = True
            self._parse_later()
        return await self.queue.get()

    def data_received(self, data: bytes) -> None:
        self._unparsed += data
        self._parse()

    def has_read(self) -> bool:
        """Returns whether nothing waits for the client, or it has read `send_buffer` bytes since this last was so.

        To be called every second. One frame may be far larger than a slow client reads in the time of a pong, and the
        transport only says when nearly all of it has left.
        """
        if self.writable.is_set():
            return True
        unread = self.transport.get_write_buffer_size()
        if unread > self._unread - self._send_buffer:
            return False
        self._unread, self._is_alive = unread, True
        return True

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.transport.get_write_buffer_size()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._is_alive = True

    def _parse_later(self) -> None:
        """Goes on with the unparsed bytes when others have had their turn, and then reads on."""
        if not self.disconnected:
            self.loop.call_soon(self._parse_and_read)

    def _parse_and_read(self) -> None:
        self._parse()
        if not self._is_held():
            self.transport.resume_reading()

    def _parse(self) -> None:
        """Parses the unparsed bytes, until that makes an event."""
        while self._unparsed and not self._is_held():
            part = bytes(self._unparsed[:SLICE_BYTES])
            del self._unparsed[:SLICE_BYTES]
            if self.conn.parser_exc is None:
                super().data_received(part)

    def _is_held(self) -> bool:
        return self.read_paused or self.disconnected or self.transport.is_closing()

    def _accept(self, subprotocol: str | None) -> None:
        if self.transport.is_closing():
            return
        chosen = f"Sec-WebSocket-Protocol: {subprotocol}\r\n" if subprotocol else ""
        head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        accept = f"Sec-WebSocket-Accept: {accept_key(self._key)}\r\n"
        self.transport.write(f"{head}{accept}{chosen}\r\n".encode())
        self.handshake_complete = True
        self.start_keepalive()

    def handle_ping(self) -> None:
        answer = b"".join(self.conn.data_to_send())
        if self.handshake_complete and not self.close_sent:
            self.transport.write(answer)
        self._count_frame()

    def handle_pong(self, event: Frame) -> None:
        if self.pending_ping_payload is not None and bytes(event.data) == self.pending_ping_payload:
            super().handle_pong(event)
        else:
            self._count_frame()

    def handle_cont(self, event: Frame) -> None:
        if event.data or event.fin:  # the size limit of a message does not bound its empty parts
            super().handle_cont(event)
        if not event.fin:
            self._count_frame()

    def handle_text(self, event: Frame) -> None:
        super().handle_text(event)
        if not event.fin:
            self._count_frame()

    def handle_bytes(self, event: Frame) -> None:
        super().handle_bytes(event)
        if not event.fin:
            self._count_frame()

    def _count_frame(self) -> None:
        """Counts a frame that is no message, in the application; after the close, counts a late frame here."""
        if self.close_sent:
            self._late_frames += 1
            if self._late_frames > MAX_LATE_FRAMES:
                self.transport.abort()
            return
        self.queue.put_nowait(CONTROL_EVENT)
        if not self.read_paused:
            self.read_paused = True
            self.transport.pause_reading()

    def send_receive_event_to_app(self) -> None:
        """Passes on a whole message. The base logs a traceback for text that is not UTF-8."""
        if self.curr_msg_data_type == "text" and not self.close_sent:
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self.conn.send_close(1007, "invalid UTF-8")
                self.handle_parser_exception()
                return
        super().send_receive_event_to_app()
        if self.close_sent:
            self._count_frame()

    def handle_parser_exception(self) -> None:
        """Handles a breach of the protocol by the peer; the library has made the close frame."""
        assert self.conn.close_sent is not None  # noqa: S101  the base relies on it as well
        code, reason = self.conn.close_sent.code, self.conn.close_sent.reason
        self.queue.put_nowait(by_protocol(code, reason))
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        # A pending close timer keeps the base from closing the transport when the application returns.
        self.close_timer = self.loop.call_later(LINGER_S, self.transport.close)

    def eof_received(self) -> None:
        if self.conn.parser_exc is not None:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Reports the loss of the connection, unless a close frame came before: the first event of an end counts."""
        self.queue.put_nowait({"type": "websocket.disconnect", "code": LOST})
        super().connection_lost(exc)
        # A part that refers back to its owner would wait for the cycle collector, which runs seldom.
        self.conn.parser.close()
        self.conn.parser_exc = None

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        super().on_task_complete(task)
        self._abort_later()

    def keepalive_timeout(self) -> None:
        is_unread = self.read_paused and self.writable.is_set()
        if self._is_alive or is_unread:
            self._is_alive = False
            self.pong_timer = self.loop.call_later(self.config.ws_ping_timeout or 0.0, self.keepalive_timeout)
            return
        if not self.close_sent and not self.transport.is_closing():
            self.queue.put_nowait(by_protocol(NO_PONG, "keepalive ping timeout"))
        super().keepalive_timeout()
        self._abort_later()

    def shutdown(self) -> None:
        super().shutdown()
        self._abort_later()

    def _abort_later(self) -> None:
        transport: Any = self.transport
        if not self.disconnected and transport.get_write_buffer_size():
            self.loop.call_later(2 * LINGER_S, transport.abort)


def _is_key(text: str) -> bool:
    """Returns whether a handshake may have this key: 16 bytes in base64."""
    try:
        return len(b64decode(text, validate=True)) == 16
    except ValueError:
        return False
