"""A client's socket as cheap as it can be: it counts frames, and takes their age when it is told to."""

import asyncio
import json
import os
import struct
import time
from datetime import datetime
from typing import Any

SMALL_WINDOW = 4096


class EdgeSocket(asyncio.Protocol):
    """One WebSocket to an edge, straight and unencrypted. Whole messages in single frames only, as edges send them."""

    def __init__(self, tally: "Tally", request: bytes) -> None:
        """`request` opens the socket."""
        loop = asyncio.get_running_loop()
        self.opened: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self._tally = tally
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
                self.opened.set_exception(ConnectionError(head.decode("latin-1")))
                return
            self.opened.set_result(None)
        self._buffer = self._take_frames(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket has ended."""
        if not self.opened.done():
            self.opened.set_exception(exc or ConnectionError("the edge closed the connection"))
        if not self.closed.done():
            self.closed.set_result(None)

    def subscribe(self, store: str, key: str, interval_ms: int) -> None:
        """Asks to be told of a key."""
        frame = {"subscribe": {"store": store, "key": {"group": key}, "interval_ms": interval_ms}}
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
            self._tally.take(data, start, end)


class Tally:
    """What all sockets of a crowd have been told."""

    def __init__(self) -> None:
        self.frames = 0
        self.ages_ms: list[float] = []
        self.aging = False
        """Whether the age of every change is taken, which costs more than the frame itself."""

    def take(self, data: bytes, start: int, end: int) -> None:
        """Counts a frame."""
        self.frames += 1
        if self.aging:
            changed = json.loads(data[start:end]).get("changed")
            if changed is not None:
                committed = datetime.fromisoformat(changed["commit_time"]).timestamp()
                self.ages_ms.append((time.time() - committed) * 1000)


def _masked(first: int, payload: bytes) -> bytes:
    mask = os.urandom(4)
    length = len(payload)
    head = struct.pack("!BB", first, 0x80 | length) if length < 126 else struct.pack("!BBH", first, 0xFE, length)
    repeated = mask * (length // 4 + 1)
    body = (int.from_bytes(payload, "big") ^ int.from_bytes(repeated[:length], "big")).to_bytes(length, "big")
    return head + mask + body
