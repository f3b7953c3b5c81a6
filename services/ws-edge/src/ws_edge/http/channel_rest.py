"""The calls about channels."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from ws_edge.auth.quotas import ChannelQuota
from ws_edge.channels.channel import Channel
from ws_edge.channels.channels import Channels
from ws_edge.http.documents import ChannelDocument, RangeDocument, SubscriptionsRequest
from ws_edge.http.rest import Identify, failures
from ws_edge.states import StoreKey

StoreName = Annotated[str, Query(description="The store of the subscription.")]
Group = Annotated[str, Query(description="The group of its key.")]
Sort = Annotated[str, Query(description="The sort value of its key, in stores with members.")]
Member = Annotated[str, Query(description="The member of its key, in stores with members.")]


@dataclass(frozen=True)
class ChannelRest:
    """Answers once every edge can see the change. Every method raises EdgeError."""

    channels: Channels
    quota: ChannelQuota
    identify: Identify

    def router(self) -> APIRouter:
        """The routes with their documentation."""
        router = APIRouter(responses=failures(400, 404, 429, 501))
        channel, subscriptions = "/v1/channels/{channel}", "/v1/channels/{channel}/subscriptions"
        for method, path, call, status, model in (
            ("POST", "/v1/channels", self.create, 201, ChannelDocument),
            ("GET", channel, self.get, 200, ChannelDocument),
            ("DELETE", channel, self.delete, 204, None),
            ("POST", subscriptions, self.add, 200, ChannelDocument),
            ("DELETE", subscriptions, self.remove, 200, ChannelDocument),
            ("DELETE", subscriptions + "/range", self.remove_range, 200, ChannelDocument),
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
        return _answer(await self.channels.add(channel, await self.identify(request), body.by_key()))

    async def remove(
        self, request: Request, channel: str, store: StoreName, group: Group, sort: Sort = "", member: Member = ""
    ) -> Response:
        """Ends the subscription of a key; one that is not there is left alone."""
        key = StoreKey(store, group, sort, member)
        return _answer(await self.channels.remove(channel, await self.identify(request), [key]))

    async def remove_range(self, request: Request, channel: str, named: Annotated[RangeDocument, Query()]) -> Response:
        """Ends the subscription of a range, named as it was added; one that is not there is left alone."""
        return _answer(await self.channels.remove(channel, await self.identify(request), [named.key_or_range()]))


def _answer(channel: Channel, status: int = 200) -> Response:
    return JSONResponse(ChannelDocument.of(channel).model_dump(exclude_defaults=True), status_code=status)
