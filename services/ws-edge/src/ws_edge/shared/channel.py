"""What a channel is made of: its identifier, its records and their keys, and how they are read."""

import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from statecast.push.v1.channel_pb2 import ChannelRange, ChannelRecord, ChannelSubscription
from statecast.push.v1.range_pb2 import Range
from statecast.state.v1.state_pb2 import StateKey
from ws_edge.errors import UnknownChannelError
from ws_edge.shared.own_stores import CHANNELS
from ws_edge.states import AnyKey, Position, RangeKey, StoreKey, Version

ID = re.compile(r"[A-Za-z0-9_-]{22}")
ID_BYTES = 16
SUBSCRIPTION = "subscription"
REVISION = "revision"
LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel as it stands at a position of its partition."""

    id: str
    owner: str
    expires_at: float
    """When it ends, in seconds since 1970."""
    subscriptions: Mapping[AnyKey, int | None]
    """The keys and ranges, each with its interval in milliseconds, or None for the default."""
    through: Position
    """The record of the partition up to which this is known."""


def new_id() -> str:
    """An identifier that nobody can guess."""
    return secrets.token_urlsafe(ID_BYTES)


def check_id(channel_id: str) -> str:
    """Returns the identifier; raises UnknownChannelError when it cannot be one."""
    if ID.fullmatch(channel_id) is None:
        raise UnknownChannelError(channel_id)
    return channel_id


def revision_key(channel_id: str) -> StoreKey:
    """The key of the record that is written after each change of the channel's subscriptions."""
    return StoreKey(CHANNELS.name, channel_id, REVISION, LATEST)


def subscription_key(channel_id: str, key: AnyKey) -> StoreKey:
    """The key of the record of one subscription."""
    digest = blake2b("\0".join(map(str, key)).encode(), digest_size=ID_BYTES).hexdigest()
    return StoreKey(CHANNELS.name, channel_id, SUBSCRIPTION, digest)


def record_key(key: StoreKey) -> bytes:
    """The key of a Kafka record."""
    return "\0".join(part for part in key[1:] if part).encode()


def subscription_record(key: AnyKey, interval_ms: int | None) -> ChannelRecord:
    """The value of the record of one subscription."""
    if isinstance(key, RangeKey):
        return ChannelRecord(range=ChannelRange(range=Range(**key._asdict()), interval_ms=interval_ms))
    state_key = StateKey(group=key.group, sort=key.sort, member=key.member)
    return ChannelRecord(subscription=ChannelSubscription(store=key.store, key=state_key, interval_ms=interval_ms))


def channel_of(channel_id: str, versions: Iterable[Version], through: Position) -> Channel | None:
    """The channel that the records of its group make; None when the channel itself is not among them.

    A record that a newer edge has written, in a form that this one does not know, is left out.
    """
    rows: list[ChannelRecord] = [version.row for version in versions]
    head = next((row.channel for row in rows if row.HasField("channel")), None)
    if head is None:
        return None
    subscriptions: dict[AnyKey, int | None] = {}
    for row in rows:
        if row.HasField("subscription"):
            subscriptions[_key(row.subscription)] = _interval_ms(row.subscription)
        elif row.HasField("range"):
            subscriptions[_range(row.range)] = _interval_ms(row.range)
    return Channel(channel_id, head.owner, head.expires_at.ToNanoseconds() / 1e9, subscriptions, through)


def _key(found: ChannelSubscription) -> StoreKey:
    return StoreKey(found.store, found.key.group, found.key.sort, found.key.member)


def _range(found: ChannelRange) -> RangeKey:
    asked = found.range
    return RangeKey(asked.store, asked.group, asked.sort_from, asked.sort_to, asked.limit, asked.reverse)


def _interval_ms(found: ChannelSubscription | ChannelRange) -> int | None:
    return found.interval_ms if found.HasField("interval_ms") else None
