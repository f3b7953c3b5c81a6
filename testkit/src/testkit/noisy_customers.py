"""Customers that take all that an edge gives them, in a process of their own: one that floods it, one that calls it."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

from testkit.edge_clients import handshake, masked

FLOODING_SOCKETS = 20
CALLERS = 4
PINGS = bytes.fromhex("898000000000") * 10_000
WATCHES_OF_A_FRAME = 50


class NoisyCustomers:
    """The customers. Every method is called in a process of their own; see CrowdProcess."""

    def __init__(self, address: str, secret: str) -> None:
        self._host, _, port = address.partition(":")
        self._port = int(port)
        self._secret = secret
        self._tasks: list[asyncio.Task[None]] = []
        self._closed = 0

    async def flood(self, store: str, keys: Sequence[str]) -> None:
        """Sends pings, or watches and their ends, without a pause, by sockets of one consumer."""
        for number in range(FLOODING_SOCKETS):
            self._begin(self._send(number, (lambda: PINGS) if number % 2 else watches_of(store, keys)))

    async def call(self, path: str) -> None:
        """Calls a path again and again, as one consumer with a few connections."""
        for _ in range(CALLERS):
            self._begin(self._call(path))

    async def stop(self) -> tuple[int, int]:
        """Ends all of them; returns how many of them had failed before, and how many sockets the edge has closed."""
        failed = sum(task.done() for task in self._tasks)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        return failed, self._closed

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(work))

    async def _send(self, number: int, content: Callable[[], bytes]) -> None:
        """Floods by one socket after the other: the edge may end one that sends too much."""
        while True:
            reader, writer = await asyncio.open_connection(self._host, self._port)
            writer.write(handshake(self._host, self._secret, number, "noisy-flood"))
            reading = asyncio.create_task(_forget(reader))
            try:
                with suppress(ConnectionError):
                    while not reading.done():
                        writer.write(content())
                        await writer.drain()
            finally:
                reading.cancel()
                writer.close()
            self._closed += 1

    async def _call(self, path: str) -> None:
        lines = handshake(self._host, self._secret, 0, "noisy-calls").replace(b"/v1/stream", path.encode())
        request = lines.replace(b"Upgrade: websocket\r\nConnection: Upgrade\r\n", b"")
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            while True:
                writer.write(request)
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                await reader.readexactly(int(head.partition("content-length: ")[2].partition("\r\n")[0]))
                if not head.startswith("http/1.1 200"):
                    raise ConnectionError(head)
        finally:
            writer.close()


def watches_of(store: str, keys: Sequence[str]) -> Callable[[], bytes]:
    """Returns a function that makes frames: each ends the watches of the one before, and begins as many."""
    numbers = count(1)

    def frame() -> bytes:
        first = next(numbers) * WATCHES_OF_A_FRAME
        ids = range(first, first + WATCHES_OF_A_FRAME)
        watches = [{"id": each, "store": store, "group": keys[each % len(keys)], "interval_ms": 0} for each in ids]
        ended = [each - WATCHES_OF_A_FRAME for each in ids if first > WATCHES_OF_A_FRAME]
        return masked(0x81, json.dumps({"unwatch": ended, "watch": watches}).encode())

    return frame


async def _forget(reader: asyncio.StreamReader) -> None:
    while await reader.read(65_536):
        pass
