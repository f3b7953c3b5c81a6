"""Channels: created and changed in Kafka, read back from the query service, the same at every edge.

The group of a channel has a head record, and one record per watch.
"""

import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from statecast.push.v2.channel_pb2 import ChannelRecord
from statecast.push.v2.push_pb2 import NamedWatch, Watch
from ws_edge.channels import CHANNELS
from ws_edge.channels.kafka_writer import Rows, Writer, configured
from ws_edge.errors import MalformedFrameError, TooManyWatchesError, UnknownChannelError
from ws_edge.model.authorization import Consumer
from ws_edge.model.states import KeyState, Position, StoreKey
from ws_edge.upstream.queries import Scan
from ws_edge.upstream.query_client import QueryClient

PAGE = 1000
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


@dataclass(frozen=True)
class Channels:
    """All channels. Every method raises RequestError; NotConfiguredError when there is no writer."""

    client: QueryClient
    writer: Writer | None
    wall_clock: Callable[[], float]
    lifetime_s: float
    max_watches: int
    """Of one channel. Calls at the same time may add more; watchers of the channel take the first by name."""

    async def create(self, consumer: Consumer) -> Channel:
        channel_id = secrets.token_urlsafe(ID_BYTES)
        head = ChannelRecord()
        head.channel.owner = consumer.principal
        head.channel.expires_at.FromNanoseconds(round((self.wall_clock() + self.lifetime_s) * 1e9))
        return await self._change(channel_id, consumer, {head_key(channel_id): head})

    async def open(self, channel_id: str, consumer: Consumer, at_least: Position | None = None) -> Channel:
        """Reads the channel as of `at_least` or later. Raises UnknownChannelError unless it is the consumer's own."""
        self._writer()
        channel, _ = await self._read(check_id(channel_id), at_least)
        if channel is None or channel.expires_at <= self.wall_clock() or channel.owner != consumer.principal:
            raise UnknownChannelError(channel_id)
        return channel

    async def put(self, channel_id: str, consumer: Consumer, name: str, watch: Watch) -> Channel:
        """Adds a watch, or replaces the one of its name. Raises TooManyWatchesError."""
        record = ChannelRecord(watch=NamedWatch(name=check_name(name), watch=watch))
        channel = await self.open(channel_id, consumer)
        if name not in channel.watches and len(channel.watches) >= self.max_watches:
            raise TooManyWatchesError(f"a channel may have {self.max_watches} watches: create another one")
        return await self._change(channel_id, consumer, {watch_key(channel_id, name): record})

    async def remove(self, channel_id: str, consumer: Consumer, name: str) -> Channel:
        """Removes a watch; does nothing when there is none."""
        await self.open(channel_id, consumer)
        return await self._change(channel_id, consumer, {watch_key(channel_id, check_name(name)): None})

    async def delete(self, channel_id: str, consumer: Consumer) -> None:
        """Deletes the channel, which ends its watches."""
        channel = await self.open(channel_id, consumer)
        watches = [watch_key(channel_id, name) for name in channel.watches]
        await self._writer().write(dict.fromkeys((head_key(channel_id), *watches)))

    async def _change(self, channel_id: str, consumer: Consumer, rows: Rows) -> Channel:
        offset = await self._writer().write(rows)
        _, position = await self._read(channel_id)
        return await self.open(channel_id, consumer, Position(position.epoch, offset))

    async def _read(self, channel_id: str, at_least: Position | None = None) -> tuple[Channel | None, Position]:
        """Returns the channel, if it exists, and the position up to which its partition was read."""
        scan = Scan(channel_id, page_size=PAGE)
        page = await self.client.scan(CHANNELS, scan, at_least)
        states = page.states
        while page.next_page_token:
            page = await self.client.scan(CHANNELS, scan._replace(page_token=page.next_page_token), at_least)
            states += page.states
        return channel_of(channel_id, states), page.position

    def _writer(self) -> Writer:
        return configured(self.writer, "channels are")


def check_id(channel_id: str) -> str:
    """Returns the identifier; raises UnknownChannelError when it does not have the format of one."""
    if ID_FORMAT.fullmatch(channel_id) is None:
        raise UnknownChannelError(channel_id)
    return channel_id


def check_name(name: str) -> str:
    """Returns the name of a watch. Raises MalformedFrameError for an invalid one."""
    if NAME_FORMAT.fullmatch(name) is None:
        raise MalformedFrameError(
            f"a watch cannot be named {name[:80]!r}: take 1 to 64 letters, digits, '.', '_' and '-'"
        )
    return name


def head_key(channel_id: str) -> StoreKey:
    return StoreKey(CHANNELS.name, channel_id)


def watch_key(channel_id: str, name: str) -> StoreKey:
    return StoreKey(CHANNELS.name, channel_id, "watch", name)


def channel_of(channel_id: str, states: Iterable[KeyState]) -> Channel | None:
    """Returns the channel that a group's records describe; None without a head.

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
    return Channel(channel_id, head.owner, head.expires_at.ToNanoseconds() / 1e9, dict(named))
