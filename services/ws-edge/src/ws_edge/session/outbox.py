"""The frames that one socket still has to be sent, and the task that sends them."""

import asyncio
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass, field
from typing import Any

import structlog

from ws_edge.codec.frames import FILL_BYTES, FRAMES, Codec
from ws_edge.errors import CLOSE_FAILED
from ws_edge.metrics import FrameTally
from ws_edge.session.channel_watch import ChannelWatch
from ws_edge.session.place import Place

MAX_REPLIES = 256
"""With so many unsent frames about a socket, its requests are not read."""

Send = Callable[[dict[str, Any]], Awaitable[None]]

log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class SocketWriter:
    """Sends the frames of one socket: frames about the socket go first, then places with news take turns.

    It holds no rows: a place makes its next frame when it is sent, so a slow client costs at most the rows that it
    watches. Frames that wait at the end of a turn of the loop leave in one write. A task lives only while there is
    something to send.
    """

    codec: Codec
    tally: FrameTally
    max_frame_bytes: int
    send: Send
    clock: Callable[[], float]
    end_code: int | None = field(default=None, init=False)
    """The close code if this side or the protocol has ended the socket; then nothing more is sent."""
    is_lost: bool = field(default=False, init=False)
    """Whether nothing can be sent any more, as the client is gone. The socket's reader hears of that when it reads."""
    writing_since: float | None = field(default=None, init=False)
    """When the frames that are being sent were handed to the socket, or the client was last seen to read them.

    None while nothing is sent."""
    sent_at: float = field(init=False)
    """When the last frames were handed to the socket."""
    _frames: list[bytes] = field(default_factory=list, init=False)
    """The waiting frames about the socket."""
    _places: dict[Place | ChannelWatch, None] = field(default_factory=dict, init=False)
    _reason: str | None = field(default=None, init=False)
    """Why the socket is closed after the frames that are being sent."""
    _is_writing: bool = field(default=False, init=False)
    """Whether `_write` runs, or will in the next turn of the loop."""
    _task: asyncio.Task[None] | None = field(default=None, init=False)
    _closing: asyncio.Task[None] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.sent_at = self.clock()

    def __contains__(self, place: Place | ChannelWatch) -> bool:
        return place in self._places

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being sent."""
        return self.writing_since is None

    def put(self, frame: bytes | None, /) -> None:
        """Sends a frame about the socket, before all waiting rows. Does nothing for None."""
        if self.end_code is None and frame is not None:
            self._frames.append(frame)
            self._begin()

    def ready(self, place: Place | ChannelWatch, /) -> None:
        """Queues a place for its next frame. A place with more rows calls this again when the frame is taken."""
        if self.end_code is None:
            self._places[place] = None
            if not self._is_writing:
                self._begin()

    def withdraw(self, place: Place | ChannelWatch, /) -> None:
        """Forgets a place, and everything that it has not sent."""
        self._places.pop(place, None)

    async def catch_up(self) -> None:
        """Waits until fewer than MAX_REPLIES frames about the socket wait, or sending has ended."""
        while len(self._frames) >= MAX_REPLIES and self._is_writing:
            await (asyncio.sleep(0) if self._task is None else asyncio.wait({self._task}))

    def close(self, code: int, reason: str) -> None:
        """Closes the socket after the frame being sent, unless its client does not read anyway. Does not wait."""
        self.end_code = code
        if self.writing_since is None:
            self._begin_to_end(code, reason)
        else:
            self._reason = reason

    def end(self, code: int, reason: str) -> None:
        """Forgets everything unsent, and closes the socket as soon as its client has read the frames that were sent."""
        self.end_code = code
        self._clear()
        self._begin_to_end(code, reason)

    async def closed(self) -> None:
        """Waits until the close frame is sent, or cannot be sent."""
        if self._closing is not None:
            await asyncio.wait({self._closing})

    def stop(self) -> None:
        """Stops sending."""
        self._clear()
        for task in (self._task, self._closing):
            if task is not None:
                task.cancel()

    def _begin_to_end(self, code: int, reason: str) -> None:
        self._closing = start_eagerly(self._end({"type": "websocket.close", "code": code, "reason": reason}))

    def _clear(self) -> None:
        self._frames.clear()
        self._places.clear()

    def _begin(self) -> None:
        if not self._is_writing:
            self._is_writing = True
            asyncio.get_running_loop().call_soon(self._start)

    def _start(self) -> None:
        if self.end_code is None:
            self._task = start_eagerly(self._write())
        else:  # the close is being sent
            self._is_writing = False

    async def _write(self) -> None:
        try:
            while self.end_code is None and (self._frames or self._places):
                if frames := self._take():
                    self.writing_since = self.sent_at = self.clock()
                    await self.send({"type": "websocket.send", FRAMES: frames})
                    self.tally.sent += len(frames)
        except OSError:
            self.is_lost = True
            return
        except Exception:
            # Without an end, the socket would look alive, and its client would hear nothing more.
            log.exception("frame_failed")
            self._clear()
            self.end_code, self._reason = CLOSE_FAILED, "the edge has failed: connect again with your tokens"
        finally:
            self.writing_since = None
            self._is_writing = False
            self._task = None
        if self.end_code is not None and self._reason is not None and self._closing is None:
            self._begin_to_end(self.end_code, self._reason)

    def _take(self) -> list[bytes]:
        """Removes and returns the frames of the next write; none when nothing waits."""
        taken, size = list[bytes](), 0
        while size < FILL_BYTES and (self._frames or self._places):
            if self._frames:
                frames = [self._frames.pop(0)]
            else:
                place = next(iter(self._places))
                del self._places[place]
                frames = place.next_frames(self.codec, self.tally, self.max_frame_bytes)
            taken += frames
            size += sum(map(len, frames))
        return taken

    async def _end(self, close: dict[str, Any]) -> None:
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
    """Runs the coroutine until it first has to wait, and returns a task for the rest; None if it has ended by then.

    Raises the coroutine's errors until it waits. Python 3.12 has this as eager tasks. Most sockets take a frame at
    once, and a task would cost more than a frame.

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
