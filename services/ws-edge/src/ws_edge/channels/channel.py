"""A channel as it is stored: its identifier, the keys and records of its group, and how they are read back.

The group has a head record, one record per subscription, and a revision record that is written after each change.
"""

import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from statecast.push.v1.channel_pb2 import ChannelQuery, ChannelRange, ChannelRecord, ChannelSubscription
from statecast.push.v1.range_pb2 import Range
from statecast.state.v1.state_pb2 import StateKey
from ws_edge.channels import CHANNELS
from ws_edge.errors import UnknownChannelError
from ws_edge.model.query_specs import QuerySpec, Subject, query_message, query_spec, range_key
from ws_edge.model.states import KeyState, Position, RangeKey, StoreKey

ID_FORMAT = re.compile(r"[A-Za-z0-9_-]{22}")
ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel as of a position of its partition."""

    id: str
    owner: str
    expires_at: float
    """In seconds since 1970."""
    subscriptions: Mapping[Subject, int | None]
    """Each with its interval in milliseconds; None means the default. No two queries have one name."""
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


def revision_key(channel_id: str) -> StoreKey:
    return StoreKey(CHANNELS.name, channel_id, "revision", "latest")


def subscription_key(channel_id: str, subject: Subject) -> StoreKey:
    if isinstance(subject, QuerySpec):
        return query_key(channel_id, subject.name)
    return StoreKey(CHANNELS.name, channel_id, "subscription", _digest("\0".join(map(str, subject))))


def query_key(channel_id: str, name: str) -> StoreKey:
    return StoreKey(CHANNELS.name, channel_id, "query", _digest(name))


def subscription_record(subject: Subject, interval_ms: int | None) -> ChannelRecord:
    if isinstance(subject, QuerySpec):
        return ChannelRecord(query=ChannelQuery(query=query_message(subject), interval_ms=interval_ms))
    if isinstance(subject, RangeKey):
        return ChannelRecord(range=ChannelRange(range=Range(**subject._asdict()), interval_ms=interval_ms))
    key = StateKey(group=subject.group, sort=subject.sort, member=subject.member)
    return ChannelRecord(subscription=ChannelSubscription(store=subject.store, key=key, interval_ms=interval_ms))


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
    subscriptions: dict[Subject, int | None] = {}
    for row in rows:
        if row.HasField("subscription"):
            key = row.subscription.key
            store_key = StoreKey(row.subscription.store, key.group, key.sort, key.member)
            subscriptions[store_key] = _interval_ms(row.subscription)
        elif row.HasField("range"):
            subscriptions[range_key(row.range.range)] = _interval_ms(row.range)
        elif row.HasField("query"):
            subscriptions[query_spec(row.query.query)] = _interval_ms(row.query)
    return Channel(channel_id, head.owner, head.expires_at.ToNanoseconds() / 1e9, subscriptions, position)


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=ID_BYTES).hexdigest()


def _interval_ms(subscription: ChannelSubscription | ChannelRange | ChannelQuery) -> int | None:
    return subscription.interval_ms if subscription.HasField("interval_ms") else None
