"""What a reader watches: one key, or the members of a range."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Generic, Self, TypeVar

from statecast.push.v1.range_pb2 import MemberChange, RangeChanged, RangeWatched
from statecast.push.v1.subscription_pb2 import Changed, Removed, Start
from statecast.state.v1.state_pb2 import Position
from statecast_client.errors import StatecastError
from statecast_client.push.frames import Name

T = TypeVar("T")
Update = Changed | Removed
"""What a key holds now: `Changed.row` is packed in an Any; `Removed` when there is nothing."""

RangeUpdate = RangeWatched | RangeChanged
"""What happens in a range: `RangeWatched` says that what was told before is to be dropped, and all members follow."""

Ask = Callable[[str, Position | None], bytes]
"""Makes the frame with an id that asks for what is newer than a position."""


class Watched(ABC, Generic[T]):
    """Iterate over it for what is there and for all that is newer.

    It keeps what a reader must still be told and no more: a reader that is slower than the changes gets the newest,
    whose `skipped` counts those that it replaces. The iteration ends when it is unsubscribed or the client is closed,
    and raises PushRefusedError when the server refuses. One reader at a time.
    """

    def __init__(self, position: Position | None, ask: Ask, end: Callable[[], Awaitable[None]]) -> None:
        self.position = position
        """Everything through it has come; at first the position to begin after."""
        self.ask = ask
        self.name: Name = ()
        self.request = ""
        """The id of the frame that asked for it last."""
        self.in_force = False
        """Whether the server has confirmed it: what comes before then was on its way to an earlier one."""
        self.recovered: bool | None = None
        """Whether the server took up the position when the subscription came into force last; None before."""
        self._end = end
        self._error: StatecastError | None = None
        self._ended = False
        self._woken = asyncio.Event()

    async def unsubscribe(self) -> None:
        """Ends the subscription; what has not been read is dropped."""
        self._drop()
        self.finish(None)
        await self._end()

    def finish(self, error: StatecastError | None) -> None:
        """Nothing more comes; the reader is told why when there is a reason."""
        self._ended, self._error = True, error
        self._woken.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        while (told := self._take()) is None:
            if self._error is not None:
                raise self._error
            if self._ended:
                raise StopAsyncIteration
            self._woken.clear()
            await self._woken.wait()
        return told

    @abstractmethod
    def _take(self) -> T | None:
        """Removes and returns what the reader is to be told next; None when there is nothing."""

    @abstractmethod
    def _drop(self) -> None:
        """Forgets what has not been read."""


class Subscription(Watched[Update]):
    """One key. Unread is its newest update alone."""

    _newest: Update | None = None

    def put(self, update: Update) -> None:
        """The server has sent an update."""
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
    """The members of a range. Unread is at most one change of each member that the reader knows or is to know."""

    _began: RangeWatched | None = None

    def __init__(self, position: Position | None, ask: Ask, end: Callable[[], Awaitable[None]]) -> None:
        super().__init__(position, ask, end)
        self._unread: dict[str, RangeChanged] = {}
        self._ahead: dict[str, Position] = {}
        """How far members have been told beyond `position`: a resumption from there tells them again."""

    def begin(self, watched: RangeWatched) -> None:
        """The server has put the subscription into force."""
        if watched.start == Start.START_SNAPSHOT:
            self._drop()
            self._began = watched
            self._reached(None)
            self._woken.set()
        if watched.HasField("through"):
            self._reached(watched.through)

    def put(self, changed: RangeChanged) -> None:
        """The server has sent a change, perhaps once more."""
        told = self._ahead.get(changed.key.member)
        self._ahead[changed.key.member] = changed.position
        if changed.HasField("through"):
            self._reached(changed.through)
        if told is not None and told.epoch == changed.position.epoch and changed.position.offset <= told.offset:
            return
        merged = _merged(self._unread.pop(changed.key.member, None), changed)
        if merged is not None:
            self._unread[changed.key.member] = merged
            self._woken.set()

    def _reached(self, through: Position | None) -> None:
        self.position = through
        self._ahead.clear()

    def _take(self) -> RangeUpdate | None:
        began, self._began = self._began, None
        if began is not None:
            return began
        return self._unread.pop(next(iter(self._unread))) if self._unread else None

    def _drop(self) -> None:
        self._unread.clear()


def _merged(unread: RangeChanged | None, newer: RangeChanged) -> RangeChanged | None:
    """What a reader who was not told of `unread` is told after `newer`; None when there is nothing to tell."""
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
