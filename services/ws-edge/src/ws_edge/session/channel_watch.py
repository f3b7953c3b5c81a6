"""A watch of a channel: its rows are the channel's watches by name, and each of them is a tree of places below."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from typing_extensions import override

from statecast.push.v2.channel_pb2 import ChannelRecord
from statecast.push.v2.push_pb2 import NamedWatch, Watching
from ws_edge.auth.expiry import ExpiryTimer
from ws_edge.channels import CHANNELS, EDGE_CONSUMER
from ws_edge.channels.channels import check_id
from ws_edge.codec.bodies import View
from ws_edge.codec.frames import Codec, PlaceFrame, parts_of
from ws_edge.codec.requests import ChannelRequest, watch_request
from ws_edge.errors import ChannelEndedError, RequestError, TooManyWatchesError, UnknownChannelError
from ws_edge.metrics import FrameTally
from ws_edge.model.documents import message_document
from ws_edge.model.questions import Question
from ws_edge.model.states import KeyState, Path, Position, StoreKey
from ws_edge.session.place import Place
from ws_edge.session.tree import Tree
from ws_edge.watches.audience import WatchOptions
from ws_edge.watches.subscription import RowNews, Subscriber, Subscription

if TYPE_CHECKING:
    from ws_edge.session.watches import Watches

MAX_RECORDS = 1000
"""The limit of the range of a channel's records, including its head."""

VIEW = View(key_field="name")
NOWHERE = Position(0, 0)
"""The position of rows from which no client resumes."""


