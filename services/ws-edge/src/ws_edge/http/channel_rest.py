"""The calls about channels."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Discriminator, Field, Tag

from ws_edge.auth.quotas import ChannelQuota
from ws_edge.channels.channel import Channel
from ws_edge.channels.channels import Channels
from ws_edge.codec.bodies import rfc3339
from ws_edge.http.rest import Document, Identify, KeyDocument, failures
from ws_edge.model.query_specs import QuerySpec, StepSpec, Subject
from ws_edge.model.states import RangeKey, StoreKey

StoreName = Annotated[str, Query(description="The store of the subscription.")]
Group = Annotated[str, Query(description="The group of its key.")]
Sort = Annotated[str, Query(description="The sort value of its key, in stores with members.")]
Member = Annotated[str, Query(description="The member of its key, in stores with members.")]
QueryName = Annotated[str, Query(description="The name of the query.")]


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


class ChannelKeyDocument(Document):
    """One subscription of a channel: a key."""

    store: str = Field(examples=["orders-by-key"])
    key: KeyDocument
    interval_ms: IntervalMs = None


class ChannelRangeDocument(Document):
    """One subscription of a channel: a range."""

    range: RangeDocument
    interval_ms: IntervalMs = None


class StepDocument(Document):
    """What is watched for each row of the step before."""

    store: str = Field(description="The store: a range of it, or a key where there is one value per group.")
    group_field: str = Field(description="The text field of the row before that holds the group.")
    sort_from: str = Field("", description="As in a range.")
    sort_to: str = Field("", description="As in a range.")
    limit: int = Field(0, ge=0, le=MAX_INT32, description="As in a range, for each row.")
    reverse: bool = Field(False, description="As in a range.")


class QueryDocument(Document):
    """A query, as in the frames of sockets."""

    name: str = Field(description="Of 1 to 64 characters; a query replaces the one of its name.", examples=["board"])
    first: RangeDocument
    steps: list[StepDocument] = Field(description="The steps after it; 1 to 3.")


class ChannelQueryDocument(Document):
    """One subscription of a channel: a query in steps."""

    query: QueryDocument
    interval_ms: IntervalMs = None


ChannelDocuments = ChannelKeyDocument | ChannelRangeDocument | ChannelQueryDocument


def _form(value: object) -> str:
    """Which of them a document is meant to be, so that errors are about that one alone."""
    for form, kind in (("range", ChannelRangeDocument), ("query", ChannelQueryDocument)):
        if isinstance(value, kind) or (isinstance(value, dict) and form in value):
            return form
    return "key"


ChannelSubscriptionDocument = Annotated[
    Annotated[ChannelKeyDocument, Tag("key")]
    | Annotated[ChannelRangeDocument, Tag("range")]
    | Annotated[ChannelQueryDocument, Tag("query")],
    Discriminator(_form),
]


class SubscriptionsRequest(Document):
    """What is to be added to a channel."""

    subscriptions: list[ChannelSubscriptionDocument] = Field(min_length=1, max_length=1000)

    def by_subject(self) -> dict[Subject, int | None]:
        """What is to be watched, each with its interval in milliseconds."""
        return {subject_of(each): each.interval_ms for each in self.subscriptions}


class ChannelDocument(Document):
    """A channel."""

    channel: str = Field(description="Its identifier. Whoever has it still needs its owner's credentials.")
    expires_at: str = Field(description="When it ends, RFC 3339.")
    subscriptions: list[ChannelSubscriptionDocument]


@dataclass(frozen=True)
class ChannelRest:
    """Answers once every edge can see the change. Every method raises EdgeError."""

    channels: Channels
    quota: ChannelQuota
    identify: Identify

    def router(self) -> APIRouter:
        router = APIRouter(responses=failures(400, 404, 429, 501))
        channel, subscriptions = "/v1/channels/{channel}", "/v1/channels/{channel}/subscriptions"
        for method, path, call, status, model in (
            ("POST", "/v1/channels", self.create, 201, ChannelDocument),
            ("GET", channel, self.get, 200, ChannelDocument),
            ("DELETE", channel, self.delete, 204, None),
            ("POST", subscriptions, self.add, 200, ChannelDocument),
            ("DELETE", subscriptions, self.remove, 200, ChannelDocument),
            ("DELETE", subscriptions + "/range", self.remove_range, 200, ChannelDocument),
            ("DELETE", subscriptions + "/query", self.remove_query, 200, ChannelDocument),
        ):
            router.add_api_route(path, call, methods=[method], status_code=status, response_model=model)
        return router

    async def create(self, request: Request) -> Response:
        """Creates a channel. Add subscriptions to it, attach a socket at `/v1/channels/{channel}/stream`, and begin."""
        consumer = await self.identify(request)
        self.quota.take(consumer)
        return _answer(await self.channels.create(consumer), 201)

    async def get(self, request: Request, channel: str) -> Response:
        """Answers with the channel's subscriptions."""
        return _answer(await self.channels.open(channel, await self.identify(request)))

    async def delete(self, request: Request, channel: str) -> Response:
        """Ends the channel and closes the sockets that are attached to it."""
        await self.channels.delete(channel, await self.identify(request))
        return Response(status_code=204)

    async def add(self, request: Request, channel: str, body: SubscriptionsRequest) -> Response:
        """Adds subscriptions, all or none; sockets that have begun are told of them from now on."""
        return _answer(await self.channels.add(channel, await self.identify(request), body.by_subject()))

    async def remove(
        self, request: Request, channel: str, store: StoreName, group: Group, sort: Sort = "", member: Member = ""
    ) -> Response:
        """Ends the subscription of a key; one that is not there is left alone."""
        key = StoreKey(store, group, sort, member)
        return _answer(await self.channels.remove(channel, await self.identify(request), key))

    async def remove_range(
        self, request: Request, channel: str, subscription: Annotated[RangeDocument, Query()]
    ) -> Response:
        """Ends the subscription of a range, named as it was added; one that is not there is left alone."""
        key = RangeKey(**dict(subscription))
        return _answer(await self.channels.remove(channel, await self.identify(request), key))

    async def remove_query(self, request: Request, channel: str, name: QueryName) -> Response:
        """Ends a query; one that is not there is left alone."""
        return _answer(await self.channels.remove_query(channel, await self.identify(request), name))


