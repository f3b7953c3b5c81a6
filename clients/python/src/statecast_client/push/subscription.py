"""What a reader watches: one key, or the members of a range."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, Self, TypeVar

from statecast.position import covers
from statecast.push.v1.push_pb2 import ClientFrame
from statecast.push.v1.range_pb2 import MemberChange, RangeChanged, RangeWatched, UnwatchRange
from statecast.push.v1.subscription_pb2 import Changed, Removed, Start, Subscribe, Subscribed, Unsubscribe
from statecast.state.v1.state_pb2 import Position
from statecast_client.errors import StatecastError
from statecast_client.push.protocol import Request, name_of

T = TypeVar("T")
Update = Changed | Removed
"""What a key holds now: `Changed.row` is packed in an Any; `Removed` when there is nothing."""

RangeUpdate = RangeWatched | RangeChanged
"""What happens in a range: after `RangeWatched` all members follow, and those that came before it are void."""


class Watched(Generic[T]):
    """Iterate over it for what is there and for all that is newer.

    It keeps what is unread and no more: a reader that is slower than the changes gets the newest, whose `skipped`
    counts those that it replaces. The iteration ends when it is unsubscribed or the client is closed, and raises
    PushRefusedError when the server refuses. One reader at a time.
    """

    def __init__(
        self, request: Request, position: Position | None, unsubscribe: Callable[["Watched[T]"], Awaitable[None]]
    ) -> None:
        """`unsubscribe` ends the subscription at the server."""
        self.name = name_of(request)
        self.position = position
        """Everything up to it has come; at first the position to begin after."""
        self.frame_id = ""
        """The id of the frame that asked for it last."""
        self.in_force = False
        """Whether the server has confirmed it: updates before that belong to an earlier subscription."""
        self.recovered: bool | None = None
        """Whether the server resumed from the position when it last confirmed the subscription; None before."""
        self._request = request
        self._unsubscribe = unsubscribe
        self._unread: dict[str | None, T] = {}
        self._end: Exception | None = None
        self._woken = asyncio.Event()

    def opening(self, frame_id: str) -> ClientFrame:
        """Returns the frame that asks for what is there and every change, or only for what is newer than `position`."""
        self.frame_id, self.in_force, request = frame_id, False, self._request
        request.ClearField("after")
        if self.position is not None:
            request.after.CopyFrom(self.position)
        if isinstance(request, Subscribe):
            return ClientFrame(id=frame_id, subscribe=request)
        return ClientFrame(id=frame_id, watch_range=request)

    def closing(self, frame_id: str) -> ClientFrame:
        """Returns the frame that ends it at the server."""
        if isinstance(self._request, Subscribe):
            key = Unsubscribe(store=self._request.store, key=self._request.key)
            return ClientFrame(id=frame_id, unsubscribe=key)
        return ClientFrame(id=frame_id, unwatch_range=UnwatchRange(range=self._request.range))

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

    def _keep(self, member: str | None, update: T) -> None:
        self._unread[member] = update
        self._woken.set()


class Subscription(Watched[Update]):
    """One key; only its newest update is kept unread."""

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
        request: Request,
        position: Position | None,
        unsubscribe: Callable[[Watched[RangeUpdate]], Awaitable[None]],
    ) -> None:
        super().__init__(request, position, unsubscribe)
        self._ahead: dict[str, Position] = {}
        """The positions of members beyond `position`: a resumption from there brings their changes again.

        A row can be newer than the `through` of its own frame, because its range is read after that was taken.
        """

    def begin(self, confirmation: Subscribed | RangeWatched) -> None:
        super().begin(confirmation)
        if not isinstance(confirmation, RangeWatched):
            return
        if confirmation.start == Start.START_SNAPSHOT:
            self._unread.clear()
            self._keep(None, confirmation)
            self._advance(None)
        if confirmation.HasField("through"):
            self._advance(confirmation.through)

    def put(self, changed: RangeChanged) -> None:
        member = changed.key.member
        last = self._ahead.get(member)
        self._ahead[member] = changed.position
        if changed.HasField("through"):
            self._advance(changed.through)
        if covers(last, changed.position):
            return
        unread = self._unread.pop(member, None)
        merged = _merged(unread, changed) if isinstance(unread, RangeChanged) else changed
        if merged is not None:
            self._keep(member, merged)

    def _advance(self, position: Position | None) -> None:
        self.position = position
        beyond = {} if position is None else self._ahead
        self._ahead = {member: ahead for member, ahead in beyond.items() if not covers(position, ahead)}


def _merged(unread: RangeChanged, newer: RangeChanged) -> RangeChanged | None:
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
