"""Writes to one socket what its outbox holds."""

import asyncio
from collections.abc import Awaitable, Callable
from time import time_ns
from typing import Any

import structlog

from ws_edge.dialects.frames import Dialect, frame_of
from ws_edge.hub.outbox import Item, Outbox, Reply
from ws_edge.hub.range_subscription import RangeSubscription
from ws_edge.metrics import FrameTally
from ws_edge.sockets import eager_task
from ws_edge.states import AnyKey, StoreKey, Version

Send = Callable[[dict[str, Any]], Awaitable[None]]

log = structlog.get_logger(__name__)


class SocketWriter:
    """Takes versions and replies without waiting; a task lives only while there is something to send."""

    __slots__ = ("_clock", "_closing", "_dialect", "_ended", "_frames", "_outbox", "_send", "_task", "writing_since")

    def __init__(self, dialect: Dialect, send: Send, frames: FrameTally, clock: Callable[[], float]) -> None:
        self._dialect = dialect
        self._send = send
        self._frames = frames
        self._clock = clock
        self._outbox = Outbox()
        self._task: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._ended = False
        self.writing_since: float | None = None
        """When the frame that is being sent was handed to the socket; None while nothing is sent."""

    @property
    def unsent_bytes(self) -> int:
        """The bytes of what waits to be sent."""
        return self._outbox.size

    def put(self, version: Version, snapshot: bool) -> None:
        """Sends a version, unless a newer one of its key comes before it could be sent."""
        if self._ended:
            return
        if self._outbox.put(version, snapshot):
            self._frames.skipped += 1
        self._begin()

    def reply(self, reply: Reply) -> None:
        """Sends a reply."""
        if self._ended:
            return
        self._outbox.reply(reply)
        self._begin()

    def put_range(self, subscription: RangeSubscription) -> None:
        """Sends what is pending of a range. Ranges take turns with all else that the socket is sent."""
        if self._ended:
            return
        self._outbox.put_range(subscription)
        self._begin()

    def holds(self, key: StoreKey) -> bool:
        """Whether something of the key is unsent."""
        return key in self._outbox

    def withdraw(self, key: AnyKey) -> None:
        """Forgets what is unsent of the key or range."""
        self._outbox.withdraw(key)

    async def catch_up(self, most_replies: int) -> None:
        """Waits until fewer than `most_replies` replies are unsent, or nothing is being sent any more."""
        while self._outbox.replies >= most_replies and self._task is not None:
            await asyncio.wait({self._task})

    async def close(self, code: int, reason: str) -> None:
        """Closes the socket, unless its client does not read anyway. Raises OSError when it is closed."""
        if self.writing_since is None:
            await self._send(_close(code, reason))

    def end(self, code: int, reason: str) -> None:
        """Forgets everything that is unsent, and closes the socket as soon as its client has read what was sent."""
        self._ended = True
        self._outbox.clear()
        self._closing = eager_task.start(self._end(_close(code, reason)))

    def stop(self) -> None:
        """Lets go of the socket."""
        for task in (self._task, self._closing):
            if task is not None:
                task.cancel()

    def _begin(self) -> None:
        if self._task is None:
            self._task = eager_task.start(self._write())

    async def _write(self) -> None:
        frames = self._frames
        try:
            while (item := self._outbox.take()) is not None:
                frame, commit_ns = self._frame_of(item)
                if frame is None:
                    continue
                self.writing_since = self._clock()
                await self._send(frame)
                frames.sent += 1
                if commit_ns is not None:
                    frames.aged((time_ns() - commit_ns) / 1e9)
        except OSError:
            return  # the socket is closed; its reader hears of it as well
        except Exception:
            # A frame that cannot be made must not reach the hub, which tells many others as well.
            log.exception("frame_failed")
        finally:
            self.writing_since = None
            self._task = None

    def _frame_of(self, item: Item) -> tuple[Reply | None, int | None]:
        """The frame, None when there is nothing to send after all, and the commit time of a change, if that counts."""
        if item.range is not None:
            return self._next_of(item.range)
        if item.version is None:
            return item.reply, None
        commit_ns = None if item.snapshot else item.version.commit_ns
        return frame_of(self._dialect, item.version, item.skipped), commit_ns

    def _next_of(self, subscription: RangeSubscription) -> tuple[Reply | None, int | None]:
        frames = self._dialect.ranges
        change = subscription.take() if subscription.active else None
        if change is None or frames is None:
            return None, None
        if subscription.pending:
            self._outbox.put_range(subscription)
        self._frames.skipped += change.skipped
        commit_ns = None if change.snapshot else change.commit_ns
        return frames.changed(subscription.watch.key, change, subscription.through), commit_ns

    async def _end(self, close: Reply) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        self.writing_since = self._clock()
        try:
            await self._send(close)
        except OSError:
            return  # the client was faster
        finally:
            self.writing_since = None


def _close(code: int, reason: str) -> Reply:
    return {"type": "websocket.close", "code": code, "reason": reason}
