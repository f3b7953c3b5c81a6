"""A watch of a client: its first place, and, with steps, a place below for each row that names one."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from time import time_ns
from typing import Protocol

import structlog
from typing_extensions import override

from statecast.push.v2.push_pb2 import Watching
from ws_edge.codec import bodies
from ws_edge.codec.bodies import View
from ws_edge.codec.frames import ENVELOPE_BYTES, FILL_BYTES, Codec, PlaceFrame
from ws_edge.codec.requests import WatchRequest
from ws_edge.errors import (
    ForbiddenError,
    MalformedFrameError,
    RequestError,
    RowTooLargeError,
    TooManyRowsError,
    TooManySubscriptionsError,
    UnreadableRowError,
)
from ws_edge.metrics import FrameTally
from ws_edge.model.authorization import Consumer, check_key
from ws_edge.model.documents import field_holding
from ws_edge.model.questions import question_of
from ws_edge.model.states import AnyKey, KeyState, Path, RangeKey, StoreKey, name_of, rows_of
from ws_edge.model.stores import Store
from ws_edge.watches.hub import Hub
from ws_edge.watches.subscription import Beginning, RowNews, Subscriber, Subscription, WatchOptions

ROOT: Path = ()

log = structlog.get_logger(__name__)


class Parent(Protocol):
    """The channel of a tree."""

    def take_current(self) -> bool:
        """Whether the client is to be told now that it has everything of the channel; true once."""

    def completed(self) -> None:
        """A place that was not complete has ended."""

    def end_tree(self, name: str, error: RequestError, /) -> None:
        """The tree cannot go on: the channel closes it, and tells the client."""


class Listener(Protocol):
    """The socket of a tree. It must neither block nor raise, `check_place` apart."""

    def ready(self, place: "Place", /) -> None:
        """The place has a frame to send."""

    def withdraw(self, place: "Place", /) -> None:
        """The place has ended, and no frame of it may be sent."""

    def place_ended(self, tree_id: int, path: Path, error: RequestError | None = None, /) -> None:
        """A place has ended, and the client does not know that by its rows."""

    def failed(self, tree: "Tree", error: RequestError, /) -> None:
        """The tree cannot go on: the listener closes it, and tells the client."""

    def check_place(self, key: AnyKey, /) -> None:
        """Raises TooManySubscriptionsError when one more place below may not be watched."""

    def granted(self, key: AnyKey, /) -> AnyKey:
        """Returns the key or range with the limit in force."""

    def count(self) -> None:
        """The number of rows that may be watched has changed."""


@dataclass(slots=True, eq=False)
class Place(Subscriber):
    """A place: its subscription, how its rows are shown, and its next frame."""

    tree: "Tree"
    path: Path
    key: AnyKey
    view: View
    subscription: Subscription | None = None
    """None until the hub has it."""
    children: set[str] = field(default_factory=set)
    """The names of its rows that have a place."""
    _carried: tuple[bytes, ...] = ()
    """The body of a row that did not fit into the frame before."""

    @property
    def full_path(self) -> Path:
        """The path as clients have it: of a channel's watch it begins with the name."""
        return (*self.tree.prefix, *self.path)

    @property
    def has_more(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._carried) or (self.subscription is not None and self.subscription.has_news)

    def bookmark(self) -> str:
        """Returns a newer token when nothing has happened; empty when there is none."""
        return "" if self.subscription is None or self._carried else self.subscription.bookmark()

    def blind_s(self, now: float) -> float:
        """Returns for how many seconds the place may be out of date; 0 when it is not."""
        return 0.0 if self.subscription is None else self.subscription.blind_s(now)

    def next_frame(self, codec: Codec, tally: FrameTally, max_bytes: int) -> PlaceFrame | None:
        """Takes what waits, as much as fits into a frame; None when there is nothing to say."""
        subscription, tree = self.subscription, self.tree
        if subscription is None or subscription.is_ended:
            return None
        beginning = subscription.take_beginning()
        watching = None if beginning is None else self._watching(subscription, beginning)
        if beginning is not None and beginning.resumed:
            for row in subscription.rows():
                tree.follow(self, row)
        rows = self._take_bodies(subscription, codec, tally, max_bytes)
        if subscription.is_ended:  # by what a row has brought
            return None
        token = "" if self._carried else subscription.take_token()
        if token:
            tree.completed(self)
        current = tree.take_current()
        if not (watching or rows or token or current):
            return None
        return PlaceFrame(tree.id, self.full_path, watching, rows, token, current)

    @override
    def ready(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        self.tree.listener.ready(self)

    def _take_bodies(self, subscription: Subscription, codec: Codec, tally: FrameTally, max_bytes: int) -> list[bytes]:
        """Takes rows as far as they fit, and follows each."""
        rows, size = list(self._carried), sum(map(len, self._carried))
        self._carried = ()
        if (failure := subscription.take_failure()) is not None:
            rows.append(codec.error_body(StoreKey(subscription.watch.question.store.name, ""), failure))
        while size < FILL_BYTES and (news := subscription.take_row()) is not None:
            self.tree.follow(self, news.state)
            body = self._body(news, codec, tally, max_bytes)
            if body is None:
                continue
            if rows and size + len(body) > max_bytes - ENVELOPE_BYTES:
                self._carried = (body,)
                break
            rows.append(body)
            size += len(body) + 1
        return rows

    def _body(self, news: RowNews, codec: Codec, tally: FrameTally, max_bytes: int) -> bytes | None:
        """Encodes a row; when no frame can hold it, the error that says so."""
        state, tally.skipped = news.state, tally.skipped + news.skipped
        try:
            state.check_readable()
            body = codec.body(bodies.RowNews(state, news.names, news.skipped), self.view)
        except UnreadableRowError as error:
            return self._error_body(state, codec, error)
        except Exception:
            log.exception("row_failed", key=str(state.key))
            text = f"the row of {state.key} cannot be sent: tell the operators"
            return self._error_body(state, codec, UnreadableRowError(text))
        if body is not None and len(body) > max_bytes - ENVELOPE_BYTES:
            text = (
                f"the row of {state.key} has {len(body)} bytes, and a frame {max_bytes}: what it is now cannot be shown"
            )
            return self._error_body(state, codec, RowTooLargeError(text))
        if body is not None and not news.snapshot and state.commit_ns is not None:
            tally.aged((time_ns() - state.commit_ns) / 1e9)
        return body

    def _error_body(self, state: KeyState, codec: Codec, error: RequestError) -> bytes:
        if self.subscription is not None:
            self.subscription.failed(state.key.member)
        return codec.error_body(state.key, error)

    def _watching(self, subscription: Subscription, beginning: Beginning) -> Watching:
        """Says how the place begins, and notes the fields that hold the key and the sort value of its rows."""
        row = next((each for each in subscription.visible_rows() if not each.is_unreadable), None)
        if row is not None:
            fields = [field_holding(row, text) for text in (row.key.member, row.key.sort)]
            shown = [name if not self.view.fields or name in self.view.fields else "" for name in fields]
            self.view = self.view._replace(key_field=shown[0], sort_field=shown[1])
        return Watching(
            resumed=beginning.resumed,
            message=subscription.watch.question.store.kind,
            key_field=self.view.key_field,
            sort_field=self.view.sort_field,
            limit=rows_of(self.key),
            interval_ms=round(subscription.options.interval * 1000),
        )


@dataclass(slots=True, eq=False)
class Tree:
    """The places of one watch.

    A row is followed when it is taken to be sent: a client hears of a row before the places that it brings.
    """

    request: WatchRequest
    consumer: Consumer
    hub: Hub
    listener: Listener
    interval: float
    """In seconds."""
    parent: Parent | None = None
    """Of a channel's watch."""
    prefix: Path = ()
    """The name of a channel's watch."""
    places: dict[Path, Place] = field(default_factory=dict, init=False)
    _below: dict[Path, str] = field(default_factory=dict, init=False)
    """The tokens of places that have not begun."""
    _incomplete: set[Path] = field(default_factory=set, init=False)
    _owes_current: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        self._below = dict(self.request.below)

    @property
    def id(self) -> int:
        return self.request.id

    @property
    def is_complete(self) -> bool:
        """Whether each place has been sent a token since it began."""
        return ROOT in self.places and not self._incomplete

    @property
    def weight(self) -> int:
        """As how many rows it counts."""
        return sum(weight(place.key, self.interval) for place in self.places.values())

    @property
    def stores(self) -> frozenset[str]:
        """The names of the stores of all steps."""
        return frozenset((self.request.store.name, *(step.store.name for step in self.request.steps)))

    def begin(self) -> None:
        """Starts the first place. Raises RequestError."""
        request = self.request
        self._watch(ROOT, request.store, self.listener.granted(request.key), request.fields, request.token)

    def close(self) -> None:
        """Ends all places."""
        self._prune(ROOT)
        self._owes_current = False

    def completed(self, place: Place) -> None:
        """A place has been sent its token: the client drops places below without a row, and so do their tokens here."""
        if place.path not in self._incomplete:
            return
        self._incomplete.discard(place.path)
        depth = len(place.path)
        for path in [each for each in self._below if len(each) > depth and each[:depth] == place.path]:
            if path[: depth + 1] not in self.places:
                del self._below[path]

    def take_current(self) -> bool:
        """Whether the client is to be told now that it has everything; true once."""
        if self.parent is not None:
            return self.parent.take_current()
        is_complete = self._owes_current and self.is_complete
        self._owes_current = self._owes_current and not is_complete
        return is_complete

    def follow(self, place: Place, row: KeyState) -> None:
        """Watches the place that a row names now, and no other for this row."""
        depth = len(place.path)
        if depth == len(self.request.steps) or self.places.get(place.path) is not place:
            return
        path = (*place.path, name_of(row.key))
        if row.row is None:
            self._prune(path)  # the client drops it with the row
            return
        key, child, step = self._next(place, row), self.places.get(path), self.request.steps[depth]
        if child is not None and child.key == key:
            return
        if child is not None:
            self._end(path)
        if key is None:
            return
        token = self._below.pop(path, "")
        try:
            self.listener.check_place(key)
            self._watch(path, step.store, key, step.fields, token)
        except TooManySubscriptionsError as error:
            self._fail(TooManyRowsError(str(error)))

    def walk(self) -> Iterator[Place]:
        """Returns all places."""
        return iter(tuple(self.places.values()))

    def _next(self, place: Place, row: KeyState) -> AnyKey | None:
        """Returns what the next step watches for a row; None if it names nothing that the consumer may see."""
        if row.is_unreadable:
            return None
        step = self.request.steps[len(place.path)]
        before = self.request.store if place.path == ROOT else self.request.steps[len(place.path) - 1].store
        group = before.text_of(row.row, step.field)
        key = self.listener.granted(step.key_for(group))
        try:
            step.store.check(key)
            check_key(self.consumer, step.store.rule, key)
        except (MalformedFrameError, ForbiddenError):
            return None
        return key

    def _watch(self, path: Path, store: Store, key: AnyKey, fields: tuple[str, ...], token: str) -> None:
        request = self.request
        place = self.places[path] = Place(self, path, key, View(fields, request.delta, request.times))
        self._incomplete.add(path)
        if path != ROOT:
            self.places[path[:-1]].children.add(path[-1])
        self.listener.count()
        options = WatchOptions(self.consumer, self.interval, fields, request.delta, token)
        subscription = self.hub.subscribe(place, question_of(store, key), options)
        if self.places.get(path) is place:
            place.subscription = subscription
        else:  # it has ended while it began
            self.hub.unsubscribe(subscription)

    def _prune(self, path: Path) -> None:
        """Ends the places at a path and below."""
        self._below.pop(path, None)
        place = self.places.pop(path, None)
        if place is None:
            return
        self._incomplete.discard(path)
        for name in tuple(place.children):
            self._prune((*path, name))
        above = self.places.get(path[:-1]) if path else None
        if above is not None:
            above.children.discard(path[-1])
        if place.subscription is not None:
            self.hub.unsubscribe(place.subscription)
        self.listener.withdraw(place)
        self.listener.count()
        root = self.places.get(ROOT)
        if root is None or self._incomplete:
            return
        if self.parent is not None:
            self.parent.completed()
        elif self._owes_current:
            self.listener.ready(root)

    def _end(self, path: Path) -> None:
        """As `_prune`, and tells the client, to which the row says nothing of it."""
        if path in self.places:
            self._prune(path)
            self.listener.place_ended(self.id, (*self.prefix, *path))

    def _fail(self, error: RequestError) -> None:
        if self.parent is None:
            self.listener.failed(self, error)
        else:
            self.parent.end_tree(self.prefix[0], error)


def weight(key: AnyKey, interval: float) -> int:
    """Returns as how many rows a place counts: its limit, and more when it is told faster than every second."""
    limit = key.limit if isinstance(key, RangeKey) else 1
    return limit if not interval or interval >= 1 else round(limit / interval)
