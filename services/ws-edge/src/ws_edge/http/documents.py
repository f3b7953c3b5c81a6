"""The JSON documents of REST calls, as OpenAPI describes them; int64 fields are strings, as in proto3 JSON."""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Discriminator, Field, Tag, field_validator

from ws_edge.channels.channel import Channel
from ws_edge.codec.frames import rfc3339
from ws_edge.states import AnyKey, RangeKey, StoreKey

SURROGATE = re.compile("[\ud800-\udfff]")


class Document(BaseModel, extra="forbid"):
    """What all have in common: nothing but what is described may stand in them, and texts are Unicode."""

    @field_validator("*")
    @classmethod
    def _check_text(cls, value: Any) -> Any:
        """Refuses a lone surrogate, which JSON can escape but no key and no record can hold."""
        if isinstance(value, str) and SURROGATE.search(value):
            raise ValueError("it has half of a character: send both escapes of a surrogate pair")
        return value


class ErrorBody(Document):
    """Why a call failed."""

    code: str = Field(description="A stable word for programs.", examples=["forbidden"])
    message: str = Field(description="What is wrong and what to do about it, for people.")


class ErrorReply(Document):
    """The body of every failed call."""

    error: ErrorBody


class PositionDocument(Document):
    """How far a key has been read; pass it back on a socket to be told only what is newer."""

    epoch: str = Field(examples=["4611686018427387904"])
    offset: str = Field(examples=["1042"])


class OrderStatusDocument(Document):
    """An order as customers see it; fields that are not known yet are empty."""

    order_id: str = Field(examples=["order-000001"])
    status: str = Field(description="Placed, Paid, Packed, Shipped, Delivered or Cancelled.", examples=["Shipped"])
    estimated_delivery: str = Field(description="RFC 3339 full-date, or empty.", examples=["2024-08-28"])
    tracking_number: str = Field(examples=["1Z999AA10123456784"])


class OrderUpdatesReply(Document):
    """One answer: the same document as a frame of the socket."""

    type: Literal["order_status_update"]
    data: OrderStatusDocument
    position: PositionDocument
    commit_time: str | None = Field(None, description="When the change was committed, RFC 3339. Absent when unknown.")


class KeyDocument(Document):
    """The key of a row; sort and member are absent in stores with one value per group."""

    group: str = Field(examples=["customer-0001"])
    sort: str | None = Field(None, examples=["2024-08-28T12:34:56.123456Z"])
    member: str | None = Field(None, examples=["order-000001"])


class StateDocument(Document):
    """One row of a store."""

    key: KeyDocument
    position: PositionDocument
    commit_time: str | None = Field(None, description="When the change was committed, RFC 3339. Absent when unknown.")
    row: dict[str, Any] = Field(description="The row in proto3 JSON, in the message of the store.")


class PageDocument(Document):
    """A page of a group, in the order of sort."""

    states: list[StateDocument]
    next_page_token: str = Field(description="Pass it back as page_token; empty after the last page.")


class ReplicaDocument(Document):
    """One instance that serves a partition."""

    instance: str
    address: str
    rank: int = Field(description="1 for the owner.")
    serving: bool
    lag_records: str
    lag_ms: str
    current_through: PositionDocument | None = None


class ShardDocument(Document):
    """One partition of a store."""

    store: str
    partition: int
    replicas: list[ReplicaDocument]


class StoreDocument(Document):
    """One store."""

    store: str
    topic: str
    message: str
    partitions: int
    owner: str
    history: bool
    partitioner: str


class ShardMapDocument(Document):
    """The shard map as an instance of the query service sees it."""

    stores: list[StoreDocument]
    shards: list[ShardDocument]


class ConsumerDocument(Document):
    """Who the gateway says is asking."""

    id: str = Field(description="The customer whose rows may be seen; empty for staff without one.")
    name: str
    staff: bool = Field(description="Whether every row may be seen.")


class TotalsDocument(Document):
    """Counted since the edge has started."""

    frames_sent: int
    skipped: int = Field(description="Versions replaced by newer ones before a slow client took them.")
    polled_keys: int
    changed_keys: int
    failed_keys: int
    sockets_opened: int
    stalled_sockets: int = Field(description="Sockets closed because their client did not read.")


class AgesDocument(Document):
    """How old changes were, from the commit at the source, when their frames were handed to sockets."""

    bounds_s: list[float] = Field(description="Upper bounds, in seconds, rising.")
    counts: list[int] = Field(description="Changes per bound, each counted once; last those above all bounds.")


