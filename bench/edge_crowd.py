"""Many clients of an edge in a process of their own, so that they and the writer of changes do not share one."""

import asyncio
import multiprocessing
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import uvloop

from bench.edge_resumers import Resumers
from bench.edge_socket import SMALL_WINDOW, EdgeSocket, Tally, handshake

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

    async def subscribe(
        self, store: str, keys: Sequence[str], interval_ms: int, first: int, each: int, end: int | None = None
    ) -> None:
        """Sockets from number `first` to before `end` watch `each` of the keys, in turn.

        Returns when all have been told of them.
        """
        sockets = self._sockets[first:end]
        expected = self._tally.frames + 2 * each * len(sockets)
        for number, client in enumerate(sockets):
            for turn in range(each):
                client.subscribe(store, keys[(number * each + turn) % len(keys)], interval_ms)
        while self._tally.frames < expected:  # noqa: ASYNC110  frames are counted, not announced
            await asyncio.sleep(0.02)

    async def listen(self, seconds: float, aging: bool) -> tuple[float, list[float]]:
        """Frames a second over the time, and the age of every change in milliseconds if asked for."""
        self._tally.ages_ms, self._tally.aging = [], aging
        began, before = time.monotonic(), self._tally.frames
        await asyncio.sleep(seconds)
        self._tally.aging = False
        return (self._tally.frames - before) / (time.monotonic() - began), self._tally.ages_ms

    async def stop_reading(self, first: int) -> None:
        """Sockets from number `first` on read nothing any more."""
        for client in self._sockets[first:]:
            client.stop_reading()

    async def watch_end(self) -> None:
        """From now on it counts when the last frame comes."""
        self._tally.aging = True

    async def ended(self) -> tuple[float, float, set[int | None]]:
        """When all sockets are closed: the monotonic times of the last frame and of the last close, and the codes."""
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
    """Calls the methods of a Crowd, or of Resumers, where they live: `ask("open", 5000)`."""

    def __init__(self, connection: "Connection[Any, Any]") -> None:
        self._connection = connection

    def ask(self, method: str, *arguments: object) -> Any:
        """Returns what the method returns there; raises what it raises."""
        self._connection.send((method, arguments))
        if not self._connection.poll(ANSWER_S):
            raise TimeoutError(f"the crowd does not answer {method} within {ANSWER_S:g} s")
        error, result = self._connection.recv()
        if error is not None:
            raise error
        return result


@contextmanager
def crowd(address: str, secret: str, kind: type[Crowd | Resumers] = Crowd) -> Iterator[CrowdProcess]:
    """A crowd, or resumers, without sockets; their process ends with the block."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, kind(address, secret)), daemon=True)
    process.start()
    theirs.close()
    try:
        yield CrowdProcess(ours)
    finally:
        ours.close()
        process.join(10)
        process.kill()
        process.join()


def _serve(connection: "Connection[Any, Any]", clients: Crowd | Resumers) -> None:
    uvloop.run(_answer(connection, clients))


async def _answer(connection: "Connection[Any, Any]", clients: Crowd | Resumers) -> None:
    loop = asyncio.get_running_loop()
    while True:
        try:
            method, arguments = await loop.run_in_executor(None, connection.recv)
        except EOFError:
            return
        try:
            connection.send((None, await getattr(clients, method)(*arguments)))
        except Exception as error:  # noqa: BLE001  the one who asked is told
            connection.send((error, None))
