"""What a reader watches: one key, or the members of a range."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, Self, TypeVar

from typing_extensions import override

from statecast.position import covers
from statecast.push.v1.push_pb2 import ClientFrame
from statecast.push.v1.range_pb2 import MemberChange, RangeChanged, RangeWatched, UnwatchRange, WatchRange
from statecast.push.v1.subscription_pb2 import Changed, Removed, Start, Subscribe, Subscribed, Unsubscribe
from statecast.state.v1.state_pb2 import Position
from statecast_client.errors import StatecastError
from statecast_client.push.protocol import Name, name_of

T = TypeVar("T")
R = TypeVar("R", Subscribe, WatchRange)
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

    def __init__(self, name: Name, unsubscribe: Callable[["Watched[T]"], Awaitable[None]]) -> None:
        """`unsubscribe` ends the subscription at the server."""
        self.name = name
        self.frame_id = ""
        """The id of the frame that asked for it last."""
        self.in_force = False
        """Whether the server has confirmed it: updates before that belong to an earlier subscription."""
        self.recovered: bool | None = None
        """Whether the server resumed from the position when it last confirmed the subscription; None before."""
        self._unsubscribe = unsubscribe
        self._unread: dict[Hashable, T] = {}
        self._end: Exception | None = None
        self._woken = asyncio.Event()

    def opening(self, frame_id: str) -> ClientFrame:
        """Returns the frame that asks for what is there and every change, or only for what is newer than has come."""
        self.frame_id, self.in_force = frame_id, False
        return self._opening(frame_id)

    @abstractmethod
    def _opening(self, frame_id: str) -> ClientFrame: ...

    @abstractmethod
    def closing(self, frame_id: str) -> ClientFrame:
        """Returns the frame that ends it at the server."""

    async def unsubscribe(self) -> None:
        """Ends the subscription; what has not been read is dropped."""
        self._unread.clear()
        self.finish(None)
        await self._unsubscribe(self)

    def begin(self, confirmation: Subscribed | RangeWatched) -> None:
        self.in_force = True
        self.recovered = confirmation.start == Start.START_RECOVERED

    def finish(self, error: StatecastError | None) -> None:
        """Ends the iteration, with the error when there is one."""
        self._end = error or StopAsyncIteration()
        self._woken.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        while not self._unread:
            if self._end is not None:
                raise self._end
            self._woken.clear()
            await self._woken.wait()
        return self._unread.pop(next(iter(self._unread)))

    def _keep(self, name: Hashable, update: T) -> None:
        self._unread[name] = update
        self._woken.set()


class RangeProgress:
    """How far a range has been read, so that a resumption brings nothing twice."""

    def __init__(self, position: Position | None = None) -> None:
        """Begins after the position, or anew."""
        self.position = position
        """Everything up to it has come."""
        self._ahead: dict[str, Position] = {}
        """The positions of members beyond `position`: a resumption from there brings their changes again.

        A row can be newer than the `through` of its own frame, because its range is read after that was taken.
        """

    def takes(self, changed: RangeChanged) -> bool:
        """Notes a change; returns whether it is news, which is not so when it has come before."""
        member = changed.key.member
        last = self._ahead.get(member)
        self._ahead[member] = changed.position
        if changed.HasField("through"):
            self.advance(changed.through)
        return not covers(last, changed.position)

    def advance(self, position: Position | None) -> None:
        """Notes that everything up to a position has come; None when the range begins anew."""
        self.position = position
        beyond = {} if position is None else self._ahead
        self._ahead = {member: ahead for member, ahead in beyond.items() if not covers(position, ahead)}


class Subscription(Watched[Update]):
    """One key; only its newest update is kept unread."""

    def __init__(
        self,
        request: Subscribe,
        position: Position | None,
        unsubscribe: Callable[[Watched[Update]], Awaitable[None]],
    ) -> None:
        super().__init__(name_of(request), unsubscribe)
        self.position = position
        """Everything up to it has come; at first the position to begin after."""
        self._request = request

    @override
    def _opening(self, frame_id: str) -> ClientFrame:
        return ClientFrame(id=frame_id, subscribe=_after(self._request, self.position))

    @override
    def closing(self, frame_id: str) -> ClientFrame:
        key = Unsubscribe(store=self._request.store, key=self._request.key)
        return ClientFrame(id=frame_id, unsubscribe=key)

    def put(self, update: Update) -> None:
        self.position = update.position
        if (unread := self._unread.get(None)) is not None:
            is_repeated = update.position == unread.position
            update.skipped += unread.skipped + (not is_repeated)
        self._keep(None, update)


class RangeSubscription(Watched[RangeUpdate]):
    """The members of a range; at most one change of each member is kept unread."""

    def __init__(
        self,
        request: WatchRange,
        position: Position | None,
        unsubscribe: Callable[[Watched[RangeUpdate]], Awaitable[None]],
    ) -> None:
        super().__init__(name_of(request), unsubscribe)
        self._request = request
        self._progress = RangeProgress(position)

    @property
    def position(self) -> Position | None:
        """Everything up to it has come; at first the position to begin after."""
        return self._progress.position

    @override
    def _opening(self, frame_id: str) -> ClientFrame:
        return ClientFrame(id=frame_id, watch_range=_after(self._request, self.position))

    @override
    def closing(self, frame_id: str) -> ClientFrame:
        return ClientFrame(id=frame_id, unwatch_range=UnwatchRange(range=self._request.range))

    def begin(self, confirmation: Subscribed | RangeWatched) -> None:
        super().begin(confirmation)
        if not isinstance(confirmation, RangeWatched):
            return
        if confirmation.start == Start.START_SNAPSHOT:
            self._unread.clear()
            self._keep(None, confirmation)
            self._progress.advance(None)
        if confirmation.HasField("through"):
            self._progress.advance(confirmation.through)

    def put(self, changed: RangeChanged) -> None:
        if not self._progress.takes(changed):
            return
        member = changed.key.member
        unread = self._unread.pop(member, None)
        newest = merged(unread, changed) if isinstance(unread, RangeChanged) else changed
        if newest is not None:
            self._keep(member, newest)


def _after(request: R, position: Position | None) -> R:
    """The request, for what is newer than the position."""
    request.ClearField("after")
    if position is not None:
        request.after.CopyFrom(position)
    return request


def merged(unread: RangeChanged, newer: RangeChanged) -> RangeChanged | None:
    """Returns what two changes of a member, of which none was read, amount to; None when they cancel out."""
    entered, left = MemberChange.MEMBER_CHANGE_ENTERED, MemberChange.MEMBER_CHANGE_LEFT
    if unread.change == entered and newer.change == left:
        return None
    if unread.change == entered:
        newer.change = entered
    elif unread.change == left and newer.change == entered:
        newer.change = MemberChange.MEMBER_CHANGE_CHANGED
    newer.skipped += unread.skipped + 1
    return newer
