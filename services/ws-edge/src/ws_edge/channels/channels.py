"""Creates, changes and reads channels: written to Kafka, read from the query service, the same at every edge."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from statecast.push.v1.channel_pb2 import ChannelRecord, ChannelRevision
from ws_edge.channels import CHANNELS
from ws_edge.channels.channel import (
    Channel,
    channel_of,
    check_id,
    new_id,
    query_key,
    revision_key,
    subscription_key,
    subscription_record,
)
from ws_edge.channels.kafka_writer import Rows, Writer, configured
from ws_edge.errors import ForbiddenError, MalformedFrameError, TooManySubscriptionsError, UnknownChannelError
from ws_edge.model.authorization import Consumer, check_key
from ws_edge.model.query_specs import QuerySpec, Subject, check_rights, steps_of
from ws_edge.model.states import AnyKey, Position, StoreKey
from ws_edge.model.stores import Stores, find
from ws_edge.upstream.queries import Scan
from ws_edge.upstream.query_client import QueryClient

PAGE = 1000
REVISION = ChannelRecord(revision=ChannelRevision())


@dataclass(frozen=True)
class Channels:
    """All channels. Every method raises RequestError; NotConfiguredError when there is no writer."""

    client: QueryClient
    stores: Stores
    writer: Writer | None
    wall_clock: Callable[[], float]
    lifetime_s: float
    max_subscriptions: int
    """Of one channel, of whatever kind."""
    max_ranges: int
    """Of one channel; a query counts as the range that it begins with."""
    _adding: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary, init=False)
    """Of each channel to which this edge is adding: two calls would both find room for the last subscription."""

    async def create(self, consumer: Consumer) -> Channel:
        channel_id = new_id()
        head = ChannelRecord()
        head.channel.owner = consumer.principal
        head.channel.expires_at.FromNanoseconds(round((self.wall_clock() + self.lifetime_s) * 1e9))
        return await self._change(channel_id, consumer, {StoreKey(CHANNELS.name, channel_id): head})

    async def open(self, channel_id: str, consumer: Consumer, at_least: Position | None = None) -> Channel:
        """Reads the channel as of `at_least` or later. Raises ForbiddenError unless it is the consumer's own."""
        self._writer()
        channel, _ = await self._read(check_id(channel_id), at_least)
        if channel is None or channel.expires_at <= self.wall_clock():
            raise UnknownChannelError(channel_id)
        if channel.owner != consumer.principal:
            raise ForbiddenError(f"the channel {channel_id} belongs to somebody else")
        return channel

    async def add(self, channel_id: str, consumer: Consumer, wanted: Mapping[Subject, int | None]) -> Channel:
        """Adds subscriptions, or changes the intervals of existing ones: all of them, or none.

        A query replaces the one of its name. Raises the errors of `open`, of stores and of rights that forbid it,
        and TooManySubscriptionsError.
        """
        for subject in wanted:
            self._check(consumer, subject)
        rows: Rows = {subscription_key(channel_id, each): subscription_record(each, wanted[each]) for each in wanted}
        if len(rows) < len(wanted):
            raise MalformedFrameError("two queries have one name: give each its own")
        async with self._adding.setdefault(channel_id, asyncio.Lock()):
            channel = await self.open(channel_id, consumer)
            kept = [each for each in channel.subscriptions if subscription_key(channel_id, each) not in rows]
            self._check_size([*kept, *wanted])
            changed = await self._change(channel_id, consumer, {**rows, revision_key(channel_id): REVISION})
            try:
                self._check_size([*changed.subscriptions])
            except TooManySubscriptionsError:  # another edge has added some meanwhile, and does the same
                before = {
                    subscription_key(channel_id, each): subscription_record(each, interval_ms)
                    for each, interval_ms in channel.subscriptions.items()
                }
                undone = {key: before.get(key) for key in rows}
                await self._change(channel_id, consumer, {**undone, revision_key(channel_id): REVISION})
                raise
            return changed

    async def remove(self, channel_id: str, consumer: Consumer, key: AnyKey) -> Channel:
        """Removes the subscription of a key or a range; does nothing when there is none."""
        return await self._remove(channel_id, consumer, subscription_key(channel_id, key))

    async def remove_query(self, channel_id: str, consumer: Consumer, name: str) -> Channel:
        """Removes a query; does nothing when there is none."""
        return await self._remove(channel_id, consumer, query_key(channel_id, name))

    async def delete(self, channel_id: str, consumer: Consumer) -> None:
        """Deletes the channel; the sockets that are attached to it are closed."""
        channel = await self.open(channel_id, consumer)
        subscriptions = [subscription_key(channel_id, each) for each in channel.subscriptions]
        keys = (StoreKey(CHANNELS.name, channel_id), *subscriptions, revision_key(channel_id))
        await self._writer().write(dict.fromkeys(keys))

    def _check(self, consumer: Consumer, subject: Subject) -> None:
        if isinstance(subject, QuerySpec):
            check_rights(consumer, subject.first, steps_of(subject, self.stores), self.stores)
            return
        store = find(self.stores, subject.store)
        store.check(subject)
        check_key(consumer, store.rule, subject)

    def _check_size(self, subjects: Sequence[Subject]) -> None:
        if len(subjects) > self.max_subscriptions:
            text = f"a channel may have {self.max_subscriptions} subscriptions: create another one"
            raise TooManySubscriptionsError(text)
        if sum(not isinstance(each, StoreKey) for each in subjects) > self.max_ranges:
            text = f"a channel may have {self.max_ranges} ranges and queries: create another one"
            raise TooManySubscriptionsError(text)

    async def _remove(self, channel_id: str, consumer: Consumer, record: StoreKey) -> Channel:
        await self.open(channel_id, consumer)
        return await self._change(channel_id, consumer, {record: None, revision_key(channel_id): REVISION})

    async def _change(self, channel_id: str, consumer: Consumer, rows: Rows) -> Channel:
        offset = await self._writer().write(rows)
        _, position = await self._read(channel_id)
        return await self.open(channel_id, consumer, Position(position.epoch, offset))

    async def _read(self, channel_id: str, at_least: Position | None = None) -> tuple[Channel | None, Position]:
        """The channel, if it exists, and the position up to which its partition was read."""
        scan = Scan(channel_id, page_size=PAGE)
        page = await self.client.scan(CHANNELS, scan, at_least)
        states = page.states
        while page.next_page_token:
            page = await self.client.scan(CHANNELS, scan._replace(page_token=page.next_page_token), at_least)
            states += page.states
        return channel_of(channel_id, states, page.position), page.position

    def _writer(self) -> Writer:
        return configured(self.writer, "channels are")