@dataclass(slots=True, eq=False)
class ChannelWatch(Subscriber):
    """Keeps the watches of a socket in step with the records of a channel: a range of the edge's own store."""

    request: ChannelRequest
    watches: Watches
    """The watches of its socket."""
    trees: dict[str, Tree] = field(default_factory=dict, init=False)
    full_path: Path = field(default=(), init=False)
    _subscription: Subscription | None = field(default=None, init=False)
    _expiry: ExpiryTimer = field(init=False)
    _owner: str | None = field(default=None, init=False)
    """None before the head record was read, and after it was deleted."""
    _named: dict[str, NamedWatch] = field(default_factory=dict, init=False)
    _below: dict[Path, str] = field(init=False)
    """The tokens of places that the client has from before."""
    _changed: dict[str, None] = field(default_factory=dict, init=False)
    """The names of watches with a change that the client has not been sent."""
    _left_out: set[str] = field(default_factory=set, init=False)
    """The names of watches beyond the limit, which are not followed."""
    _watching: Watching | None = field(default=None, init=False)
    _has_begun: bool = field(default=False, init=False)
    _owes_current: bool = field(default=True, init=False)
    """Whether the client is still to be told that it has everything."""

    def __post_init__(self) -> None:
        self._expiry = ExpiryTimer(self.watches.context.wall_clock, self._expire)
        self._below = dict(self.request.below)
        self.request = self.request._replace(below={})  # which lives longer than these

    @property
    def id(self) -> int:
        return self.request.id

    @property
    def max_watches(self) -> int:
        return self.watches.context.settings.max_channel_watches

    @property
    def tree(self) -> ChannelWatch:
        """The watch to which its frames belong."""
        return self

    def bookmark(self) -> str:
        """Returns an empty token: a channel begins anew at each socket."""
        return ""

    def blind_s(self, now: float) -> float:
        return 0.0 if self._subscription is None else self._subscription.blind_s(now)

    def restart_outdated(self) -> Iterator[None]:
        """Checks and begins watches anew of which a store has changed, or that could not begin; yields after each."""
        for name, tree in tuple(self.trees.items()):
            if self.trees.get(name) is tree and self.watches.changed_stores(tree.request):
                self._replace(name, self._named.get(name))
                yield
        for name, named in tuple(self._named.items()):
            if self._named.get(name) is named and not {name} & (
                self.trees.keys() | self._changed.keys() | self._left_out
            ):
                try:
                    self._start(name, named)
                except RequestError:
                    self._drop(name)  # the client knows
                yield

    def walk(self) -> Iterator[Place | ChannelWatch]:
        """Yields itself, and the places of all watches."""
        yield self
        for tree in tuple(self.trees.values()):
            yield from tree.walk()

    def begin(self) -> None:
        """Starts reading the channel. Raises UnknownChannelError for a text that cannot be an id."""
        question = Question(CHANNELS, check_id(self.request.channel), limit=MAX_RECORDS)
        self._subscription = self.watches.context.hub.subscribe(self, question, WatchOptions(EDGE_CONSUMER))

    def close(self) -> None:
        """Ends everything."""
        self._expiry.cancel()
        if self._subscription is not None:
            self.watches.context.hub.unsubscribe(self._subscription)
        for name in tuple(self.trees):
            self._drop(name)
        self.watches.writer.withdraw(self)

    def end_tree(self, name: str, error: RequestError) -> None:
        """Ends one of its watches with an error, and tells the client; the channel goes on."""
        self._drop(name)
        self.watches.replies.ended(self.id, (name,), error)
        self.completed()

    def take_current(self) -> bool:
        """Returns whether to tell the client now that it has everything; True once."""
        is_complete = self._owes_current and self._has_begun and all(tree.is_complete for tree in self.trees.values())
        self._owes_current = self._owes_current and not is_complete
        return is_complete

    def completed(self) -> None:
        """Notes that an incomplete place has ended."""
        if self._owes_current:
            self.watches.writer.ready(self)

    @override
    def ready(self, subscription: Subscription, /) -> None:
        self.watches.writer.ready(self)

    def next_frames(self, codec: Codec, tally: FrameTally, max_bytes: int) -> list[bytes]:  # noqa: ARG002  no ages
        """Takes the changed records, and begins and ends watches by them."""
        subscription = self._subscription
        if subscription is None or subscription.is_ended:
            return []
        if subscription.take_failure() is not None:
            text = "the channel has more than can be read at once: create another one, with fewer or smaller watches"
            self.watches.end_tree(self, TooManyWatchesError(text))
            return []
        if subscription.take_beginning() is not None:
            self._begin_anew()
        while (news := subscription.take_row()) is not None:
            self._note(news.state)
        token = subscription.take_token()
        if subscription.has_news:
            self.watches.writer.ready(self)
        if token and (fault := self._fault()) is not None:
            self.watches.end_tree(self, fault)
            return []
        rows = self._rows(codec) if token else []
        self._has_begun = self._has_begun or bool(token)
        watching, current = self._watching if token else None, self.take_current()
        if not (watching or rows or current):
            return []
        self._watching = None
        frames, parts = list[bytes](), parts_of(rows, max_bytes, len)
        for part in parts[:-1]:
            frames += codec.place_frames(PlaceFrame(self.id, (), watching, part))
            watching = None
        return frames + codec.place_frames(PlaceFrame(self.id, (), watching, parts[-1], token, current))

    def _begin_anew(self) -> None:
        self._named.clear()
        self._changed = dict.fromkeys(self.trees)
        message = NamedWatch.DESCRIPTOR.full_name
        self._watching = Watching(message=message, key_field=VIEW.key_field, limit=self.max_watches)

    def _note(self, state: KeyState) -> None:
        """Takes a record: the head has no member, a watch has its name as member. Other kinds are ignored."""
        name = state.key.member
        record = state.row if isinstance(state.row, ChannelRecord) else ChannelRecord()  # which is of no kind
        if not name:
            self._owner = record.channel.owner if record.HasField("channel") else None
            if record.HasField("channel"):
                self._expiry.renew(record.channel.expires_at.ToNanoseconds() / 1e9)
        else:
            self._changed[name] = None
            self._named.pop(name, None)
            if record.HasField("watch"):
                self._named[name] = NamedWatch(name=name, watch=record.watch.watch)

    def _fault(self) -> RequestError | None:
        if self._owner is not None and self._owner == self.watches.consumer.principal:
            return None
        if self._has_begun:
            return ChannelEndedError("the channel was deleted: create another one")
        return UnknownChannelError(self.request.channel)

    def _rows(self, codec: Codec) -> list[bytes]:
        """Encodes the changed watches, and begins or ends each."""
        rows = []
        allowed = set(sorted(self._named)[: self.max_watches])
        # A name that comes or goes takes the place of another, or leaves it to one that has not changed itself.
        moved = (allowed & self._left_out) | ((self.trees.keys() & self._named.keys()) - allowed)
        self._left_out = self._named.keys() - allowed
        for name in sorted(self._changed.keys() | moved):
            named = self._named.get(name)
            key = StoreKey(CHANNELS.name, self.request.channel, "", name)
            if named is not None and name not in allowed:
                error = TooManyWatchesError(f"a channel has {self.max_watches} watches: {name} is not followed")
                rows.append(codec.error_body(key, error))
                self._end_place(name)
                continue
            document = None if named is None else message_document(named, has_defaults=False)
            body = codec.body(RowNews(KeyState(key, NOWHERE, named, document=document)), VIEW)
            if body is not None:
                rows.append(body)
            self._replace(name, named)
        self._changed.clear()
        self._below.clear()  # the client drops the places without a row with the token that comes now
        return rows

    def _replace(self, name: str, named: NamedWatch | None) -> None:
        if named is None:
            self._drop(name)  # the client drops the places with the row
            return
        self._end_place(name)
        try:
            self._start(name, named)
        except RequestError as error:
            self.end_tree(name, error)

    def _start(self, name: str, named: NamedWatch) -> None:
        request = watch_request(named.watch, self.watches.context.finder(self.watches.consumer))
        below = {path[1:]: token for path, token in self._below.items() if path[:1] == (name,)}
        request = request._replace(id=self.id, token=below.pop((), ""), below=below)
        tree = self.trees[name] = self.watches.tree_of(request, self, (name,))
        tree.begin()

    def _end_place(self, name: str) -> None:
        if name in self.trees:
            self._drop(name)
            self.watches.replies.ended(self.id, (name,))

    def _drop(self, name: str) -> None:
        tree = self.trees.pop(name, None)
        if tree is not None:
            tree.close()

    def _expire(self) -> None:
        self.watches.end_tree(self, ChannelEndedError("the channel has expired: create another one"))
