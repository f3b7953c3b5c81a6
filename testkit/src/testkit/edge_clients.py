"""Many clients of an edge in a process of their own, so that they and the writer of changes do not share one."""

import asyncio
import json
import multiprocessing
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from multiprocessing.connection import Connection
from typing import Any, Protocol

import uvloop

SMALL_WINDOW = 4096


class RefusedError(ConnectionError):
    """The handshake was answered with another status."""

    def __init__(self, head: str) -> None:
        """`head` is the answer without its body."""
        super().__init__(head)
        names = (line.partition(":") for line in head.lower().splitlines())
        self.retry_after_s = next((float(value) for name, _, value in names if name == "retry-after"), 0.0)


class Taker(Protocol):
    """Receives the frames of a socket."""

    def take(self, data: bytes, start: int, end: int) -> None:
        """Takes a text frame's payload, from `start` to before `end`."""


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
        """Asks for the socket."""
        self._transport = transport
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Takes bytes of the handshake, then of frames."""
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
        """Notes that the socket has ended."""
        if not self.opened.done():
            self.opened.set_exception(exc or ConnectionError("the edge closed the connection"))
        if not self.closed.done():
            self.closed.set_result(None)

    def watch(self, number: int, store: str, group: str, interval_ms: int, token: str = "") -> None:
        """Watches a group, under a number that rises on the socket; with a token, only newer rows."""
        watch: dict[str, object] = {"id": number, "store": store, "group": group, "interval_ms": interval_ms}
        watch |= {"times": True} | ({"token": token} if token else {})
        self._transport.write(masked(0x81, json.dumps({"watch": [watch]}).encode()))

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
            self._transport.write(masked(0x8A, data[start:end]))
        elif opcode == 1:
            self._taker.take(data, start, end)
        elif opcode == 8:
            self.close_code = int.from_bytes(data[start : start + 2], "big")
            self._transport.write(masked(0x88, data[start:end]))
            self._transport.close()


class Tally:
    """Counts the frames that all sockets of a crowd have received."""

    def __init__(self) -> None:
        self.frames = 0
        self.ages_ms: list[float] = []
        self.aging = False
        """Whether the age of every change is taken, which costs more than the frame itself."""
        self.last_at = 0.0
        """When the last of those came, in monotonic seconds."""

    def take(self, data: bytes, start: int, end: int) -> None:
        """Counts a frame, if it is about a watch."""
        if not data.startswith(b'{"id"', start):
            return
        self.frames += 1
        if self.aging:
            for row in json.loads(data[start:end]).get("rows", ()):
                committed = datetime.fromisoformat(row["commit_time"]).timestamp()
                self.ages_ms.append((time.time() - committed) * 1000)
                self.last_at = time.monotonic()


def handshake(host: str, secret: str, number: int, consumer: str | None = None) -> bytes:
    """Returns the request that opens a socket: that of another consumer, at another address, for each number."""
    headers = {
        "Host": host,
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "c3RhdGVjYXN0LWJlbmNoMQ==",
        "X-Gateway-Secret": secret,
        "X-Gateway-Claims": "none",
        "X-Consumer-Custom-ID": consumer or f"bench-{number}",
        "X-Consumer-Username": consumer or f"bench-{number}",
        "X-Consumer-Groups": "staff",
        "X-Forwarded-For": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"GET /v1/stream HTTP/1.1\r\n{lines}\r\n".encode()


def masked(first: int, payload: bytes) -> bytes:
    """Returns a frame of a client, of at most 65,535 bytes; `first` is its first byte, with FIN and the opcode."""
    mask = os.urandom(4)
    length = len(payload)
    head = struct.pack("!BB", first, 0x80 | length) if length < 126 else struct.pack("!BBH", first, 0xFE, length)
    repeated = mask * (length // 4 + 1)
    body = (int.from_bytes(payload, "big") ^ int.from_bytes(repeated[:length], "big")).to_bytes(length, "big")
    return head + mask + body


AT_ONCE = 100
"""Handshakes under way at the same time."""
ANSWER_S = 300.0


class Crowd:
    """The sockets. Every method but `close` is called in the crowd's own process."""

    def __init__(self, address: str, secret: str) -> None:
        self._host, _, port = address.partition(":")
        self._port = int(port)
        self._secret = secret
        self._sockets: list[EdgeSocket] = []
        self._tally = Tally()

    async def open(self, count: int, small_window: bool = False, consumer: str | None = None) -> float:
        """Opens so many more sockets, each at another address; returns the seconds it took.

        Each is of another consumer, or all of one `consumer`.
        """
        began = time.monotonic()
        slots = asyncio.Semaphore(AT_ONCE)
        first = len(self._sockets)
        numbers = range(first, first + count)
        requests = [handshake(self._host, self._secret, number, consumer) for number in numbers]
        self._sockets += await asyncio.gather(*(self._open_one(request, slots, small_window) for request in requests))
        return time.monotonic() - began

    async def watch(
        self, store: str, keys: Sequence[str], interval_ms: int, first: int, each: int, end: int | None = None
    ) -> None:
        """Makes new sockets, from `first` to before `end`, which have no watches, watch `each` of the keys, in turn.

        Returns when all have got them.
        """
        sockets = self._sockets[first:end]
        expected = self._tally.frames + each * len(sockets)
        for number, client in enumerate(sockets):
            for turn in range(each):
                client.watch(turn + 1, store, keys[(number * each + turn) % len(keys)], interval_ms)
        while self._tally.frames < expected:  # noqa: ASYNC110  frames are counted, not announced
            await asyncio.sleep(0.02)

    async def listen(self, seconds: float, aging: bool) -> tuple[float, list[float]]:
        """Returns frames a second over the time, and the age of every change in milliseconds if asked for."""
        self._tally.ages_ms, self._tally.aging = [], aging
        began, before = time.monotonic(), self._tally.frames
        await asyncio.sleep(seconds)
        self._tally.aging = False
        return (self._tally.frames - before) / (time.monotonic() - began), self._tally.ages_ms

    async def stop_reading(self, first: int) -> None:
        """Makes sockets from number `first` on read nothing any more."""
        for client in self._sockets[first:]:
            client.stop_reading()

    async def watch_end(self) -> None:
        """Notes the time of the last frame from now on."""
        self._tally.aging = True

    async def ended(self) -> tuple[float, float, set[int | None]]:
        """Waits until all sockets are closed; returns the monotonic times of the last frame and close, and codes."""
        await asyncio.gather(*(client.closed for client in self._sockets))
        return self._tally.last_at, time.monotonic(), {client.close_code for client in self._sockets}

    async def leave(self) -> None:
        """Closes all sockets."""
        sockets, self._sockets = self._sockets, []
        for client in sockets:
            client.close()
        await asyncio.gather(*(client.closed for client in sockets))

    async def _open_one(self, request: bytes, slots: asyncio.Semaphore, small_window: bool) -> EdgeSocket:
        async with slots:
            connection = socket.socket()
            if small_window:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_WINDOW)
            connection.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(connection, (self._host, self._port))
            _, client = await loop.create_connection(lambda: EdgeSocket(self._tally, request), sock=connection)
            await client.opened
            return client


