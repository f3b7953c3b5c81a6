"""Clients that hold a token each, and come back by themselves when their edge dies."""

import asyncio
import json
import time
from collections.abc import Sequence
from typing import NamedTuple

from statecast_client.push.protocol import Backoff
from testkit.edge_clients import EdgeSocket, RefusedError, handshake

OPENING_S = 10.0
"""How long a handshake may take, as with the Python client."""
PAUSE_S = 0.05
SETTLING_S = 20.0


class ResumeCount(NamedTuple):
    """The counts of all resumers since the last new count."""

    resumed: int
    """Watches that went on where they had been."""
    snapshots: int
    repeated: int
    """Rows that their client had already."""
    refused: int
    """Handshakes that were answered with another status than 101."""
    resumed_at: float
    """When the last of all watches was in force again, in monotonic seconds."""


class Resumer:
    """A client with one key: connects, resumes after its token, and does so again when the connection ends."""

    def __init__(self, store: str, key: str, interval_ms: int) -> None:
        self.sequence = 0
        """The number in the newest row that it has got."""
        self._store = store
        self._key = key
        self._interval_ms = interval_ms
        self._token = ""
        self._backoff = Backoff()
        self._watches = 0
        self.begin_count()

    def begin_count(self) -> None:
        """Resets the counts and keeps the token."""
        self.resumed = self.snapshots = self.repeated = self.refused = 0
        self.resumed_at: float | None = None

    async def run(self, host: str, port: int, request: bytes) -> None:
        """Goes on until it is cancelled. Waits after a failure as the Python client does, and as long as it is told."""
        while True:
            asked_for = 0.0
            try:
                client = await self._connect(host, port, request)
                self._watch(client)
                await client.closed
            except RefusedError as error:
                self.refused += 1
                asked_for = error.retry_after_s
            except OSError:
                asked_for = 0.0  # nobody listens, or answers in time
            await asyncio.sleep(max(asked_for, self._backoff.next()))

    def _watch(self, client: EdgeSocket) -> None:
        self._client = client
        self._watches += 1
        client.watch(self._watches, self._store, self._key, self._interval_ms, self._token)

    async def _connect(self, host: str, port: int, request: bytes) -> EdgeSocket:
        """Opens a socket. Raises RefusedError, or another OSError, also when that takes too long."""
        async with asyncio.timeout(OPENING_S):
            loop = asyncio.get_running_loop()
            _, client = await loop.create_connection(lambda: EdgeSocket(self, request), host, port)
            try:
                await client.opened
            except BaseException:
                client.close()
                raise
        return client

    def take(self, data: bytes, start: int, end: int) -> None:
        """Takes a frame; those without an id are about the socket. Asks again for a watch that ends, once it may."""
        frame = json.loads(data[start:end])
        if "id" not in frame:
            return
        self._backoff.reset()
        if "watching" in frame:
            is_resumed = frame["watching"].get("resumed", False)
            self.resumed += is_resumed
            self.snapshots += not is_resumed
            self.resumed_at = time.monotonic()
        for row in frame.get("rows", ()):
            sequence = int(row["row"]["tracking_number"])
            self.repeated += sequence <= self.sequence
            self.sequence = sequence
        self._token = frame.get("token", self._token)
        if "ended" in frame:
            asyncio.get_running_loop().call_later(frame["ended"]["retry_ms"] / 1000, self._watch, self._client)


class Resumers:
    """All of them. Every method is called in a process of their own; see CrowdProcess."""

    def __init__(self, address: str, secret: str) -> None:
        self._host, _, port = address.partition(":")
        self._port = int(port)
        self._secret = secret
        self._resumers: list[Resumer] = []
        self._running: list[asyncio.Task[None]] = []

    async def begin(self, store: str, keys: Sequence[str], interval_ms: int) -> None:
        """Begins with one for each key; returns when all have their rows."""
        self._resumers = [Resumer(store, key, interval_ms) for key in keys]
        for number, each in enumerate(self._resumers):
            request = handshake(self._host, self._secret, number)
            self._running.append(asyncio.create_task(each.run(self._host, self._port, request)))
        while not all(each.sequence for each in self._resumers):  # noqa: ASYNC110  frames are not announced
            await asyncio.sleep(PAUSE_S)

    async def begin_count(self) -> None:
        """Begins a new count."""
        for each in self._resumers:
            each.begin_count()

    async def resumed(self) -> ResumeCount:
        """Returns when all have their watches again."""
        while any(each.resumed_at is None for each in self._resumers):  # noqa: ASYNC110  as above
            await asyncio.sleep(PAUSE_S)
        return self._count()

    async def settled(self, newest: Sequence[int]) -> tuple[ResumeCount, int]:
        """Waits until all have the newest row of their keys, or a while; also returns how many have not."""
        deadline = time.monotonic() + SETTLING_S
        while (missing := self._missing(newest)) and time.monotonic() < deadline:  # noqa: ASYNC110  as above
            await asyncio.sleep(PAUSE_S)
        return self._count(), missing

    def _missing(self, newest: Sequence[int]) -> int:
        return sum(each.sequence != number for each, number in zip(self._resumers, newest, strict=True))

    def _count(self) -> ResumeCount:
        return ResumeCount(
            sum(each.resumed for each in self._resumers),
            sum(each.snapshots for each in self._resumers),
            sum(each.repeated for each in self._resumers),
            sum(each.refused for each in self._resumers),
            max(each.resumed_at or 0.0 for each in self._resumers),
        )
