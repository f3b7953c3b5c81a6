"""One socket of an edge without a network. The test sets its time, and answers its questions."""

import asyncio
from typing import Any, Self

from testkit.ws_edge.answers import ALICE
from testkit.ws_edge.edge import DEFAULTS, SECRET, Clock
from testkit.ws_edge.stream import BINARY
from ws_edge.auth.gateway import Caller
from ws_edge.auth.quotas import Quota, Quotas
from ws_edge.auth.tickets import Tickets
from ws_edge.codec.frames import FRAMES, TEXT, StreamCodec
from ws_edge.metrics import Metrics
from ws_edge.model.authorization import Consumer
from ws_edge.model.stores import Store
from ws_edge.session.context import SessionContext
from ws_edge.session.session import Session
from ws_edge.settings import Settings
from ws_edge.upstream.queries import Progress, RangeResult
from ws_edge.watches.hub import Hub

TURNS = 10
"""How many turns of the loop it takes until all tasks wait."""
PLENTY = Quota(sockets=10, rows=10_000, frames_per_s=10_000, burst_s=1, sockets_per_s=10_000)


class OneSocket:
    """A session with one hub. A StreamClient can use it as its connection: `StreamClient(one_socket)`."""

    def __init__(
        self,
        *stores: Store,
        binary: bool = False,
        consumer: Consumer = ALICE,
        beside: "OneSocket | None" = None,
        **settings: Any,
    ) -> None:
        """The socket may watch these stores. `beside` is another one of the same hub, which shares its time."""
        self.clock: Clock = Clock() if beside is None else beside.clock
        self.wall_clock: Clock = Clock() if beside is None else beside.wall_clock
        self.hub: Hub = Hub(self.clock, 0.025) if beside is None else beside.hub
        self.caller = Caller(consumer)
        self.tickets = Tickets([SECRET], self.wall_clock, 60.0)
        self.subprotocol = BINARY if binary else ""
        self.reads = asyncio.Event()
        """Set while the client takes frames."""
        self.has_read = False
        """Whether it has read a part of a frame lately."""
        self.reads.set()
        self._sent: asyncio.Queue[Any] = asyncio.Queue()
        self._received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        context = SessionContext(
            self.hub,
            {store.name: store for store in stores},
            Settings.model_validate(DEFAULTS | settings),
            Metrics(),
            self.tickets,
            self.clock,
            self.wall_clock,
        )
        reservation = Quotas(PLENTY, PLENTY, self.clock).reserve(self.caller)
        codec = StreamCodec(binary=binary)
        self.session = Session(context, self.caller, reservation, codec, lambda: self.has_read, self._send)

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.session.run(self._received.get))
        await settle()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._received.put_nowait({"type": "websocket.disconnect", "code": 1000})
        await self._task

    @property
    def unread(self) -> int:
        """The number of frames that the client has not read."""
        return self._sent.qsize()

    async def send(self, content: str | bytes) -> None:
        """Sends a frame of the client, and lets the edge handle it as far as it can."""
        self.receive(content)
        await settle()

    def receive(self, content: str | bytes) -> None:
        """Sends a frame of the client."""
        self._received.put_nowait(
            {"type": "websocket.receive", "text" if isinstance(content, str) else "bytes": content}
        )

    async def recv(self) -> str | bytes:
        """Returns the next frame of the edge."""
        return message_of(await self._sent.get())

    async def next_event(self) -> Any:
        """Returns what comes next from the edge, a frame or the event of the close."""
        return await self._sent.get()

    async def passes(self, seconds: int) -> None:
        """Lets time pass, second by second."""
        for _ in range(seconds):
            self.clock.now += 1
            self.wall_clock.now += 1
            self.hub.advance()
            self.session.tick(self.clock.now)
            await settle()

    async def answered(self, *answers: RangeResult | Progress) -> None:
        """Answers the questions that are due, in the order in which they were asked."""
        for watch, answer in zip(self.hub.take_due(), answers, strict=True):
            if isinstance(answer, RangeResult):
                self.hub.answered(watch, answer)
            else:
                self.hub.unchanged(watch, answer)
        await settle()

    async def _send(self, event: dict[str, Any]) -> None:
        await self.reads.wait()
        for frame in event.get(FRAMES, [event]):
            self._sent.put_nowait(frame)


def message_of(frame: bytes) -> str | bytes:
    """Returns the message of a frame of the edge, as it goes over the wire."""
    content = frame[{126: 4, 127: 10}.get(frame[1], 2) :]
    return content.decode() if frame[0] == TEXT else content


async def settle() -> None:
    """Lets all tasks run as far as they can."""
    for _ in range(TURNS):
        await asyncio.sleep(0)