class CrowdProcess:
    """Calls the coroutines of a Crowd, or of other clients, where they live: `ask("open", 5000)`."""

    def __init__(self, connection: "Connection[Any, Any]") -> None:
        self._connection = connection

    def ask(self, method: str, *arguments: object) -> Any:
        """Calls the method in the other process; returns its result, or raises its error. Raises TimeoutError."""
        self._connection.send((method, arguments))
        if not self._connection.poll(ANSWER_S):
            raise TimeoutError(f"the crowd does not answer {method} within {ANSWER_S:g} s")
        error, result = self._connection.recv()
        if error is not None:
            raise error
        return result


@contextmanager
def crowd(address: str, secret: str, kind: Callable[[str, str], object] | None = None) -> Iterator[CrowdProcess]:
    """Yields a crowd, or resumers, without sockets; their process ends with the block."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, (kind or Crowd)(address, secret)), daemon=True)
    process.start()
    theirs.close()
    try:
        yield CrowdProcess(ours)
    finally:
        ours.close()
        process.join(10)
        process.kill()
        process.join()


def _serve(connection: "Connection[Any, Any]", clients: object) -> None:
    uvloop.run(_answer(connection, clients))


async def _answer(connection: "Connection[Any, Any]", clients: object) -> None:
    loop = asyncio.get_running_loop()
    while True:
        try:
            method, arguments = await loop.run_in_executor(None, connection.recv)
        except EOFError:
            return
        try:
            connection.send((None, await getattr(clients, method)(*arguments)))
        except Exception as error:  # noqa: BLE001  the caller gets the error
            connection.send((error, None))
