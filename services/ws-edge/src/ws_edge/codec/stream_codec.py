"""The frames of `/v1/stream`: statecast.push.v1.ClientFrame and ServerFrame, as proto3 JSON or binary."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message
from google.protobuf.struct_pb2 import Value
from typing_extensions import override

from statecast.json_documents import document_of
from statecast.push.v1.push_pb2 import Authenticated, Begin, ChannelAttached, ClientFrame, Error, Reconnect, ServerFrame
from statecast.push.v1.query_pb2 import QueryPlace, QueryPosition, QueryUnwatched, WatchQuery
from statecast.push.v1.range_pb2 import MemberChange as ChangeKind
from statecast.push.v1.range_pb2 import Range, RangeChanged, RangeUnwatched, RangeWatched, WatchRange
from statecast.push.v1.subscription_pb2 import Changed, Removed, Start, Subscribe, Subscribed, Unsubscribed
from statecast.state.v1 import state_pb2
from ws_edge.channels.channel import Channel
from ws_edge.codec import frames
from ws_edge.codec.frames import (
    BeginRequest,
    CancelQueryRequest,
    CancelRequest,
    FrameCodec,
    Held,
    QueryRequest,
    RefreshRequest,
    Reply,
    Request,
    WatchRequest,
)
from ws_edge.errors import EdgeError, MalformedFrameError, RequestError
from ws_edge.hub.member_changes import MemberChange
from ws_edge.hub.watch import Subscription
from ws_edge.model.query_specs import check_name, query_spec, range_key
from ws_edge.model.states import AnyKey, KeyState, Place, Position, RangeKey, StoreKey
from ws_edge.model.stores import Stores, find
from ws_edge.upstream.queries import key_message, position_message

BINARY_SUBPROTOCOL = "statecast.push.v1+proto"
JSON_SUBPROTOCOL = "statecast.push.v1+json"
"""What clients get that offer neither; named for browsers, which must be given one of what they offer."""
MAX_REFERENCE = 64
MAX_FORMS = 4
"""The frames that a state of a range keeps: while it stays, each position of its range makes another one."""


class StreamCodec(FrameCodec):
    """The codec for all stores, keys and ranges. The reference of a request is the id of its frame."""

    def __init__(self, stores: Stores, binary: bool) -> None:
        self._stores = stores
        self._binary = binary
        self.name = "stream-binary" if binary else "stream-json"
        self.subprotocol = BINARY_SUBPROTOCOL if binary else JSON_SUBPROTOCOL

    @override
    def parse(self, event: Mapping[str, Any]) -> Request:
        try:
            frame = self._client_frame(event)
        except (json_format.ParseError, DecodeError, RecursionError) as error:
            text = f"the frame is not a ClientFrame: {frames.one_line(error)}"
            raise MalformedFrameError(text, _id_in(event)) from error
        if len(frame.id) > MAX_REFERENCE:
            raise MalformedFrameError(f"the frame's id is longer than {MAX_REFERENCE} characters")
        try:
            return self._request(frame)
        except RequestError as error:
            error.reference = frame.id
            raise

    @override
    def changed(self, state: KeyState, skipped: int) -> Reply:
        message = Changed if state.row is not None else Removed
        event = message(
            store=state.key.store,
            key=key_message(state.key),
            position=position_message(state.position),
            commit_time=None if state.commit_ns is None else frames.timestamp(state.commit_ns),
            skipped=skipped,
            lag_ms=state.lag_ms,
        )
        if isinstance(event, Changed):
            return self._encode(ServerFrame(changed=event), state.row)
        return self._encode(ServerFrame(removed=event))

    @override
    def member_changed(
        self, key: AnyKey, change: MemberChange, position: Position | None, lag_ms: int = 0, place: Place | None = None
    ) -> Reply:
        change.state.check_readable()
        return self._placed(self._member_changed(key, change, position, lag_ms), place)

    def _member_changed(self, key: AnyKey, change: MemberChange, position: Position | None, lag_ms: int) -> Reply:
        if change.skipped:
            return self._range_changed(key, change, position, lag_ms)
        # One that skipped nothing is encoded once for all its subscribers.
        shared = change.state.frames
        form = f"{self.name} {_kind_of(change)} {position} {lag_ms}"
        frame = shared.get(form)
        if frame is None:
            if len(shared) >= MAX_FORMS:
                shared.clear()
            frame = shared[form] = self._range_changed(key, change, position, lag_ms)
        return frame

    @override
    def started(self, subscription: Subscription, recovered: bool) -> Reply | None:
        key, lag_ms = subscription.watch.key, subscription.watch.lag_ms
        start = Start.START_RECOVERED if recovered else Start.START_SNAPSHOT
        interval_ms, place = round(subscription.interval * 1000), subscription.place
        if isinstance(key, StoreKey) and place is None:
            event = Subscribed(store=key.store, key=key_message(key), start=start, interval_ms=interval_ms)
            event.lag_ms = lag_ms
            return self._encode(ServerFrame(id=subscription.reference, subscribed=event))
        members, position = subscription.backlog.readable if subscription.backlog else 0, subscription.position
        watched = RangeWatched(range=_range(key), start=start, interval_ms=interval_ms, members=members, lag_ms=lag_ms)
        if position is not None:
            watched.through.CopyFrom(position_message(position))
        return self._placed(self._encode(ServerFrame(id=subscription.reference, range_watched=watched)), place)

    @override
    def cancelled(self, key: AnyKey, reference: str, place: Place | None = None) -> Reply:
        if isinstance(key, RangeKey) or place is not None:
            event = RangeUnwatched(range=_range(key))
            return self._placed(self._encode(ServerFrame(id=reference, range_unwatched=event)), place)
        return self._encode(ServerFrame(id=reference, unsubscribed=Unsubscribed(store=key.store, key=key_message(key))))

    @override
    def query_cancelled(self, name: str, reference: str) -> Reply:
        return self._encode(ServerFrame(id=reference, query_unwatched=QueryUnwatched(name=name)))

    @override
    def greetings(self, channel: Channel | None, expires_at: float | None) -> list[Reply]:
        replies = [] if expires_at is None else [self.authenticated(expires_at, "")]
        if channel is not None:
            expiry, count = frames.timestamp(round(channel.expires_at * 1e9)), len(channel.subscriptions)
            event = ChannelAttached(channel=channel.id, subscriptions=count, expires_at=expiry)
            replies.insert(0, self._encode(ServerFrame(channel_attached=event)))
        return replies

    @override
    def authenticated(self, expires_at: float | None, reference: str) -> Reply:
        expiry = None if expires_at is None else frames.timestamp(int(expires_at * 1e9))
        return self._encode(ServerFrame(id=reference, authenticated=Authenticated(expires_at=expiry)))

    @override
    def reconnect(self, delay_ms: int) -> Reply:
        return self._encode(ServerFrame(reconnect=Reconnect(delay_ms=delay_ms)))

    @override
    def failed(self, error: EdgeError, reference: str) -> Reply:
        return self._encode(ServerFrame(id=reference, error=Error(code=error.code, message=str(error))))

    def _client_frame(self, event: Mapping[str, Any]) -> ClientFrame:
        if not self._binary:
            return json_format.Parse(frames.text_of(event), ClientFrame())
        if event.get("bytes") is None:
            raise MalformedFrameError(f"with {BINARY_SUBPROTOCOL} frames are binary: this one is text")
        return ClientFrame.FromString(event["bytes"])

    def _request(self, frame: ClientFrame) -> Request:
        match frame.WhichOneof("request"):
            case "subscribe":
                key = self._store_key(frame.subscribe.store, frame.subscribe.key)
                return _watch_request(key, frame.subscribe, frame.id)
            case "unsubscribe":
                return CancelRequest(self._store_key(frame.unsubscribe.store, frame.unsubscribe.key), frame.id)
            case "watch_range":
                return _watch_request(self._range_key(frame.watch_range.range), frame.watch_range, frame.id)
            case "unwatch_range":
                return CancelRequest(self._range_key(frame.unwatch_range.range), frame.id)
            case "watch_query":
                return _query_request(frame.watch_query, frame.id)
            case "unwatch_query":
                check_name(frame.unwatch_query.name)
                return CancelQueryRequest(frame.unwatch_query.name, frame.id)
            case "auth_refresh":
                return RefreshRequest(frame.auth_refresh.ticket, frame.id)
            case "begin":
                queries = {each.name: _held(each.after) for each in frame.begin.after_queries}
                return BeginRequest(self._positions(frame.begin), queries, frame.id)
        fields = ", ".join(field.name for field in frame.DESCRIPTOR.oneofs_by_name["request"].fields)
        raise MalformedFrameError(f"the frame asks for nothing: set one of {fields}")

    def _positions(self, begin: Begin) -> dict[AnyKey, Position]:
        held = list[tuple[AnyKey, state_pb2.Position]]()
        held += [(self._store_key(each.store, each.key), each.position) for each in begin.after]
        held += [(self._range_key(each.range), each.through) for each in begin.after_ranges]
        return {key: frames.check_position(position.epoch, position.offset) for key, position in held}

    def _store_key(self, store: str, key: state_pb2.StateKey) -> StoreKey:
        store_key = StoreKey(store, key.group, key.sort, key.member)
        find(self._stores, store).check(store_key)
        return store_key

    def _range_key(self, value: Range) -> RangeKey:
        key = range_key(value)
        find(self._stores, value.store).check(key)
        return key

    def _placed(self, reply: Reply, place: Place | None) -> Reply:
        """The frame with the place of its range in a query. All else is as encoded once, for all queries and ranges."""
        if place is None:
            return reply
        head = ServerFrame(query=QueryPlace(name=place.query, path=place.path))
        if self._binary:
            return {**reply, "bytes": reply["bytes"] + head.SerializeToString()}
        text = json_format.MessageToJson(head, preserving_proto_field_name=True, indent=None)
        return {**reply, "text": f"{text[:-1]},{reply['text'][1:]}"}

    def _range_changed(self, key: AnyKey, change: MemberChange, position: Position | None, lag_ms: int) -> Reply:
        state = change.state
        event = RangeChanged(
            range=_range(key),
            change=_kind_of(change),
            key=key_message(state.key),
            position=position_message(state.position),
            commit_time=None if state.commit_ns is None else frames.timestamp(state.commit_ns),
            skipped=change.skipped,
            through=None if position is None else position_message(position),
            lag_ms=lag_ms,
        )
        return self._encode(ServerFrame(range_changed=event), state.row)

    def _encode(self, frame: ServerFrame, row: Message | None = None) -> Reply:
        """The frame; `row` is that of the event in it."""
        kind = frame.WhichOneof("event") or ""
        if self._binary:
            if row is not None:
                getattr(frame, kind).row.Pack(row, deterministic=True)
            return {"type": "websocket.send", "bytes": frame.SerializeToString()}
        document = json_format.MessageToDict(frame, preserving_proto_field_name=True)
        if row is not None:
            document[kind]["row"] = _any_document(row)
        return frames.text_frame(document)


def _id_in(event: Mapping[str, Any]) -> str:
    """The id of a frame of JSON that is no ClientFrame; empty when it cannot be read."""
    try:
        document = json.loads(event.get("text") or "")
    except (ValueError, RecursionError):
        return ""
    frame_id = document.get("id") if isinstance(document, dict) else None
    return frame_id if isinstance(frame_id, str) and len(frame_id) <= MAX_REFERENCE else ""


def _watch_request(key: AnyKey, message: Subscribe | WatchRange, reference: str) -> WatchRequest:
    position = (message.after.epoch, message.after.offset) if message.HasField("after") else None
    interval_ms = message.interval_ms if message.HasField("interval_ms") else None
    repeat = isinstance(message, Subscribe) and message.repeat
    return frames.watch_request(key, position, interval_ms, reference, repeat)


def _query_request(message: WatchQuery, reference: str) -> QueryRequest:
    interval_ms = message.interval_ms if message.HasField("interval_ms") else None
    frames.check_interval(interval_ms)
    return QueryRequest(query_spec(message.query), _held(message.after), interval_ms, reference)


def _held(after: Iterable[QueryPosition]) -> Held:
    return {
        (tuple(each.path), each.group): frames.check_position(each.through.epoch, each.through.offset) for each in after
    }


def _kind_of(change: MemberChange) -> "ChangeKind.ValueType":
    if change.state.row is None:
        return ChangeKind.MEMBER_CHANGE_LEFT
    return ChangeKind.MEMBER_CHANGE_ENTERED if change.before is None else ChangeKind.MEMBER_CHANGE_CHANGED


def _any_document(row: Message) -> dict[str, Any]:
    """An Any in proto3 JSON. json_format would look its type up, and those that are mounted are in no registry."""
    if isinstance(row, Value):
        content = {"value": document_of(row)}
    else:
        content = json_format.MessageToDict(row, preserving_proto_field_name=True)
    return {"@type": f"type.googleapis.com/{row.DESCRIPTOR.full_name}", **content}


def _range(key: AnyKey) -> Range:
    return Range(**key._asdict()) if isinstance(key, RangeKey) else Range(store=key.store, group=key.group)
