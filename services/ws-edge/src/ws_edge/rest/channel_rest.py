"""The calls about channels, the named lists of watches that another process of a consumer keeps for its sockets."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from fastapi import APIRouter, Request, Response

from statecast.push.v2.push_pb2 import Channel as ChannelReply
from statecast.push.v2.push_pb2 import NamedWatch, Watch
from ws_edge.auth.quotas import ChannelQuota
from ws_edge.channels.channels import Channel, Channels
from ws_edge.codec.requests import watch_request
from ws_edge.errors import MalformedFrameError
from ws_edge.model.authorization import Consumer
from ws_edge.model.documents import message_document
from ws_edge.model.stores import Stores, find
from ws_edge.rest.messages import answer_json, body_of
from ws_edge.rest.openapi import answers, content_of
from ws_edge.rest.reads import Identify

OF_SOCKETS = ("id", "token", "below", "channel")
"""Fields of a watch that belong to a socket."""


@dataclass(frozen=True)
class ChannelRest:
    """Answers once every edge can see the change. Every method raises EdgeError."""

    channels: Channels
    stores: Stores
    quota: ChannelQuota
    identify: Identify
    wall_clock: Callable[[], float]

    def router(self) -> APIRouter:
        router = APIRouter()
        channel, watch = "/v1/channels/{channel}", "/v1/channels/{channel}/watches/{name}"
        body = {"requestBody": {"required": True, **content_of(NamedWatch)}}
        for method, path, call, status, extra in (
            ("POST", "/v1/channels", self.create, 201, {}),
            ("GET", channel, self.get, 200, {}),
            ("DELETE", channel, self.delete, 204, {}),
            ("PUT", watch, self.put, 200, body),
            ("DELETE", watch, self.remove, 200, {}),
        ):
            responses = answers(None if status == 204 else ChannelReply, 400, 404, 429, 501, status=status)
            router.add_api_route(
                path, call, methods=[method], status_code=status, responses=responses, openapi_extra=extra
            )
        return router

    async def create(self, request: Request) -> Response:
        """Creates a channel. Put watches into it, and watch it on a socket by its id."""
        consumer = await self.identify(request)
        self.quota.take(consumer)
        return self._answer(await self.channels.create(consumer), 201)

    async def get(self, request: Request, channel: str) -> Response:
        """Answers with the channel's watches."""
        return self._answer(await self.channels.open(channel, await self.identify(request)))

    async def delete(self, request: Request, channel: str) -> Response:
        """Deletes the channel, and ends its watches."""
        await self.channels.delete(channel, await self.identify(request))
        return Response(status_code=204)

    async def put(self, request: Request, channel: str, name: str) -> Response:
        """Adds a watch, or replaces the one with its name. Sockets that watch the channel get its rows from now on."""
        consumer = await self.identify(request)
        body = await body_of(request, NamedWatch)
        if body.name not in ("", name):
            raise MalformedFrameError(
                f"the body names the watch {body.name[:80]!r}, the path {name[:80]!r}: leave it out"
            )
        self._check(consumer, body.watch)
        return self._answer(await self.channels.put(channel, consumer, name, body.watch))

    async def remove(self, request: Request, channel: str, name: str) -> Response:
        """Ends a watch; does nothing when there is none with the name."""
        return self._answer(await self.channels.remove(channel, await self.identify(request), name))

    def _check(self, consumer: Consumer, watch: Watch) -> None:
        """Raises RequestError when the consumer may not have the watch on a socket."""
        foreign = [field.name for field, _ in watch.ListFields() if field.name in OF_SOCKETS]
        if foreign:
            raise MalformedFrameError(f"a watch of a channel takes no {', '.join(foreign)}: leave it out")
        watch_request(watch, partial(find, self.stores, consumer)).question.check_group(consumer)

    def _answer(self, channel: Channel, status: int = 200) -> Response:
        named = (NamedWatch(name=name, watch=watch) for name, watch in channel.watches.items())
        watches = [message_document(each, has_defaults=False) for each in named]
        expires_in_s = max(0, int(channel.expires_at - self.wall_clock()))
        return answer_json({"channel": channel.id, "expires_in_s": expires_in_s, "watches": watches}, status)
