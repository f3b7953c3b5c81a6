"""What every dialect of frames must be able to do, and what requests mean whatever dialect they came in."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from google.protobuf.timestamp_pb2 import Timestamp

from ws_edge.errors import EdgeError, MalformedFrameError
from ws_edge.hub.member_changes import MemberChange
from ws_edge.hub.outbox import Reply
from ws_edge.hub.range_subscription import RangeSubscription
from ws_edge.hub.subscription import Subscription
from ws_edge.states import AnyKey, Position, RangeKey, StoreKey, Version

LONGEST_REFERENCE = 64


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """Start watching a key, or change how it is watched."""

    key: StoreKey
    after: Position | None
    interval_ms: int | None
    reference: str


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """Stop watching a key."""

    key: StoreKey
    reference: str


@dataclass(frozen=True, slots=True)
class RefreshRequest:
    """Renew the access of the socket."""

    ticket: str
    reference: str


@dataclass(frozen=True, slots=True)
class BeginRequest:
    """Start the subscriptions of the channel to which the socket is attached, each after what the client has."""

    after: Mapping[AnyKey, Position]
    reference: str


@dataclass(frozen=True, slots=True)
class WatchRangeRequest:
    """Start watching a range, or change how it is watched. A limit of 0 takes the default."""

    key: RangeKey
    after: Position | None
    interval_ms: int | None
    reference: str


@dataclass(frozen=True, slots=True)
class CancelRangeRequest:
    """Stop watching a range."""

    key: RangeKey
    reference: str


Request = WatchRequest | CancelRequest | RefreshRequest | BeginRequest | WatchRangeRequest | CancelRangeRequest


class RangeDialect(Protocol):
    """One way to write frames about ranges."""

    def started(self, subscription: RangeSubscription, recovered: bool) -> Reply:
        """The frame that says that a range is being watched."""

    def changed(self, key: RangeKey, change: MemberChange, through: Position | None) -> Reply:
        """The frame for what has happened to a member; `through` when it is the last one that waits."""

    def cancelled(self, request: CancelRangeRequest) -> Reply:
        """The frame that says that the watching of a range has ended."""


class Dialect(Protocol):
    """One way to write frames. A frame is an ASGI `websocket.send` event, which is sent as it is and may be shared."""

    @property
    def name(self) -> str:
        """The key of the dialect's frames in Version.frames."""

    @property
    def ranges(self) -> RangeDialect | None:
        """The frames about ranges; None when no request of this dialect can ask for one."""

    def parse(self, event: Mapping[str, Any]) -> Request:
        """Reads an ASGI `websocket.receive` event. Raises MalformedFrameError that says what is wrong."""

    def changed(self, version: Version, skipped: int) -> Reply:
        """The frame for what a key holds, after `skipped` versions that were not sent."""

    def started(self, subscription: Subscription, recovered: bool) -> Reply | None:
        """The frame that says that a subscription is in force; None when the dialect has none."""

    def cancelled(self, request: CancelRequest) -> Reply:
        """The frame that says that a subscription has ended."""

    def admitted(self, expires_at: float | None) -> Reply | None:
        """The frame that tells a new socket when its access ends; None when it never does, or the dialect has none."""

    def authenticated(self, expires_at: float | None, reference: str) -> Reply:
        """The frame that says until when access has been renewed, in seconds since 1970; None is for ever."""

    def reconnect(self, delay_ms: int) -> Reply:
        """The frame that says when the socket will be closed because this edge stops."""

    def failed(self, error: EdgeError, reference: str) -> Reply:
        """The frame that says that a request failed."""


def frame_of(dialect: Dialect, version: Version, skipped: int) -> Reply:
    """The frame for a version; one that skipped nothing is encoded once for all who get it."""
    if skipped:
        return dialect.changed(version, skipped)
    frame = version.frames.get(dialect.name)
    if frame is None:
        frame = version.frames[dialect.name] = dialect.changed(version, 0)
    return frame


def text_of(event: Mapping[str, Any]) -> str:
    """The text of a received frame; raises MalformedFrameError for a binary one."""
    text = event.get("text")
    if text is None:
        raise MalformedFrameError("binary frames are not understood here: send JSON in text frames")
    return str(text)


def text_frame(document: dict[str, Any]) -> Reply:
    """The frame that carries the JSON document."""
    return {"type": "websocket.send", "text": json.dumps(document, ensure_ascii=False, separators=(",", ":"))}


def rfc3339(nanoseconds: int) -> str:
    """The time as proto3 JSON writes a Timestamp."""
    moment = Timestamp()
    moment.FromNanoseconds(nanoseconds)
    return moment.ToJsonString()


def check_position(epoch: int, offset: int) -> Position:
    """Returns the position; raises MalformedFrameError when there can be no such one.

    The offset is -1 before the first record: so an order is unknown in a store that holds nothing yet.
    """
    if epoch < 0 or offset < -1:
        raise MalformedFrameError("there is no such position: pass back the one that a frame brought")
    return Position(epoch, offset)


def check_interval(interval_ms: int) -> int:
    """Returns the interval; raises MalformedFrameError when it is negative."""
    if interval_ms < 0:
        raise MalformedFrameError(f"interval_ms is {interval_ms}: it is a number of milliseconds")
    return interval_ms


def one_line(error: Exception) -> str:
    """The text of an error of a parser, on one line and not longer than a frame should carry."""
    return " ".join(str(error).split())[:300]
