"""The frames of the socket `/v1/stream`, in their binary form."""

from collections.abc import Sequence

from websockets.typing import Subprotocol

from statecast.push.v1.push_pb2 import AuthRefresh, ClientFrame, Subscribe, Unsubscribe
from statecast.state.v1.state_pb2 import Position, StateKey

SUBPROTOCOL = Subprotocol("statecast.push.v1+proto")
Name = tuple[str, str, str, str]
"""A store and the parts of a key."""


def name_of(store: str, key: StateKey) -> Name:
    """What tells a subscription from others."""
    return store, key.group, key.sort, key.member


def key_of(name: Name) -> StateKey:
    """The key of a name."""
    return StateKey(group=name[1], sort=name[2], member=name[3])


def subscribe(frame_id: str, name: Name, after: Position | None, interval_ms: int | None) -> bytes:
    """Asks for what a key holds and for every change, or only for what is newer than a position."""
    request = Subscribe(store=name[0], key=key_of(name), after=after)
    if interval_ms is not None:
        request.interval_ms = interval_ms
    return ClientFrame(id=frame_id, subscribe=request).SerializeToString()


def unsubscribe(frame_id: str, name: Name) -> bytes:
    """Ends a subscription."""
    return ClientFrame(id=frame_id, unsubscribe=Unsubscribe(store=name[0], key=key_of(name))).SerializeToString()


def auth_refresh(frame_id: str, ticket: str) -> bytes:
    """Renews the access of the open socket."""
    return ClientFrame(id=frame_id, auth_refresh=AuthRefresh(ticket=ticket)).SerializeToString()


def parts_of(key: str | Sequence[str]) -> tuple[str, str, str]:
    """A key as a group, or as group, sort and member. Raises ValueError for any other number of parts."""
    if isinstance(key, str):
        return key, "", ""
    if len(key) != 3:
        raise ValueError(f"the key {key!r} has {len(key)} parts: give a group, or group, sort and member")
    return key[0], key[1], key[2]
