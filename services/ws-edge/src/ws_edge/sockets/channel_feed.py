"""Feeds the subscriptions of a channel to the session that is attached to it."""

import asyncio

import structlog

from ws_edge.access.lease import Lease
from ws_edge.dialects.frames import (
    BeginRequest,
    CancelRangeRequest,
    CancelRequest,
    Request,
    WatchRangeRequest,
    WatchRequest,
)
from ws_edge.errors import CLOSE_CHANNEL_ENDED, ForbiddenError, RequestError, UnknownChannelError
from ws_edge.hub.subscription import Subscription
from ws_edge.shared.channel import Channel, revision_key
from ws_edge.shared.channels import Channels
from ws_edge.shared.own_stores import EDGE
from ws_edge.sockets.session import Session
from ws_edge.sockets.surroundings import Surroundings
from ws_edge.states import AnyKey, Position, RangeKey, Version

AT_ONCE = 0.0
"""The revision of a channel is read by long poll."""
RETRY_S = 0.5

log = structlog.get_logger(__name__)


class ChannelFeed:
    """One socket's use of a channel: a subscriber of its revision, and the source of its subscriptions.

    Nothing happens before `begin`. From then on a newer revision makes it read the channel again, not older than that.
    """

    def __init__(self, channels: Channels, around: Surroundings, channel: Channel, session: Session) -> None:
        self.channel = channel
        self._channels = channels
        self._hub = around.hub
        self._limits = around.limits
        self._session = session
        self._fed: dict[AnyKey, int | None] = {}
        self._after: dict[AnyKey, Position] = {}
        self._reference = ""
        self._revision: Position | None = None
        self._subscription: Subscription | None = None
        self._reading: asyncio.Task[None] | None = None
        self._lease = Lease(around.calendar, self._end)
        self._lease.renew(channel.expires_at)

    def begin(self, request: BeginRequest) -> None:
        """Starts the subscriptions; a second time it changes nothing."""
        if self._subscription is None:
            self._after = {self._in_force(key): position for key, position in request.after.items()}
            self._reference = request.reference
            key = revision_key(self.channel.id)
            self._subscription = self._hub.subscribe(self, EDGE, key, None, AT_ONCE)

    def close(self) -> None:
        """The socket has gone."""
        self._lease.cancel()
        if self._subscription is not None:
            self._hub.unsubscribe(self._subscription)
        if self._reading is not None:
            self._reading.cancel()

    def started(self, subscription: Subscription, recovered: bool) -> None:
        """Nothing: the first version follows."""

    def changed(self, _: Subscription, version: Version, snapshot: bool) -> None:  # noqa: ARG002  the hub says both
        """The channel has changed, or its first state is to be read."""
        self._revision = version.position
        if self._reading is None:
            self._reading = asyncio.get_running_loop().create_task(self._read())

    def refused(self, _: Subscription, error: RequestError) -> None:
        """Never: the edge may read its own stores."""
        log.error("channel_refused", channel=self.channel.id, reason=str(error))

    def delayed(self, _: Subscription) -> None:
        """Nothing: it is read when it can be."""

    async def _read(self) -> None:
        try:
            while self._revision is not None:
                revision, self._revision = self._revision, None
                await self._read_once(revision)
        finally:
            self._reading = None

    async def _read_once(self, revision: Position) -> None:
        try:
            self._apply(await self._channels.open(self.channel.id, self._session.caller.consumer, revision))
        except (UnknownChannelError, ForbiddenError):
            self._end()
        except RequestError as error:
            log.warning("channel_unread", channel=self.channel.id, reason=str(error))
            self._revision = self._revision or revision
            await asyncio.sleep(RETRY_S)

    def _apply(self, channel: Channel) -> None:
        session = self._session
        wanted = {self._in_force(key): interval for key, interval in channel.subscriptions.items()}
        for key in self._fed.keys() - wanted.keys():
            del self._fed[key]
            session.act(CancelRangeRequest(key, "") if isinstance(key, RangeKey) else CancelRequest(key, ""))
        for key, interval in wanted.items():
            if key in self._fed and self._fed[key] == interval:
                continue
            watched = session.watches(key)
            if key in self._fed or not watched:
                after = session.reached(key) if watched else self._after.get(key)
                session.act(_watch(key, after, interval, self._reference))
            self._fed[key] = interval
        self._after.clear()

    def _in_force(self, key: AnyKey) -> AnyKey:
        """What is watched for it: two ranges may be one when their limits are capped."""
        return self._limits.in_force(key) if isinstance(key, RangeKey) else key

    def _end(self) -> None:
        self._session.end(CLOSE_CHANNEL_ENDED, "the channel has expired or was deleted: create another one")


def _watch(key: AnyKey, after: Position | None, interval_ms: int | None, reference: str) -> Request:
    if isinstance(key, RangeKey):
        return WatchRangeRequest(key, after, interval_ms, reference)
    return WatchRequest(key, after, interval_ms, reference)