class EdgeDocument(Document):
    """What the edge that answers is doing."""

    instance: str
    uptime_s: float
    not_ready: str | None = Field(description="Why it should get no traffic; null when it is ready.")
    sockets: int
    subscriptions: int
    unique_keys: int = Field(description="Keys that are watched: what is read, however many watch.")
    totals: TotalsDocument
    ages: AgesDocument


class TicketDocument(Document):
    """A ticket for the credential of the call."""

    ticket: str = Field(description="Soon, send it in a frame `auth_refresh` or open `/v1/tickets/stream?ticket=`.")
    expires_at: str | None = Field(
        None,
        description="When the credential of the call expires, RFC 3339; left out when it never does.",
        examples=["2024-08-28T12:34:56Z"],
    )


class RevocationRequest(Document):
    """Whose access is to end."""

    consumer: str = Field(min_length=1, description="The consumer's custom id, or its username when it has none.")


class RevocationDocument(Document):
    """A revocation."""

    consumer: str
    revoked_at: str = Field(description="RFC 3339.")


MAX_INT32 = 2**31 - 1
IntervalMs = Annotated[int | None, Field(ge=0, le=MAX_INT32, description="As in `subscribe`.", examples=[250])]


class RangeDocument(Document):
    """A range, named as in the frames of sockets."""

    store: str = Field(description="The store, one that keeps many members per group.", examples=["orders-by-customer"])
    group: str = Field(description="The group.", examples=["customer-0001"])
    sort_from: str = Field("", description="The lowest sort value, inclusive; empty starts at the first.")
    sort_to: str = Field("", description="The sort value to stop before, exclusive; empty goes on to the last.")
    limit: int = Field(0, ge=0, le=MAX_INT32, description="The most members; 0 takes the server's default.")
    reverse: bool = Field(False, description="True takes the members with the highest keys.")

    def key_or_range(self) -> RangeKey:
        return RangeKey(self.store, self.group, self.sort_from, self.sort_to, self.limit, self.reverse)


class ChannelKeyDocument(Document):
    """One subscription of a channel: a key."""

    store: str = Field(examples=["orders-by-key"])
    key: KeyDocument
    interval_ms: IntervalMs = None

    def key_or_range(self) -> StoreKey:
        return StoreKey(self.store, self.key.group, self.key.sort or "", self.key.member or "")


class ChannelRangeDocument(Document):
    """One subscription of a channel: a range."""

    range: RangeDocument
    interval_ms: IntervalMs = None

    def key_or_range(self) -> RangeKey:
        return self.range.key_or_range()


def _form(value: object) -> str:
    """Which of the two a document is meant to be, so that errors are about that one alone."""
    names_range = "range" in value if isinstance(value, dict) else isinstance(value, ChannelRangeDocument)
    return "range" if names_range else "key"


ChannelSubscriptionDocument = Annotated[
    Annotated[ChannelKeyDocument, Tag("key")] | Annotated[ChannelRangeDocument, Tag("range")], Discriminator(_form)
]


class SubscriptionsRequest(Document):
    """What is to be added to a channel."""

    subscriptions: list[ChannelSubscriptionDocument] = Field(min_length=1, max_length=1000)

    def by_key(self) -> dict[AnyKey, int | None]:
        """The keys and ranges, each with its interval in milliseconds."""
        return {subscription.key_or_range(): subscription.interval_ms for subscription in self.subscriptions}


class ChannelDocument(Document):
    """A channel."""

    channel: str = Field(description="Its identifier. Whoever has it still needs its owner's credentials.")
    expires_at: str = Field(description="When it ends, RFC 3339.")
    subscriptions: list[ChannelSubscriptionDocument]

    @classmethod
    def of(cls, channel: Channel) -> "ChannelDocument":
        """The document of a channel, its subscriptions in the order of their keys."""
        return cls(
            channel=channel.id,
            expires_at=rfc3339(round(channel.expires_at * 1e9)),
            subscriptions=[_subscription(key, interval) for key, interval in sorted(channel.subscriptions.items())],
        )


def _subscription(key: AnyKey, interval_ms: int | None) -> ChannelKeyDocument | ChannelRangeDocument:
    if isinstance(key, RangeKey):
        return ChannelRangeDocument(range=RangeDocument(**key._asdict()), interval_ms=interval_ms)
    part = KeyDocument(group=key.group, sort=key.sort or None, member=key.member or None)
    return ChannelKeyDocument(store=key.store, key=part, interval_ms=interval_ms)
