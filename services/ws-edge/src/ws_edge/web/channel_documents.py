"""The JSON documents of the calls about channels, and the keys and ranges that they name."""

from typing import Annotated

from pydantic import Discriminator, Field, Tag

from ws_edge.dialects.frames import rfc3339
from ws_edge.shared.channel import Channel
from ws_edge.states import AnyKey, RangeKey, StoreKey
from ws_edge.web.documents import Document, KeyDocument

LARGEST_INT32 = 2**31 - 1

IntervalMs = Annotated[int | None, Field(ge=0, le=LARGEST_INT32, description="As in `subscribe`.", examples=[250])]


class RangeDocument(Document):
    """A range, named as in the frames of sockets."""

    store: str = Field(description="The store, one that keeps many members per group.", examples=["orders-by-customer"])
    group: str = Field(description="The group.", examples=["customer-0001"])
    sort_from: str = Field("", description="The lowest sort value, inclusive; empty starts at the first.")
    sort_to: str = Field("", description="The sort value to stop before, exclusive; empty goes on to the last.")
    limit: int = Field(0, ge=0, le=LARGEST_INT32, description="The most members; 0 takes the server's default.")
    reverse: bool = Field(False, description="True takes the members with the highest keys.")

    def named(self) -> RangeKey:
        """What it names."""
        return RangeKey(self.store, self.group, self.sort_from, self.sort_to, self.limit, self.reverse)


class ChannelKeyDocument(Document):
    """One subscription of a channel: a key."""

    store: str = Field(examples=["orders-by-key"])
    key: KeyDocument
    interval_ms: IntervalMs = None

    def named(self) -> StoreKey:
        """What it names."""
        return StoreKey(self.store, self.key.group, self.key.sort or "", self.key.member or "")


class ChannelRangeDocument(Document):
    """One subscription of a channel: a range."""

    range: RangeDocument
    interval_ms: IntervalMs = None

    def named(self) -> RangeKey:
        """What it names."""
        return self.range.named()


def _form(value: object) -> str:
    """Which of the two a document is meant to be, so that what is wrong with it is told of that one alone."""
    names_range = "range" in value if isinstance(value, dict) else isinstance(value, ChannelRangeDocument)
    return "range" if names_range else "key"


ChannelSubscriptionDocument = Annotated[
    Annotated[ChannelKeyDocument, Tag("key")] | Annotated[ChannelRangeDocument, Tag("range")], Discriminator(_form)
]


class SubscriptionsRequest(Document):
    """What is to be added to a channel."""

    subscriptions: list[ChannelSubscriptionDocument] = Field(min_length=1, max_length=1000)

    def wanted(self) -> dict[AnyKey, int | None]:
        """The keys and ranges, each with its interval in milliseconds."""
        return {each.named(): each.interval_ms for each in self.subscriptions}


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
            subscriptions=[_subscription(*each) for each in sorted(channel.subscriptions.items())],
        )


def _subscription(key: AnyKey, interval_ms: int | None) -> ChannelKeyDocument | ChannelRangeDocument:
    if isinstance(key, RangeKey):
        return ChannelRangeDocument(range=RangeDocument(**key._asdict()), interval_ms=interval_ms)
    part = KeyDocument(group=key.group, sort=key.sort or None, member=key.member or None)
    return ChannelKeyDocument(store=key.store, key=part, interval_ms=interval_ms)
