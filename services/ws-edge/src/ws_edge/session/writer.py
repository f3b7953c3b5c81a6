"""Writes to one socket what its outbox holds."""

import asyncio
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass, field
from time import time_ns
from typing import Any

import structlog

from ws_edge.codec.frames import FrameCodec
from ws_edge.hub.outbox import Item, Outbox, Reply
from ws_edge.hub.watch import Subscription
from ws_edge.metrics import FrameTally
from ws_edge.states import KeyState, RangeKey

Send = Callable[[dict[str, Any]], Awaitable[None]]

log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class SocketWriter:
    """Takes states and replies without waiting; a task lives only while there is something to send."""

    codec: FrameCodec
    send: Send
    frames: FrameTally
    clock: Callable[[], float]
    outbox: Outbox = field(default_factory=Outbox, init=False)
    """What is unsent; it is added to by this writer alone."""
    end_code: int | None = field(default=None, init=False)
    """The code with which this side or the protocol has ended the socket; from then on nothing is sent any more."""
    writing_since: float | None = field(default=None, init=False)
    """When the frame that is being sent was handed to the socket; None while nothing is sent."""
    _task: asyncio.Task[None] | None = field(default=None, init=False)
    _closing: asyncio.Task[None] | None = field(default=None, init=False)

    def put(self, state: KeyState, snapshot: bool) -> None:
        """Sends a state, unless a newer one of its key comes before it could be sent."""
        if self.end_code is None:
            if self.outbox.put(state, snapshot):
                self.frames.skipped += 1
            self._begin()

    def put_range(self, subscription: Subscription) -> None:
        """Sends what is pending of a range. Ranges take turns with all else that the socket is sent."""
        if self.end_code is None:
            self.outbox.put_range(subscription)
            self._begin()

    def reply(self, reply: Reply) -> None:
        """Sends a reply."""
        if self.end_code is None:
            self.outbox.reply(reply)
            self._begin()

    async def catch_up(self, max_replies: int) -> None:
        """Waits until fewer than `max_replies` replies are unsent, or nothing is being sent any more."""
        while self.outbox.replies >= max_replies and self._task is not None:
            await asyncio.wait({self._task})

    async def close(self, code: int, reason: str) -> None:
        """Closes the socket, unless its client does not read anyway. Raises OSError when it is closed."""
        self.end_code = code
        if self.writing_since is None:
            await self.send(_close(code, reason))

    def end(self, code: int, reason: str) -> None:
        """Forgets everything that is unsent, and closes the socket as soon as its client has read what was sent."""
        self.end_code = code
        self.outbox.clear()
        self._closing = start_eagerly(self._end(_close(code, reason)))

    def stop(self) -> None:
        """Lets go of the socket."""
        for task in (self._task, self._closing):
            if task is not None:
                task.cancel()

    def _begin(self) -> None:
        if self._task is None:
            self._task = start_eagerly(self._write())

    async def _write(self) -> None:
        frames = self.frames
        try:
            while (item := self.outbox.take()) is not None:
                frame, commit_ns = self._frame_of(item)
                if frame is None:
                    continue
                self.writing_since = self.clock()
                await self.send(frame)
                frames.sent += 1
                if commit_ns is not None:
                    frames.aged((time_ns() - commit_ns) / 1e9)
        except OSError:
            return  # the socket is closed; its reader hears of it as well
        except Exception:
            # A frame that cannot be made must not reach the hub, which serves many others as well.
            log.exception("frame_failed")
        finally:
            self.writing_since = None
            self._task = None

    def _frame_of(self, item: Item) -> tuple[Reply | None, int | None]:
        """The frame, None when there is nothing to send after all, and the commit time of a change, if that counts."""
        content = item.content
        if isinstance(content, KeyState):
            return self.codec.frame_of(content, item.skipped), None if item.snapshot else content.commit_ns
        if isinstance(content, dict):
            return content, None
        key, change = content.watch.key, content.take()
        if change is None or not isinstance(key, RangeKey):
            return None, None
        if content.pending:
            self.outbox.put_range(content)
        self.frames.skipped += change.skipped
        commit_ns = None if change.snapshot else change.commit_ns
        return self.codec.member_changed(key, change, content.position), commit_ns

    async def _end(self, close: Reply) -> None:
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
    """Runs the coroutine until it ends (then there is no task) or first has to wait; raises what it raises by then.

    Python 3.12 has this as eager tasks. Most frames are taken by their socket at once, and a task for each would cost
    more than the frame: without it the edge sends twice as many frames with the same processor time.

    Until it waits it runs inside its caller: asyncio.current_task() is the caller's, so it must not use
    asyncio.timeout().
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
    """What is left of a coroutine that waits for `awaited`."""
    try:
        yield awaited
    except asyncio.CancelledError:
        coroutine.close()
        raise
    yield from coroutine.__await__()


def _close(code: int, reason: str) -> Reply:
    return {"type": "websocket.close", "code": code, "reason": reason}
