"""The frames that one socket still has to be sent, and the task that sends them."""

import asyncio
import types
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass, field
from typing import Any

from ws_edge.codec.frames import Codec, Frame
from ws_edge.metrics import FrameTally
from ws_edge.session.channel_watch import ChannelWatch
from ws_edge.session.place import Place

MAX_REPLIES = 256
"""Unsent frames about a socket at which its requests are no longer read."""

Send = Callable[[dict[str, Any]], Awaitable[None]]


@dataclass(slots=True, eq=False)
class Outbox:
    """Holds frames about the socket, which go first, and places that have something to say, which take turns.

    It holds no rows: a place makes its next frame when it is sent, so a slow client costs what it watches.
    """

    codec: Codec
    tally: FrameTally
    max_frame_bytes: int
    _frames: deque[Frame] = field(default_factory=deque, init=False)
    _places: dict[Place | ChannelWatch, None] = field(default_factory=dict, init=False)

    def __contains__(self, place: Place | ChannelWatch) -> bool:
        return place in self._places

    @property
    def replies(self) -> int:
        """How many frames about the socket wait; no more requests are read when they are many."""
        return len(self._frames)

    def put(self, frame: Frame) -> None:
        """Adds a frame about the socket."""
        self._frames.append(frame)

    def ready(self, place: Place | ChannelWatch) -> None:
        """Adds a place, unless it waits already."""
        self._places[place] = None

    def withdraw(self, place: Place | ChannelWatch) -> None:
        """Forgets a place, and all that it has not sent."""
        self._places.pop(place, None)

    def clear(self) -> None:
        """Forgets everything."""
        self._frames.clear()
        self._places.clear()

    def take(self) -> Frame | None:
        """Removes and returns the next frame; None when there is none."""
        while not self._frames and self._places:
            place = next(iter(self._places))
            del self._places[place]
            frame = place.next_frame(self.codec, self.tally, self.max_frame_bytes)
            if place.has_more:
                self._places[place] = None
            if frame is not None:
                self._frames.extend(self.codec.place_frames(frame))
        return self._frames.popleft() if self._frames else None


@dataclass(slots=True, eq=False)
class SocketWriter:
    """Sends the frames of an outbox; a task lives only while there is something to send."""

    outbox: Outbox
    send: Send
    clock: Callable[[], float]
    end_code: int | None = field(default=None, init=False)
    """The code with which this side or the protocol has ended the socket; from then on nothing is sent any more."""
    writing_since: float | None = field(default=None, init=False)
    """When the frame that is being sent was handed to the socket; None while nothing is sent."""
    sent_at: float = field(init=False)
    """When the last frame was handed to the socket."""
    _is_writing: bool = field(default=False, init=False)
    """Whether `_write` runs: an item that is taken to be sent may add to the outbox, before there is a task."""
    _task: asyncio.Task[None] | None = field(default=None, init=False)
    _closing: asyncio.Task[None] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.sent_at = self.clock()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being sent."""
        return self.writing_since is None

    def put(self, frame: Frame | None, /) -> None:
        """Sends a frame about the socket, before all rows that wait; None is nothing."""
        if self.end_code is None and frame is not None:
            self.outbox.put(frame)
            self._begin()

    def ready(self, place: Place | ChannelWatch) -> None:
        """Sends the next frames of a place, in turn with all others."""
        if self.end_code is None:
            self.outbox.ready(place)
            self._begin()

    async def catch_up(self) -> None:
        """Waits until fewer than MAX_REPLIES frames about the socket wait, or nothing is being sent any more."""
        while self.outbox.replies >= MAX_REPLIES and self._task is not None:
            await asyncio.wait({self._task})

    def close(self, code: int, reason: str) -> None:
        """Closes the socket after the frame being sent, unless its client does not read anyway. Does not wait."""
        self.end_code = code
        if self.writing_since is None:
            self._begin_to_end(code, reason)

    def end(self, code: int, reason: str) -> None:
        """Forgets everything unsent, and closes the socket as soon as its client has read the frames that were sent."""
        self.end_code = code
        self.outbox.clear()
        self._begin_to_end(code, reason)

    async def closed(self) -> None:
        """Waits until the close that was begun is sent, or cannot be."""
        if self._closing is not None:
            await asyncio.wait({self._closing})

    def stop(self) -> None:
        """Sends nothing any more."""
        for task in (self._task, self._closing):
            if task is not None:
                task.cancel()

    def _begin_to_end(self, code: int, reason: str) -> None:
        self._closing = start_eagerly(self._end({"type": "websocket.close", "code": code, "reason": reason}))

    def _begin(self) -> None:
        if not self._is_writing:
            self._task = start_eagerly(self._write())

    async def _write(self) -> None:
        self._is_writing = True
        try:
            while self.end_code is None and (frame := self.outbox.take()) is not None:
                self.writing_since = self.sent_at = self.clock()
                await self.send(frame)
                self.outbox.tally.sent += 1
        except OSError:
            return  # the socket is closed; its reader hears of it as well
        finally:
            self.writing_since = None
            self._is_writing = False
            self._task = None

    async def _end(self, close: Frame) -> None:
        try:
            if self._task is not None:
                self._task.cancel()
                await asyncio.wait({self._task})
            self.writing_since = self.clock()
            await self.send(close)
        except OSError:
            return  # the client was faster
        finally:
            self.writing_since = None
            self._closing = None


def start_eagerly(coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
    """Runs the coroutine until it ends (then there is no task) or first has to wait; raises its errors until then.

    Python 3.12 has this as eager tasks. Most frames are taken by their socket at once, and a task for each would cost
    more than the frame: without it the edge sends twice as many frames with the same processor time.

    Until it waits, asyncio.current_task() is that of its caller, so it must not use asyncio.timeout().
    """
    try:
        awaited = coroutine.send(None)
    except StopIteration:
        return None
    return asyncio.create_task(_finish(coroutine, awaited))


async def _finish(coroutine: Coroutine[Any, Any, None], awaited: Any) -> None:
    await _rest_of(coroutine, awaited)


@types.coroutine
def _rest_of(coroutine: Coroutine[Any, Any, None], awaited: Any) -> Generator[Any, Any, None]:
    """Runs the rest of a coroutine that waits for `awaited`."""
    try:
        yield awaited
    except asyncio.CancelledError:
        coroutine.close()
        raise
    yield from coroutine.__await__()
