"""The interface of a codec of frames, the requests that all codecs understand alike, and their common parts."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

from google.protobuf.timestamp_pb2 import Timestamp

from ws_edge.channels.channel import Channel
from ws_edge.errors import EdgeError, MalformedFrameError, RowTooLargeError
from ws_edge.hub.member_changes import MemberChange
from ws_edge.hub.watch import Subscription
from ws_edge.model.query_specs import QuerySpec
from ws_edge.model.states import AnyKey, KeyState, Path, Place, Position

Reply = dict[str, Any]
"""An encoded frame, as an ASGI `websocket.send` event; it is sent as it is, and may be shared by many sockets."""


class WatchRequest(NamedTuple):
    """Start watching a key or a range, or change how it is watched. The limit 0 of a range takes the default."""

    key: AnyKey
    after: Position | None
    interval_ms: int | None
    reference: str
    repeat: bool = False
    """Whether a key is to be told again at each interval in which nothing has changed."""


class CancelRequest(NamedTuple):
    """Stop watching a key or a range."""

    key: AnyKey
    reference: str


Held = Mapping[tuple[Path, str], Position]
"""What a client has of a query, by the path and the group of each range."""


class QueryRequest(NamedTuple):
    """A request to watch a range, and for each of its rows the next step, after the positions that the client has."""

    spec: QuerySpec
    after: Held
    interval_ms: int | None
    reference: str


class CancelQueryRequest(NamedTuple):
    """Stop watching a query."""

    name: str
    reference: str


class RefreshRequest(NamedTuple):
    """Renew the access of the socket."""

    ticket: str
    reference: str


class BeginRequest(NamedTuple):
    """A request to start the subscriptions of the socket's channel, each after the positions that the client has."""

    after: Mapping[AnyKey, Position]
    queries: Mapping[str, Held]
    """The same for queries, by their names."""
    reference: str


Request = WatchRequest | CancelRequest | QueryRequest | CancelQueryRequest | RefreshRequest | BeginRequest


class FrameCodec(ABC):
    """One way to write frames. Each method but `parse` returns the frame that its name describes."""

    name: str
    """The key of the codec's frames in KeyState.frames."""
    subprotocol: str | None = None

    @abstractmethod
    def parse(self, event: Mapping[str, Any]) -> Request:
        """Reads an ASGI `websocket.receive` event. Raises a RequestError that names the fault."""

    @abstractmethod
    def changed(self, state: KeyState, skipped: int) -> Reply:
        """Returns the frame for the state of a key, after `skipped` states that were not sent."""

    def member_changed(
        self, key: AnyKey, change: MemberChange, position: Position | None, lag_ms: int = 0, place: Place | None = None
    ) -> Reply:
        """Returns the frame for a change of a member. `position` is the range's when no other change waits.

        Only for codecs with requests for ranges. Raises UnreadableRowError.
        """
        raise NotImplementedError

    def started(self, subscription: Subscription, recovered: bool) -> Reply | None:  # noqa: ARG002  not all need it
        return None

    @abstractmethod
    def cancelled(self, key: AnyKey, reference: str, place: Place | None = None) -> Reply: ...

    def query_cancelled(self, name: str, reference: str) -> Reply:
        """Returns the frame for a cancelled query. Only for codecs with requests for queries."""
        raise NotImplementedError

    def greetings(self, channel: Channel | None, expires_at: float | None) -> list[Reply]:  # noqa: ARG002  see started
        """The frames that tell a new socket its channel, and when its access ends, as far as there is such a thing."""
        return []

    @abstractmethod
    def authenticated(self, expires_at: float | None, reference: str) -> Reply:
        """Access has been renewed until then, in seconds since 1970; None is for ever."""

    @abstractmethod
    def reconnect(self, delay_ms: int) -> Reply:
        """The socket will be closed after the delay, because this edge stops."""

    @abstractmethod
    def failed(self, error: EdgeError, reference: str) -> Reply: ...

    def frame_of(self, state: KeyState, skipped: int) -> Reply:
        """As `changed`; a frame that skipped nothing is encoded once for all its subscribers.

        Raises UnreadableRowError.
        """
        state.check_readable()
        if skipped:
            return self.changed(state, skipped)
        frame = state.frames.get(self.name)
        if frame is None:
            frame = state.frames[self.name] = self.changed(state, 0)
        return frame


def text_of(event: Mapping[str, Any]) -> str:
    """The text of a received frame; raises MalformedFrameError for a binary one, and for half of a character in it."""
    text = event.get("text")
    if text is None:
        raise MalformedFrameError("binary frames are not understood here: send JSON in text frames")
    if "\\u" in text:  # JSON can escape a lone surrogate, but no message can hold it, and no error's text
        _check_characters(text)
    return str(text)


def _check_characters(text: str) -> None:
    try:
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise MalformedFrameError("a text has half of a character: send both escapes of a surrogate pair") from error
    except (ValueError, RecursionError):
        return  # it is no JSON, which the codec says


def text_frame(document: dict[str, Any]) -> Reply:
    return {"type": "websocket.send", "text": json.dumps(document, ensure_ascii=False, separators=(",", ":"))}


MAX_CHARACTER_BYTES = 4
"""Of a character in UTF-8."""


def check_size(frame: Reply, key: AnyKey, max_bytes: int) -> None:
    """Raises RowTooLargeError when the frame of the key's row is larger than `max_bytes`."""
    content = frame.get("text") or frame.get("bytes") or ""
    size = len(content)
    if size * MAX_CHARACTER_BYTES > max_bytes and isinstance(content, str):
        size = len(content.encode())
    if size > max_bytes:
        text = (
            f"the row of {key} takes a frame of {size} bytes, and {max_bytes} is the most: what you have of it is old"
        )
        raise RowTooLargeError(text)


def timestamp(nanoseconds: int) -> Timestamp:
    moment = Timestamp()
    moment.FromNanoseconds(nanoseconds)
    return moment


def rfc3339(nanoseconds: int) -> str:
    """The time as proto3 JSON writes a Timestamp."""
    return timestamp(nanoseconds).ToJsonString()


def check_position(epoch: int, offset: int, reference: str = "") -> Position:
    """Returns the position; raises MalformedFrameError when there can be no such one."""
    # The offset is -1 before the first record: an order that is unknown in an empty store has that position.
    if epoch < 0 or offset < -1:
        raise MalformedFrameError("there is no such position: pass back the one that a frame brought", reference)
    return Position(epoch, offset)


def check_interval(interval_ms: int | None, reference: str = "") -> None:
    """Raises MalformedFrameError when there can be no such interval."""
    if interval_ms is not None and interval_ms < 0:
        raise MalformedFrameError(f"interval_ms is {interval_ms}: it is a number of milliseconds", reference)


def watch_request(
    key: AnyKey, position: tuple[int, int] | None, interval_ms: int | None, reference: str, repeat: bool = False
) -> WatchRequest:
    """Returns the request. Raises MalformedFrameError when its position or its interval is impossible."""
    after = None if position is None else check_position(*position, reference)
    check_interval(interval_ms, reference)
    if repeat and interval_ms == 0:
        text = "repeat needs an interval: leave interval_ms out, or send one that is not 0"
        raise MalformedFrameError(text, reference)
    return WatchRequest(key, after, interval_ms, reference, repeat)


def one_line(error: Exception) -> str:
    """The text of an error of a parser, on one line and not longer than a frame should carry."""
    return " ".join(str(error).split())[:300]