def _answer(channel: Channel, status: int = 200) -> Response:
    """Answers with the channel: keys and ranges in their order, then queries in that of their names."""
    subscriptions = sorted(channel.subscriptions.items(), key=lambda each: (isinstance(each[0], QuerySpec), each))
    document = ChannelDocument(
        channel=channel.id,
        expires_at=rfc3339(round(channel.expires_at * 1e9)),
        subscriptions=[_subscription(subject, interval) for subject, interval in subscriptions],
    )
    return JSONResponse(document.model_dump(exclude_defaults=True), status_code=status)


def subject_of(subscription: ChannelDocuments) -> Subject:
    if isinstance(subscription, ChannelQueryDocument):
        query = subscription.query
        steps = tuple(StepSpec(**dict(step)) for step in query.steps)
        return QuerySpec(query.name, RangeKey(**dict(query.first)), steps)
    if isinstance(subscription, ChannelRangeDocument):
        return RangeKey(**dict(subscription.range))
    key = subscription.key
    return StoreKey(subscription.store, key.group, key.sort or "", key.member or "")


def _subscription(key: Subject, interval_ms: int | None) -> ChannelDocuments:
    if isinstance(key, QuerySpec):
        steps = [StepDocument(**step._asdict()) for step in key.steps]
        query = QueryDocument(name=key.name, first=RangeDocument(**key.first._asdict()), steps=steps)
        return ChannelQueryDocument(query=query, interval_ms=interval_ms)
    if isinstance(key, RangeKey):
        return ChannelRangeDocument(range=RangeDocument(**key._asdict()), interval_ms=interval_ms)
    part = KeyDocument(group=key.group, sort=key.sort or None, member=key.member or None)
    return ChannelKeyDocument(store=key.store, key=part, interval_ms=interval_ms)
