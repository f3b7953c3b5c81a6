"""The items that one socket still has to be sent, and the task that sends them."""

import asyncio
import types
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass, field
from time import time_ns
from typing import Any, NamedTuple

import structlog

from ws_edge.codec.frames import FrameCodec, Reply, check_size
from ws_edge.errors import RowTooLargeError, UnreadableRowError
from ws_edge.hub.watch import Subscription
from ws_edge.metrics import FrameTally
from ws_edge.model.states import AnyKey, KeyState, Place

Send = Callable[[dict[str, Any]], Awaitable[None]]

log = structlog.get_logger(__name__)


class Item(NamedTuple):
    """A thing to send: a reply, the state of a key, or a range. A range's oldest change is taken when it is sent."""

    content: Reply | KeyState | Subscription
    size: int = 0
    """In bytes. A range counts nothing: its rows are those that the edge holds anyway."""
    skipped: int = 0
    """How many earlier states of the key this one replaces."""
    snapshot: bool = False
    """Whether the subscription begins with the state, rather than the key having changed."""
    reference: str = ""
    """The client's name for the request that asked for the state."""

    @property
    def key(self) -> AnyKey | None:
        """The key or range that it is about; None for a reply."""
        if isinstance(self.content, dict):
            return None
        return self.content.key if isinstance(self.content, KeyState) else self.content.watch.key


@dataclass(slots=True, eq=False)
class Outbox:
    """Holds at most one state per key, so the subscriptions and the open replies bound its size.

    Things leave in the order in which they came; a newer state takes the place of the one that it replaces.
    """

    max_frame_bytes: int
    """Of a larger row an error is sent, so it counts as no more than this."""
    replies: int = field(default=0, init=False)
    """How many replies wait; no more requests may be read when they are many."""
    size: int = field(default=0, init=False)
    """The bytes of all rows and replies that wait."""
    _items: OrderedDict[AnyKey | object, Item] = field(default_factory=OrderedDict, init=False)
    """By key or range, or the place of one in a query; a reply has a key of its own."""

    def __contains__(self, key: AnyKey) -> bool:
        return key in self._items

    def put(self, state: KeyState, snapshot: bool = False, reference: str = "") -> bool:
        """Adds a state; returns whether it has replaced one of its key that was not sent yet.

        A state that waits already, and is told again, stays as it is.
        """
        old = self._items.get(state.key)
        if old is not None and old.content is state:
            return False
        skipped = 0 if old is None else old.skipped + 1
        size = min(state.size, self.max_frame_bytes)
        self._items[state.key] = Item(state, size, skipped, snapshot, reference)
        self.size += size - (0 if old is None else old.size)
        return old is not None

    def put_range(self, subscription: Subscription) -> None:
        """Adds a range of which something is pending, unless it waits already."""
        self._items.setdefault(subscription.outbox_key, Item(subscription))

    def reply(self, reply: Reply) -> None:
        item = Item(reply, len(reply.get("text") or reply.get("bytes") or ""))
        self._items[object()] = item
        self.replies += 1
        self.size += item.size

    def withdraw(self, key: AnyKey | Place) -> None:
        old = self._items.pop(key, None)
        if old is not None:
            self.size -= old.size

    def clear(self) -> None:
        self._items.clear()
        self.replies = self.size = 0

    def take(self) -> Item | None:
        """Removes and returns the oldest item; None when there is none."""
        if not self._items:
            return None
        _, item = self._items.popitem(last=False)
        self.size -= item.size
        if isinstance(item.content, dict):
            self.replies -= 1
        return item


@dataclass(slots=True, eq=False)
class SocketWriter:
    """Takes states and replies without waiting; a task lives only while there is something to send."""

    codec: FrameCodec
    send: Send
    frames: FrameTally
    clock: Callable[[], float]
    max_frame_bytes: int
    """Of the frame of a row; for a larger one the client gets an error."""
    outbox: Outbox = field(init=False)
    """Everything that is unsent; this writer alone adds to it."""
    end_code: int | None = field(default=None, init=False)
    """The code with which this side or the protocol has ended the socket; from then on nothing is sent any more."""
    writing_since: float | None = field(default=None, init=False)
    """When the frame that is being sent was handed to the socket; None while nothing is sent."""
    _is_writing: bool = field(default=False, init=False)
    """Whether `_write` runs: an item that is taken to be sent may add to the outbox, before there is a task."""
    _task: asyncio.Task[None] | None = field(default=None, init=False)
    _closing: asyncio.Task[None] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.outbox = Outbox(self.max_frame_bytes)

    def put(self, state: KeyState, snapshot: bool, reference: str) -> None:
        """Sends a state, unless a newer one of its key comes before it could be sent."""
        if self.end_code is None:
            if self.outbox.put(state, snapshot, reference):
                self.frames.skipped += 1
            self._begin()

    def put_range(self, subscription: Subscription) -> None:
        """Sends the pending changes of a range. Ranges take turns with all else that the socket is sent."""
        if self.end_code is None:
            self.outbox.put_range(subscription)
            self._begin()

    def reply(self, reply: Reply) -> None:
        if self.end_code is None:
            self.outbox.reply(reply)
            self._begin()

    async def catch_up(self, max_replies: int) -> None:
        """Waits until fewer than `max_replies` replies are unsent, or nothing is being sent any more."""
        while self.outbox.replies >= max_replies and self._task is not None:
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
            while (item := self.outbox.take()) is not None:
                frame, commit_ns = self._frame_or_error(item)
                if frame is None:
                    continue
                self.writing_since = self.clock()
                await self.send(frame)
                self.frames.sent += 1
                if commit_ns is not None:
                    self.frames.aged((time_ns() - commit_ns) / 1e9)
        except OSError:
            return  # the socket is closed; its reader hears of it as well
        finally:
            self.writing_since = None
            self._is_writing = False
            self._task = None

    def _frame_or_error(self, item: Item) -> tuple[Reply | None, int | None]:
        """As `_frame_of`; for a row that no frame can hold, the error that says so. The socket's other items go on."""
        try:
            return self._frame_of(item)
        except (UnreadableRowError, RowTooLargeError) as error:
            refusal = error
        except Exception:
            log.exception("frame_failed", key=str(item.key))
            refusal = UnreadableRowError(f"a row of {item.key} cannot be sent: tell the operators")
        reference = item.content.reference if isinstance(item.content, Subscription) else item.reference
        return self.codec.failed(refusal, reference), None

    def _frame_of(self, item: Item) -> tuple[Reply | None, int | None]:
        """The frame, None when there is nothing to send after all, and the commit time of a change, if that counts."""
        content = item.content
        if isinstance(content, KeyState):
            frame = self.codec.frame_of(content, item.skipped)
            check_size(frame, content.key, self.max_frame_bytes)
            return frame, None if item.snapshot else content.commit_ns
        if isinstance(content, dict):
            return content, None
        change = content.take()
        if change is None:
            return None, None
        if content.pending and not content.is_ended:
            self.outbox.put_range(content)
        self.frames.skipped += change.skipped
        commit_ns = None if change.snapshot else change.state.commit_ns
        watch = content.watch
        frame = self.codec.member_changed(watch.key, change, content.position, watch.lag_ms, content.place)
        check_size(frame, change.state.key, self.max_frame_bytes)
        return frame, commit_ns

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
