"""Feeds the subscriptions of a channel to the session that is attached to it."""

import asyncio
from functools import partial

import structlog
from typing_extensions import override

from ws_edge.auth.expiry import ExpiryTimer
from ws_edge.channels import EDGE_CONSUMER
from ws_edge.channels.channel import Channel, revision_key
from ws_edge.channels.channels import Channels
from ws_edge.codec.frames import BeginRequest, CancelQueryRequest, CancelRequest, Held, QueryRequest, WatchRequest
from ws_edge.errors import CLOSE_CHANNEL_ENDED, ForbiddenError, RequestError, UnknownChannelError
from ws_edge.hub.watch import Subscriber, Subscription
from ws_edge.model.query_specs import QuerySpec, Subject
from ws_edge.model.states import AnyKey, KeyState, Position
from ws_edge.session.session import Session

RETRY_S = 0.5

log = structlog.get_logger(__name__)


class ChannelFeed(Subscriber):
    """One socket's use of a channel: a subscriber of the channel's revision, which keeps the socket's in step with it.

    Nothing happens before `begin`. From then on a newer revision makes it read the channel again, not older than that.
    """

    def __init__(self, channels: Channels, channel: Channel, session: Session) -> None:
        self._channels = channels
        self._channel = channel.id
        self._context = session.context
        self._session = session
        self._fed: dict[Subject, int | None] = {}
        """What comes from the channel, with intervals."""
        self._after: dict[AnyKey, Position] = {}
        self._held: dict[str, Held] = {}
        """What the client has of queries that have not begun, by their names."""
        self._reference = ""
        self._unread: Position | None = None
        """The position of a revision that has not been read."""
        self._subscription: Subscription | None = None
        self._reading: asyncio.Task[None] | None = None
        reason = "the channel has expired or was deleted: create another one"
        self._end = partial(session.end, CLOSE_CHANNEL_ENDED, reason)
        self._expiry = ExpiryTimer(self._context.wall_clock, self._end)
        self._expiry.renew(channel.expires_at)

    def begin(self, request: BeginRequest) -> None:
        """Starts the subscriptions; a second time it changes nothing."""
        if self._subscription is None:
            self._after = {self._context.granted(key): position for key, position in request.after.items()}
            self._held = dict(request.queries)
            self._reference = request.reference
            key = revision_key(self._channel)
            # The interval 0 makes the hub watch the key by long poll.
            self._subscription = self._context.hub.subscribe(self, EDGE_CONSUMER, key, None, 0.0)

    def close(self) -> None:
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
                    self._apply(await self._channels.open(self._channel, self._session.caller.consumer, position))
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
        wanted = {self._granted(subject): interval for subject, interval in channel.subscriptions.items()}
        for subject in self._fed.keys() - wanted.keys():
            del self._fed[subject]
            self._session.act(_cancelling(subject))
        for subject, interval in wanted.items():
            if subject in self._fed and self._fed[subject] == interval:
                continue
            if subject in self._fed or not self._session.watches(subject):
                self._session.act(self._request(subject, interval))
            self._fed[subject] = interval
        self._after.clear()
        self._held.clear()

    def _granted(self, subject: Subject) -> Subject:
        """What is watched on the socket: two ranges may be one when their limits are capped."""
        return subject if isinstance(subject, QuerySpec) else self._context.granted(subject)

    def _request(self, subject: Subject, interval: int | None) -> WatchRequest | QueryRequest:
        """Asks for what is newer than what the client has."""
        if isinstance(subject, QuerySpec):
            held = self._session.held_of(subject) or self._held.get(subject.name, {})
            return QueryRequest(subject, held, interval, self._reference)
        after = self._session.position_of(subject) or self._after.get(subject)
        return WatchRequest(subject, after, interval, self._reference)


def _cancelling(subject: Subject) -> CancelRequest | CancelQueryRequest:
    return CancelQueryRequest(subject.name, "") if isinstance(subject, QuerySpec) else CancelRequest(subject, "")
