"""The frames of `/v1/stream` about ranges: how they are asked for, and what is said of them."""

from collections.abc import Callable

from statecast.push.v1.push_pb2 import ClientFrame, ServerFrame
from statecast.push.v1.range_pb2 import MemberChange as Kind
from statecast.push.v1.range_pb2 import Range, RangeChanged, RangePosition, RangeUnwatched, RangeWatched
from statecast.push.v1.subscription_pb2 import Start
from statecast.state.v1.state_pb2 import Position as PositionProto
from statecast.state.v1.state_pb2 import StateKey
from ws_edge.dialects.frames import CancelRangeRequest, WatchRangeRequest, check_interval, check_position
from ws_edge.hub.member_changes import MemberChange
from ws_edge.hub.outbox import Reply
from ws_edge.hub.range_subscription import RangeSubscription
from ws_edge.states import Position, RangeKey
from ws_edge.stores import Stores, find


class RangeFrames:
    """The range frames of one form of the dialect, which `encode` gives them."""

    def __init__(self, name: str, stores: Stores, encode: Callable[[ServerFrame], Reply]) -> None:
        self._name = name
        self._stores = stores
        self._encode = encode

    def parse(self, frame: ClientFrame) -> WatchRangeRequest | CancelRangeRequest | None:
        """Reads a request about a range; None when it is another. Raises MalformedFrameError or UnknownStoreError."""
        if frame.HasField("watch_range"):
            asked = frame.watch_range
            after = check_position(asked.after.epoch, asked.after.offset) if asked.HasField("after") else None
            interval = check_interval(asked.interval_ms) if asked.HasField("interval_ms") else None
            return WatchRangeRequest(self._key(asked.range), after, interval, frame.id)
        if frame.HasField("unwatch_range"):
            return CancelRangeRequest(self._key(frame.unwatch_range.range), frame.id)
        return None

    def position(self, held: RangePosition) -> tuple[RangeKey, Position]:
        """Reads how far a client has read a range. Raises MalformedFrameError or UnknownStoreError."""
        return self._key(held.range), check_position(held.through.epoch, held.through.offset)

    def started(self, subscription: RangeSubscription, recovered: bool) -> Reply:
        """A RangeWatched frame."""
        event = RangeWatched(
            range=_range(subscription.watch.key),
            start=Start.START_RECOVERED if recovered else Start.START_SNAPSHOT,
            interval_ms=round(subscription.interval * 1000),
            members=len(subscription.pending),
        )
        if subscription.through is not None:
            event.through.CopyFrom(_position(subscription.through))
        return self._encode(ServerFrame(id=subscription.reference, range_watched=event))

    def changed(self, key: RangeKey, change: MemberChange, through: Position | None) -> Reply:
        """A RangeChanged frame; one that skipped nothing is encoded once for all who are told the same."""
        if change.skipped:
            return self._changed(key, change, through)
        shared = change.frames if change.after is None else change.after.frames
        form = f"{self._name} {_kind_of(change)} {through}"
        frame = shared.get(form)
        if frame is None:
            frame = shared[form] = self._changed(key, change, through)
        return frame

    def cancelled(self, request: CancelRangeRequest) -> Reply:
        """A RangeUnwatched frame."""
        event = RangeUnwatched(range=_range(request.key))
        return self._encode(ServerFrame(id=request.reference, range_unwatched=event))

    def _changed(self, key: RangeKey, change: MemberChange, through: Position | None) -> Reply:
        row = change.after
        event = RangeChanged(range=_range(key), change=_kind_of(change), skipped=change.skipped)
        event.key.CopyFrom(StateKey(group=change.key.group, sort=change.key.sort, member=change.key.member))
        event.position.CopyFrom(_position(change.position if row is None else row.position))
        if change.commit_ns is not None:
            event.commit_time.FromNanoseconds(change.commit_ns)
        if row is not None:
            event.row.Pack(row.row, deterministic=True)
        if through is not None:
            event.through.CopyFrom(_position(through))
        return self._encode(ServerFrame(range_changed=event))

    def _key(self, asked: Range) -> RangeKey:
        key = RangeKey(asked.store, asked.group, asked.sort_from, asked.sort_to, asked.limit, asked.reverse)
        find(self._stores, asked.store).check_range(key)
        return key


def _kind_of(change: MemberChange) -> "Kind.ValueType":
    if change.after is None:
        return Kind.MEMBER_CHANGE_LEFT
    return Kind.MEMBER_CHANGE_ENTERED if change.before is None else Kind.MEMBER_CHANGE_CHANGED


def _range(key: RangeKey) -> Range:
    return Range(**key._asdict())


def _position(position: Position) -> PositionProto:
    return PositionProto(epoch=position.epoch, offset=position.offset)
