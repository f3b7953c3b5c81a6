"""Feeds the subscriptions of a channel to the session that is attached to it."""

import asyncio
from functools import partial

import structlog
from typing_extensions import override

from ws_edge.auth.expiry import ExpiryTimer
from ws_edge.channels import EDGE_CONSUMER
from ws_edge.channels.channel import Channel, revision_key
from ws_edge.channels.channels import Channels
from ws_edge.codec.frames import BeginRequest, CancelRequest, WatchRequest
from ws_edge.errors import CLOSE_CHANNEL_ENDED, ForbiddenError, RequestError, UnknownChannelError
from ws_edge.hub.watch import Subscriber, Subscription
from ws_edge.session.context import SessionContext
from ws_edge.session.subscriptions import SessionSubscriptions
from ws_edge.states import AnyKey, KeyState, Position

AT_ONCE = 0.0
"""The revision of a channel is read by long poll."""
RETRY_S = 0.5

log = structlog.get_logger(__name__)


class ChannelFeed(Subscriber):
    """One socket's use of a channel: a subscriber of the channel's revision, which keeps the socket's in step with it.

    Nothing happens before `begin`. From then on a newer revision makes it read the channel again, not older than that.
    """

    def __init__(
        self, channels: Channels, context: SessionContext, channel: Channel, subscriptions: SessionSubscriptions
    ) -> None:
        self._channels = channels
        self._channel = channel.id
        self._context = context
        self._subscriptions = subscriptions
        self._fed: dict[AnyKey, int | None] = {}
        """The keys that come from the channel, with their intervals."""
        self._after: dict[AnyKey, Position] = {}
        self._reference = ""
        self._unread: Position | None = None
        """The position of a revision that has not been read."""
        self._subscription: Subscription | None = None
        self._reading: asyncio.Task[None] | None = None
        self._end = partial(
            subscriptions.end, CLOSE_CHANNEL_ENDED, "the channel has expired or was deleted: create another one"
        )
        self._expiry = ExpiryTimer(context.wall_clock, self._end)
        self._expiry.renew(channel.expires_at)

    def begin(self, request: BeginRequest) -> None:
        """Starts the subscriptions; a second time it changes nothing."""
        if self._subscription is None:
            self._after = {self._context.limits.granted(key): position for key, position in request.after.items()}
            self._reference = request.reference
            key = revision_key(self._channel)
            self._subscription = self._context.hub.subscribe(self, EDGE_CONSUMER, key, None, AT_ONCE)

    def close(self) -> None:
        """Ends the feed; the socket has gone."""
        self._expiry.cancel()
        if self._subscription is not None:
            self._context.hub.unsubscribe(self._subscription)
        if self._reading is not None:
            self._reading.cancel()

    @override
    def changed(self, subscription: Subscription, state: KeyState | None, snapshot: bool, /) -> None:
        self._unread = subscription.position
        if self._reading is None:
            self._reading = asyncio.get_running_loop().create_task(self._read())

    @override
    def refused(self, subscription: Subscription, error: RequestError, /) -> None:
        log.error("channel_refused", channel=self._channel, reason=str(error))  # the edge may read its own stores

    async def _read(self) -> None:
        try:
            while self._unread is not None:
                position, self._unread = self._unread, None
                try:
                    self._apply(await self._channels.open(self._channel, self._subscriptions.consumer, position))
                except (UnknownChannelError, ForbiddenError):
                    self._end()
                except RequestError as error:
                    log.warning("channel_unread", channel=self._channel, reason=str(error))
                    self._unread = self._unread or position
                    await asyncio.sleep(RETRY_S)
        finally:
            self._reading = None

    def _apply(self, channel: Channel) -> None:
        """Makes what is watched on the socket follow the channel; what the client watches itself stays as it is."""
        subscriptions = self._subscriptions
        # Two ranges may be one when their limits are capped.
        wanted = {self._context.limits.granted(key): interval for key, interval in channel.subscriptions.items()}
        for key in self._fed.keys() - wanted.keys():
            del self._fed[key]
            subscriptions.act(CancelRequest(key, ""))
        for key, interval in wanted.items():
            if key in self._fed and self._fed[key] == interval:
                continue
            is_watched = subscriptions.watches(key)
            if key in self._fed or not is_watched:
                after = subscriptions.position_of(key) if is_watched else self._after.get(key)
                subscriptions.act(WatchRequest(key, after, interval, self._reference))
            self._fed[key] = interval
        self._after.clear()
