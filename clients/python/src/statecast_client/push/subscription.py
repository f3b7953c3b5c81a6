"""What a reader watches: one key, or the members of a range."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Generic, Self, TypeVar

from statecast.position import covers
from statecast.push.v1.range_pb2 import MemberChange, RangeChanged, RangeWatched
from statecast.push.v1.subscription_pb2 import Changed, Removed, Start
from statecast.state.v1.state_pb2 import Position
from statecast_client.errors import StatecastError
from statecast_client.push.protocol import Subject

T = TypeVar("T")
Update = Changed | Removed
"""What a key holds now: `Changed.row` is packed in an Any; `Removed` when there is nothing."""

RangeUpdate = RangeWatched | RangeChanged
"""What happens in a range: after `RangeWatched` all members follow, and those that came before it are void."""


class Watched(ABC, Generic[T]):
    """Iterate over it for what is there and for all that is newer.

    It keeps what is unread and no more: a reader that is slower than the changes gets the newest, whose `skipped`
    counts those that it replaces. The iteration ends when it is unsubscribed or the client is closed, and raises
    PushRefusedError when the server refuses. One reader at a time.
    """

    def __init__(
        self, subject: Subject, position: Position | None, end: Callable[["Watched[T]"], Awaitable[None]]
    ) -> None:
        """`end` ends the subscription at the server."""
        self.subject = subject
        self.position = position
        """Everything up to it has come; at first the position to begin after."""
        self.request = ""
        """The id of the frame that asked for it last."""
        self.in_force = False
        """Whether the server has confirmed it: updates before that belong to an earlier subscription."""
        self.recovered: bool | None = None
        """Whether the server resumed from the position when it last confirmed the subscription; None before."""
        self._end = end
        self._error: StatecastError | None = None
        self._ended = False
        self._woken = asyncio.Event()

    async def unsubscribe(self) -> None:
        """Ends the subscription; what has not been read is dropped."""
        self._drop()
        self.finish(None)
        await self._end(self)

    def finish(self, error: StatecastError | None) -> None:
        """Ends the iteration, with the error when there is one."""
        self._ended, self._error = True, error
        self._woken.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        while (item := self._take()) is None:
            if self._error is not None:
                raise self._error
            if self._ended:
                raise StopAsyncIteration
            self._woken.clear()
            await self._woken.wait()
        return item

    @abstractmethod
    def _take(self) -> T | None:
        """Removes and returns the next unread item; None when there is none."""

    @abstractmethod
    def _drop(self) -> None:
        """Drops everything unread."""


class Subscription(Watched[Update]):
    """One key; only its newest update is kept unread."""

    _newest: Update | None = None

    def put(self, update: Update) -> None:
        """Takes an update from the server."""
        self.position = update.position
        if self._newest is not None:
            update.skipped += self._newest.skipped + 1
        self._newest = update
        self._woken.set()

    def _take(self) -> Update | None:
        update, self._newest = self._newest, None
        return update

    def _drop(self) -> None:
        self._newest = None


class RangeSubscription(Watched[RangeUpdate]):
    """The members of a range; at most one change of each member is kept unread."""

    _began: RangeWatched | None = None

    def __init__(
        self, subject: Subject, position: Position | None, end: Callable[[Watched[RangeUpdate]], Awaitable[None]]
    ) -> None:
        super().__init__(subject, position, end)
        self._unread: dict[str, RangeChanged] = {}
        self._ahead: dict[str, Position] = {}
        """The positions of members beyond `position`: a resumption from there brings their changes again."""

    def begin(self, watched: RangeWatched) -> None:
        """Takes the server's confirmation."""
        if watched.start == Start.START_SNAPSHOT:
            self._drop()
            self._began = watched
            self._advance(None)
            self._woken.set()
        if watched.HasField("through"):
            self._advance(watched.through)

    def put(self, changed: RangeChanged) -> None:
        """Takes a change from the server, perhaps for the second time."""
        last = self._ahead.get(changed.key.member)
        self._ahead[changed.key.member] = changed.position
        if changed.HasField("through"):
            self._advance(changed.through)
        if covers(last, changed.position):
            return
        merged = _merged(self._unread.pop(changed.key.member, None), changed)
        if merged is not None:
            self._unread[changed.key.member] = merged
            self._woken.set()

    def _advance(self, position: Position | None) -> None:
        self.position = position
        self._ahead.clear()

    def _take(self) -> RangeUpdate | None:
        began, self._began = self._began, None
        if began is not None:
            return began
        return self._unread.pop(next(iter(self._unread))) if self._unread else None

    def _drop(self) -> None:
        self._unread.clear()


def _merged(unread: RangeChanged | None, newer: RangeChanged) -> RangeChanged | None:
    """Returns what two changes of a member, of which none was read, amount to; None when they cancel out."""
    if unread is None:
        return newer
    entered, left = MemberChange.MEMBER_CHANGE_ENTERED, MemberChange.MEMBER_CHANGE_LEFT
    if unread.change == entered and newer.change == left:
        return None
    if unread.change == entered:
        newer.change = entered
    elif unread.change == left and newer.change == entered:
        newer.change = MemberChange.MEMBER_CHANGE_CHANGED
    newer.skipped += unread.skipped + 1
    return newer
