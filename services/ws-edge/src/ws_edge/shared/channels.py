"""Creates, changes and reads channels: written to Kafka, read from the query service, the same at every edge."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from google.protobuf.message import Message

from statecast.push.v1.channel_pb2 import ChannelRecord
from statecast.query.v1.query_service_pb2 import ScanStatesRequest
from ws_edge.authorization import Consumer, check_key
from ws_edge.errors import ForbiddenError, NotConfiguredError, TooManySubscriptionsError, UnknownChannelError
from ws_edge.querying.query_client import QueryClient
from ws_edge.querying.questions import page
from ws_edge.shared.channel import (
    Channel,
    channel_of,
    check_id,
    new_id,
    record_key,
    revision_key,
    subscription_key,
    subscription_record,
)
from ws_edge.shared.kafka_writer import Record, Writer
from ws_edge.shared.own_stores import CHANNELS
from ws_edge.states import AnyKey, Position, RangeKey, StoreKey, Version
from ws_edge.stores import Stores, find

PAGE = 1000


class Channels:
    """All channels. Every method raises RequestError, NotConfiguredError when there is no writer."""

    def __init__(
        self,
        client: QueryClient,
        stores: Stores,
        writer: Writer | None,
        calendar: Callable[[], float],
        lifetime_s: float,
        most: int,
        most_ranges: int,
    ) -> None:
        """A channel ends after `lifetime_s` seconds of the `calendar`.

        It has at most `most` subscriptions, of which at most `most_ranges` are ranges.
        """
        self._client = client
        self._stores = stores
        self._kafka = writer
        self._calendar = calendar
        self._lifetime_s = lifetime_s
        self._most = most
        self._most_ranges = most_ranges

    async def create(self, consumer: Consumer) -> Channel:
        """A new channel of the consumer, without subscriptions."""
        channel_id = new_id()
        head = ChannelRecord()
        head.channel.owner = consumer.principal
        head.channel.expires_at.FromNanoseconds(round((self._calendar() + self._lifetime_s) * 1e9))
        return await self._change(channel_id, consumer, [_record(StoreKey(CHANNELS.name, channel_id), head)])

    async def open(self, channel_id: str, consumer: Consumer, at_least: Position | None = None) -> Channel:
        """The channel as it stands, or as it stood no earlier than at the position `at_least`.

        Raises UnknownChannelError when there is none or it has expired, ForbiddenError when it is somebody else's.
        """
        self._writer()
        channel, _ = await self._read(check_id(channel_id), at_least)
        if channel is None or channel.expires_at <= self._calendar():
            raise UnknownChannelError(channel_id)
        if channel.owner != consumer.principal:
            raise ForbiddenError(f"the channel {channel_id} belongs to somebody else")
        return channel

    async def add(self, channel_id: str, consumer: Consumer, wanted: Mapping[AnyKey, int | None]) -> Channel:
        """Adds subscriptions, or changes the interval of those that are there. All of them, or none.

        Besides what `open` raises: UnknownStoreError and MalformedFrameError for what no store has, ForbiddenError for
        what the consumer may not watch, TooManySubscriptionsError.
        """
        for key in wanted:
            store = find(self._stores, key.store)
            store.check(key)
            check_key(consumer, store.rule, key)
        channel = await self.open(channel_id, consumer)
        self._check_room(channel.subscriptions.keys() | wanted.keys())
        records = [
            _record(subscription_key(channel_id, key), subscription_record(key, interval))
            for key, interval in wanted.items()
        ]
        return await self._change(channel_id, consumer, [*records, _revision(channel_id)])

    async def remove(self, channel_id: str, consumer: Consumer, keys: Iterable[AnyKey]) -> Channel:
        """Ends subscriptions; those that are not there are left alone."""
        await self.open(channel_id, consumer)
        records = [_record(subscription_key(channel_id, key), None) for key in keys]
        return await self._change(channel_id, consumer, [*records, _revision(channel_id)])

    async def delete(self, channel_id: str, consumer: Consumer) -> None:
        """Ends the channel; sockets that are attached to it are closed."""
        channel = await self.open(channel_id, consumer)
        keys = [StoreKey(CHANNELS.name, channel_id)]
        keys += [subscription_key(channel_id, key) for key in channel.subscriptions]
        keys.append(revision_key(channel_id))
        await self._writer().write(CHANNELS.name, channel_id, [_record(key, None) for key in keys])

    def _check_room(self, keys: Set[AnyKey]) -> None:
        if len(keys) > self._most:
            raise TooManySubscriptionsError(f"a channel may have {self._most} subscriptions: create another one")
        if sum(isinstance(key, RangeKey) for key in keys) > self._most_ranges:
            text = f"a channel may have {self._most_ranges} ranges, as many as a socket: create another one"
            raise TooManySubscriptionsError(text)

    async def _change(self, channel_id: str, consumer: Consumer, records: Sequence[Record]) -> Channel:
        """Writes the records and returns the channel as it stands with them."""
        written = await self._writer().write(CHANNELS.name, channel_id, records)
        _, through = await self._read(channel_id)
        return await self.open(channel_id, consumer, Position(through.epoch, written))

    async def _read(self, channel_id: str, at_least: Position | None = None) -> tuple[Channel | None, Position]:
        """The channel, if there is one, and the position up to which that is known."""
        scan = ScanStatesRequest(store=CHANNELS.name, group=channel_id, page_size=PAGE)
        if at_least is not None:
            scan.bounds.at_least.epoch, scan.bounds.at_least.offset = at_least
        versions: list[Version] = []
        while True:
            response = await self._client.scan(CHANNELS, scan)
            versions += page(CHANNELS, channel_id, response)
            scan.page_token = response.next_page_token
            if not scan.page_token:
                break
        reached = response.freshness.current_through
        through = Position(reached.epoch, reached.offset)
        return channel_of(channel_id, versions, through), through

    def _writer(self) -> Writer:
        if self._kafka is None:
            raise NotConfiguredError("channels are off at this edge: its operators must set WS_EDGE_KAFKA_BOOTSTRAP")
        return self._kafka


def _revision(channel_id: str) -> Record:
    record = ChannelRecord()
    record.revision.SetInParent()
    return _record(revision_key(channel_id), record)


def _record(key: StoreKey, value: Message | None) -> Record:
    return Record(record_key(key), None if value is None else value.SerializeToString())
