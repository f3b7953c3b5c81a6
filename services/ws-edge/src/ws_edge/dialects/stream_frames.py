"""The frames of `/v1/stream`: statecast.push.v1.ClientFrame and ServerFrame, as proto3 JSON or binary."""

from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import DecodeError

from statecast.push.v1.push_pb2 import Authenticated, Begin, ChannelAttached, ClientFrame, Error, Reconnect, ServerFrame
from statecast.push.v1.subscription_pb2 import Changed, Removed, Start, Subscribe, Subscribed, Unsubscribed
from statecast.state.v1.state_pb2 import Position as PositionProto
from statecast.state.v1.state_pb2 import StateKey
from ws_edge.dialects.frames import (
    LONGEST_REFERENCE,
    BeginRequest,
    CancelRequest,
    RefreshRequest,
    Request,
    WatchRequest,
    check_interval,
    check_position,
    one_line,
    text_frame,
    text_of,
)
from ws_edge.dialects.range_frames import RangeFrames
from ws_edge.errors import EdgeError, MalformedFrameError, RequestError
from ws_edge.hub.outbox import Reply
from ws_edge.hub.subscription import Subscription
from ws_edge.shared.channel import Channel
from ws_edge.states import AnyKey, Position, StoreKey, Version
from ws_edge.stores import Stores, find

BINARY_SUBPROTOCOL = "statecast.push.v1+proto"


class StreamFrames:
    """The dialect for all stores. The reference of a request is the id of its frame."""

    def __init__(self, stores: Stores, binary: bool) -> None:
        self._stores = stores
        self._binary = binary
        self.name = "stream-binary" if binary else "stream-json"
        self.ranges = RangeFrames(self.name, stores, self._encode)

    def parse(self, event: Mapping[str, Any]) -> Request:
        """Reads a ClientFrame. Raises MalformedFrameError or UnknownStoreError, with the frame's id."""
        frame = self._client_frame(event)
        if len(frame.id) > LONGEST_REFERENCE:
            raise MalformedFrameError(f"the frame's id is longer than {LONGEST_REFERENCE} characters")
        try:
            return self._request(frame)
        except RequestError as error:
            error.reference = frame.id
            raise

    def changed(self, version: Version, skipped: int) -> Reply:
        """A Changed or a Removed frame."""
        about = Changed if version.row is not None else Removed
        event = about(store=version.key.store, key=_key(version.key), skipped=skipped)
        event.position.CopyFrom(PositionProto(epoch=version.position.epoch, offset=version.position.offset))
        if version.commit_ns is not None:
            event.commit_time.FromNanoseconds(version.commit_ns)
        if isinstance(event, Changed):
            event.row.Pack(version.row, deterministic=True)
            return self._encode(ServerFrame(changed=event))
        return self._encode(ServerFrame(removed=event))

    def started(self, subscription: Subscription, recovered: bool) -> Reply | None:
        """A Subscribed frame."""
        key = subscription.watch.key
        start = Start.START_RECOVERED if recovered else Start.START_SNAPSHOT
        interval_ms = round(subscription.interval * 1000)
        event = Subscribed(store=key.store, key=_key(key), start=start, interval_ms=interval_ms)
        return self._encode(ServerFrame(id=subscription.reference, subscribed=event))

    def cancelled(self, request: CancelRequest) -> Reply:
        """An Unsubscribed frame."""
        event = Unsubscribed(store=request.key.store, key=_key(request.key))
        return self._encode(ServerFrame(id=request.reference, unsubscribed=event))

    def admitted(self, expires_at: float | None) -> Reply | None:
        """An Authenticated frame that answers nothing."""
        return None if expires_at is None else self.authenticated(expires_at, "")

    def authenticated(self, expires_at: float | None, reference: str) -> Reply:
        """An Authenticated frame."""
        event = Authenticated()
        if expires_at is not None:
            event.expires_at.FromNanoseconds(int(expires_at * 1e9))
        return self._encode(ServerFrame(id=reference, authenticated=event))

    def reconnect(self, delay_ms: int) -> Reply:
        """A Reconnect frame."""
        return self._encode(ServerFrame(reconnect=Reconnect(delay_ms=delay_ms)))

    def attached(self, channel: Channel) -> Reply:
        """A ChannelAttached frame."""
        event = ChannelAttached(channel=channel.id, subscriptions=len(channel.subscriptions))
        event.expires_at.FromNanoseconds(round(channel.expires_at * 1e9))
        return self._encode(ServerFrame(channel_attached=event))

    def failed(self, error: EdgeError, reference: str) -> Reply:
        """An Error frame."""
        return self._encode(ServerFrame(id=reference, error=Error(code=error.code, message=str(error))))

    def _client_frame(self, event: Mapping[str, Any]) -> ClientFrame:
        try:
            if not self._binary:
                return json_format.Parse(text_of(event), ClientFrame())
            if event.get("bytes") is None:
                raise MalformedFrameError(f"with {BINARY_SUBPROTOCOL} frames are binary: this one is text")
            return ClientFrame.FromString(event["bytes"])
        except (json_format.ParseError, DecodeError, RecursionError) as error:
            raise MalformedFrameError(f"the frame is not a ClientFrame: {one_line(error)}") from error

    def _request(self, frame: ClientFrame) -> Request:
        if frame.HasField("subscribe"):
            subscribe = frame.subscribe
            key = self._store_key(subscribe.store, subscribe.key)
            after = check_position(*_pair(subscribe)) if subscribe.HasField("after") else None
            interval = check_interval(subscribe.interval_ms) if subscribe.HasField("interval_ms") else None
            return WatchRequest(key, after, interval, frame.id)
        if frame.HasField("unsubscribe"):
            return CancelRequest(self._store_key(frame.unsubscribe.store, frame.unsubscribe.key), frame.id)
        if frame.HasField("auth_refresh"):
            return RefreshRequest(frame.auth_refresh.ticket, frame.id)
        if frame.HasField("begin"):
            return BeginRequest(self._positions(frame.begin), frame.id)
        range_request = self.ranges.parse(frame)
        if range_request is not None:
            return range_request
        fields = ", ".join(field.name for field in frame.DESCRIPTOR.oneofs_by_name["request"].fields)
        raise MalformedFrameError(f"the frame asks for nothing: set one of {fields}")

    def _positions(self, begin: Begin) -> dict[AnyKey, Position]:
        positions: dict[AnyKey, Position] = {
            self._store_key(held.store, held.key): check_position(held.position.epoch, held.position.offset)
            for held in begin.after
        }
        return positions | dict(map(self.ranges.position, begin.after_ranges))

    def _store_key(self, store: str, key: StateKey) -> StoreKey:
        found = find(self._stores, store)
        named = StoreKey(store, key.group, key.sort, key.member)
        found.check_key(named)
        return named

    def _encode(self, frame: ServerFrame) -> Reply:
        if self._binary:
            return {"type": "websocket.send", "bytes": frame.SerializeToString()}
        document = json_format.MessageToDict(frame, preserving_proto_field_name=True)
        return text_frame(document)


def _key(key: StoreKey) -> StateKey:
    return StateKey(group=key.group, sort=key.sort, member=key.member)


def _pair(subscribe: Subscribe) -> tuple[int, int]:
    return subscribe.after.epoch, subscribe.after.offset
