"""A client's connection that nothing reads but who asks for a frame: in between, even the kernel takes little."""

import socket
import ssl
from collections import deque
from collections.abc import Mapping
from urllib.parse import urlsplit

from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

KERNEL_HOLDS = 8192
"""Bytes that the kernel is to take unasked. It is told before it connects, as windows are agreed upon then."""

AT_ONCE = 65_536


class UnreadConnection:
    """As websockets' own client, which would read on a thread of its own; pings are answered while one reads."""

    def __init__(self, url: str, headers: Mapping[str, str], tls: ssl.SSLContext, timeout: float) -> None:
        """Connects and opens the socket. Raises websockets' InvalidStatus when the handshake is refused."""
        self._protocol = ClientProtocol(parse_uri(url), max_size=None)
        self._texts: deque[str] = deque()
        address = urlsplit(url)
        plain = socket.socket()
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, KERNEL_HOLDS)
        plain.settimeout(timeout)
        plain.connect((address.hostname, address.port))
        self._socket = tls.wrap_socket(plain, server_hostname=address.hostname)
        request = self._protocol.connect()
        request.headers.update(headers)
        self._protocol.send_request(request)
        self._flush()
        while self._protocol.state is State.CONNECTING:
            self._take()

    def send(self, text: str) -> None:
        """Sends a frame of text."""
        self._protocol.send_text(text.encode())
        self._flush()

    def recv(self, timeout: float | None = None) -> str:
        """The next frame; TimeoutError when nothing comes for `timeout` seconds, ConnectionClosed at the end."""
        self._socket.settimeout(timeout)
        while not self._texts:
            self._take()
        return self._texts.popleft()

    def close(self) -> None:
        """Lets go without a farewell."""
        self._socket.close()

    def _take(self) -> None:
        try:
            data = self._socket.recv(AT_ONCE)
        except ConnectionError:
            data = b""
        if data:
            self._protocol.receive_data(data)
        else:
            self._protocol.receive_eof()
        for event in self._protocol.events_received():
            if isinstance(event, Frame) and event.opcode is Opcode.TEXT:
                self._texts.append(bytes(event.data).decode())
        if self._protocol.handshake_exc is not None:
            raise self._protocol.handshake_exc
        if not data:
            raise self._protocol.close_exc
        self._flush()

    def _flush(self) -> None:
        try:
            self._socket.sendall(b"".join(self._protocol.data_to_send()))
        except ConnectionError:
            return  # what is left to read says why
