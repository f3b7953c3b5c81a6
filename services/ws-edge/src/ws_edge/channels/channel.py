"""A channel as it is stored: its identifier, the keys and records of its group, and how they are read back.

The group has a head record, and one record per watch.
"""

import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from statecast.push.v2.channel_pb2 import ChannelRecord
from statecast.push.v2.push_pb2 import Watch
from ws_edge.channels import CHANNELS
from ws_edge.errors import MalformedFrameError, UnknownChannelError
from ws_edge.model.states import KeyState, Position, StoreKey

ID_FORMAT = re.compile(r"[A-Za-z0-9_-]{22}")
ID_BYTES = 16
NAME_FORMAT = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel as of a position of its partition."""

    id: str
    owner: str
    expires_at: float
    """In seconds since 1970."""
    watches: Mapping[str, Watch]
    """By their names, in the order of these."""
    position: Position
    """The last record of the partition that has been taken into account."""


def new_id() -> str:
    """An identifier that cannot be guessed."""
    return secrets.token_urlsafe(ID_BYTES)


def check_id(channel_id: str) -> str:
    """Returns the identifier; raises UnknownChannelError when it does not have the format of one."""
    if ID_FORMAT.fullmatch(channel_id) is None:
        raise UnknownChannelError(channel_id)
    return channel_id


def check_name(name: str) -> str:
    """Returns the name of a watch; raises MalformedFrameError for what can be none."""
    if NAME_FORMAT.fullmatch(name) is None:
        raise MalformedFrameError(
            f"a watch cannot be named {name[:80]!r}: take 1 to 64 letters, digits, '.', '_' and '-'"
        )
    return name


def head_key(channel_id: str) -> StoreKey:
    return StoreKey(CHANNELS.name, channel_id)


def watch_key(channel_id: str, name: str) -> StoreKey:
    return StoreKey(CHANNELS.name, channel_id, "watch", name)


def channel_of(channel_id: str, states: Iterable[KeyState], position: Position) -> Channel | None:
    """The channel that a group's records describe; None without a head.

    Ignores records that only newer edges know. Raises UnreadableRowError.
    """
    rows = list[ChannelRecord]()
    for state in states:
        state.check_readable()
        rows.append(state.row)
    head = next((row.channel for row in rows if row.HasField("channel")), None)
    if head is None:
        return None
    named = sorted((row.watch.name, row.watch.watch) for row in rows if row.HasField("watch"))
    return Channel(channel_id, head.owner, head.expires_at.ToNanoseconds() / 1e9, dict(named), position)
