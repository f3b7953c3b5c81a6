"""A client's socket as cheap as it can be: it counts frames, and takes their age when it is told to."""

import asyncio
import json
import os
import struct
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

SMALL_WINDOW = 4096


class RefusedError(ConnectionError):
    """The handshake was answered with another status."""

    def __init__(self, head: str) -> None:
        """`head` is the answer without its body."""
        super().__init__(head)
        names = (line.partition(":") for line in head.lower().splitlines())
        self.retry_after_s = next((float(value) for name, _, value in names if name == "retry-after"), 0.0)


class Taker(Protocol):
    """Who takes the frames of a socket."""

    def take(self, data: bytes, start: int, end: int) -> None:
        """A text frame's payload, from `start` to before `end`."""


class EdgeSocket(asyncio.Protocol):
    """One WebSocket to an edge, straight and unencrypted. Whole messages in single frames only, as edges send them."""

    def __init__(self, taker: Taker, request: bytes) -> None:
        """`request` opens the socket."""
        loop = asyncio.get_running_loop()
        self.opened: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self.close_code: int | None = None
        """The code with which the edge has closed the socket."""
        self._taker = taker
        self._request = request
        self._transport: Any = None
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there: asks for the socket."""
        self._transport = transport
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Bytes of the handshake, then of frames."""
        data = self._buffer + data
        if not self.opened.done():
            head, end, data = data.partition(b"\r\n\r\n")
            if not end:
                self._buffer = head
                return
            if b" 101 " not in head.split(b"\r\n", 1)[0]:
                self.opened.set_exception(RefusedError(head.decode("latin-1")))
                return
            self.opened.set_result(None)
        self._buffer = self._take_frames(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket has ended."""
        if not self.opened.done():
            self.opened.set_exception(exc or ConnectionError("the edge closed the connection"))
        if not self.closed.done():
            self.closed.set_result(None)

    def subscribe(self, store: str, key: str, interval_ms: int, after: Mapping[str, str] | None = None) -> None:
        """Asks to be told of a key, or only of what is newer than a position."""
        request = {"store": store, "key": {"group": key}, "interval_ms": interval_ms}
        frame = {"subscribe": request if after is None else {**request, "after": after}}
        self._transport.write(_masked(0x81, json.dumps(frame).encode()))

    def stop_reading(self) -> None:
        """Takes nothing more from the kernel, as a client does that hangs."""
        self._transport.pause_reading()

    def close(self) -> None:
        """Ends the socket at once."""
        self._transport.abort()

    def _take_frames(self, data: bytes) -> bytes:
        at, end = 0, len(data)
        while end - at >= 2:
            length, head = data[at + 1] & 0x7F, 2
            if length == 126:
                if end - at < 4:
                    break
                length, head = int.from_bytes(data[at + 2 : at + 4], "big"), 4
            elif length == 127:
                if end - at < 10:
                    break
                length, head = int.from_bytes(data[at + 2 : at + 10], "big"), 10
            if end - at < head + length:
                break
            self._take(data[at] & 0x0F, data, at + head, at + head + length)
            at += head + length
        return data[at:]

    def _take(self, opcode: int, data: bytes, start: int, end: int) -> None:
        if opcode == 9:
            self._transport.write(_masked(0x8A, data[start:end]))
        elif opcode == 1:
            self._taker.take(data, start, end)
        elif opcode == 8:
            self.close_code = int.from_bytes(data[start : start + 2], "big")
            self._transport.write(_masked(0x88, data[start:end]))
            self._transport.close()


class Tally:
    """What all sockets of a crowd have been told."""

    def __init__(self) -> None:
        self.frames = 0
        self.ages_ms: list[float] = []
        self.aging = False
        """Whether the age of every change is taken, which costs more than the frame itself."""
        self.last_at = 0.0
        """When the last of those came, in monotonic seconds."""

    def take(self, data: bytes, start: int, end: int) -> None:
        """Counts a frame."""
        self.frames += 1
        if self.aging:
            changed = json.loads(data[start:end]).get("changed")
            if changed is not None:
                committed = datetime.fromisoformat(changed["commit_time"]).timestamp()
                self.ages_ms.append((time.time() - committed) * 1000)
                self.last_at = time.monotonic()


def handshake(host: str, secret: str, number: int, consumer: str | None = None) -> bytes:
    """The request that opens a socket: that of another consumer, at another address, for each number."""
    headers = {
        "Host": host,
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "c3RhdGVjYXN0LWJlbmNoMQ==",
        "X-Gateway-Secret": secret,
        "X-Consumer-Custom-ID": consumer or f"bench-{number}",
        "X-Consumer-Groups": "staff",
        "X-Forwarded-For": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"GET /v1/stream HTTP/1.1\r\n{lines}\r\n".encode()


def _masked(first: int, payload: bytes) -> bytes:
    mask = os.urandom(4)
    length = len(payload)
    head = struct.pack("!BB", first, 0x80 | length) if length < 126 else struct.pack("!BBH", first, 0xFE, length)
    repeated = mask * (length // 4 + 1)
    body = (int.from_bytes(payload, "big") ^ int.from_bytes(repeated[:length], "big")).to_bytes(length, "big")
    return head + mask + body
