"""The frames of the socket `/v1/stream`, in their binary form."""

from websockets.typing import Subprotocol

from statecast.push.v1.push_pb2 import AuthRefresh, ClientFrame
from statecast.push.v1.range_pb2 import Range, UnwatchRange, WatchRange
from statecast.push.v1.subscription_pb2 import Subscribe, Unsubscribe
from statecast.state.v1.state_pb2 import Position, StateKey

SUBPROTOCOL = Subprotocol("statecast.push.v1+proto")
RENEWAL = "renewal"
"""The id of the frame that renews access; those of the others are numbers."""

Name = tuple[str | bool, ...]
"""What tells a subscription from others."""


def name_of_key(store: str, key: StateKey) -> Name:
    """The name of a key's subscription."""
    return store, key.group, key.sort, key.member


def name_of_range(watched: Range) -> Name:
    """The name of a range's subscription. The limit is no part of it: the one in force is the server's."""
    return watched.store, watched.group, watched.sort_from, watched.sort_to, watched.reverse


def subscribe(frame_id: str, store: str, key: StateKey, after: Position | None, interval_ms: int | None) -> bytes:
    """Asks for what a key holds and for every change, or only for what is newer than a position."""
    request = Subscribe(store=store, key=key, after=after, interval_ms=interval_ms)
    return ClientFrame(id=frame_id, subscribe=request).SerializeToString()


def unsubscribe(frame_id: str, store: str, key: StateKey) -> bytes:
    """Ends a key's subscription."""
    return ClientFrame(id=frame_id, unsubscribe=Unsubscribe(store=store, key=key)).SerializeToString()


def watch_range(frame_id: str, watched: Range, after: Position | None, interval_ms: int | None) -> bytes:
    """Asks for the members of a range and for every change, or only for what is newer than a position."""
    request = WatchRange(range=watched, after=after, interval_ms=interval_ms)
    return ClientFrame(id=frame_id, watch_range=request).SerializeToString()


def unwatch_range(frame_id: str, watched: Range) -> bytes:
    """Ends a range's subscription."""
    return ClientFrame(id=frame_id, unwatch_range=UnwatchRange(range=watched)).SerializeToString()


def auth_refresh(ticket: str) -> bytes:
    """Renews the access of the open socket."""
    return ClientFrame(id=RENEWAL, auth_refresh=AuthRefresh(ticket=ticket)).SerializeToString()
