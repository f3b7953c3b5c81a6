"""The watches of one socket: their beginnings, limits and ends."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from random import randrange

from ws_edge.auth.quotas import QuotaReservation
from ws_edge.codec.requests import ChannelRequest, RefusedWatch, WatchRequest
from ws_edge.errors import IdUsedError, RequestError, StoreChangedError, TooManyWatchesError, UnavailableError
from ws_edge.model.authorization import Consumer
from ws_edge.model.states import Path
from ws_edge.model.stores import Store
from ws_edge.session.channel_watch import ChannelWatch
from ws_edge.session.context import SessionContext
from ws_edge.session.outbox import SocketWriter
from ws_edge.session.place import Place
from ws_edge.session.replies import Replies
from ws_edge.session.tree import Tree

RETRY_SPREAD_MS = 5000
"""Clients ask again at random times within this period for watches of a store that has changed or is not known yet."""


@dataclass(slots=True, eq=False)
class Watches:
    """Begins and ends the watches of a socket, and hands the writer places that have something to send."""

    context: SessionContext
    consumer: Consumer
    reservation: QuotaReservation
    writer: SocketWriter
    replies: Replies
    _trees: dict[int, Tree | ChannelWatch] = field(default_factory=dict, init=False)
    _highest: int = field(default=0, init=False)
    """The highest id so far."""
    _places_below: int = field(default=0, init=False)

    def begin(self, request: WatchRequest | ChannelRequest | RefusedWatch) -> None:
        """Begins a watch, or reports the error because of which it cannot begin."""
        if request.id <= self._highest:
            text = f"watch {request.id}: the id is not above {self._highest}, the highest of this socket: take the next"
            self.replies.error(IdUsedError(text))
            return
        self._highest = request.id
        try:
            if isinstance(request, RefusedWatch):
                raise request.error
            if len(self._trees) >= (limit := self.context.settings.max_watches):
                raise TooManyWatchesError(f"a socket may have {limit} watches: end some, or open another socket")
            tree = self._trees[request.id] = self._tree(request)
            tree.begin()
        except RequestError as error:
            self._trees.pop(request.id, None)
            self.replies.ended(request.id, (), error, _retry_ms(error))

    def end(self, watch_id: int) -> None:
        """Ends a watch at the client's request; does nothing when it has already ended."""
        tree = self._trees.get(watch_id)
        if tree is not None:
            self.end_tree(tree)
        elif watch_id > self._highest:
            self.replies.warn(f"unwatch {watch_id}", "unknown_watch", f"unwatch: there was no watch {watch_id}")

    def end_outdated(self) -> Iterator[None]:
        """Ends the watches of stores that are others now, and tells the client when to request them again.

        Yields after each, so that the caller can let others have their turn.
        """
        for tree in tuple(self._trees.values()):
            if isinstance(tree, ChannelWatch):
                yield from tree.restart_outdated()
            elif changed := self.changed_stores(tree.request):
                error = _changed(changed)
                self.end_tree(tree, error, _retry_ms(error))
            yield

    def is_outdated(self, store: Store) -> bool:
        """Returns whether the store is another one now, or gone: nobody is sent rows by its former rights."""
        return self.context.stores.get(store.name) is not store

    def changed_stores(self, request: WatchRequest) -> list[str]:
        """Returns the names of the watch's stores that are others now, or gone."""
        stores = request.question.store, *(step.store for step in request.steps)
        return [store.name for store in stores if self.is_outdated(store)]

    def close(self) -> None:
        """Ends all watches without a frame."""
        for tree in tuple(self._trees.values()):
            del self._trees[tree.id]
            tree.close()

    def places(self) -> Iterator[Place | ChannelWatch]:
        """Returns the places of all watches."""
        return (place for tree in self._trees.values() for place in tree.walk())

    def add(self, place: Place) -> None:
        """Counts a place that begins.

        Raises TooManyWatchesError or TooManyFieldListsError when it exceeds a limit.
        """
        limit = self.context.settings.max_places
        if place.full_path and self._places_below >= limit:
            text = f"the steps and channels of a socket may bring {limit} places: give narrower limits"
            raise TooManyWatchesError(text)
        self.reservation.add(self._rows_of(place), place.question.store.name, place.view.fields)
        self._places_below += bool(place.full_path)

    def remove(self, place: Place) -> None:
        """Removes an ended place from the counts, and drops its unsent frames."""
        self.reservation.remove(self._rows_of(place), place.question.store.name, place.view.fields)
        self._places_below -= bool(place.full_path)
        self.writer.withdraw(place)

    def pay(self, places: int) -> None:
        """Takes the cost of places below that end together, which is that of as many watches: no frame asked for them.

        The socket is not read on before it is paid. All rows of a consumer can be paid at once, as after a lost line.
        """
        self.reservation.pay(places)

    def tree_of(self, request: WatchRequest, channel: ChannelWatch | None = None, prefix: Path = ()) -> Tree:
        """Returns the tree of a watch, which has not begun. Raises RequestError when it is not allowed."""
        if changed := self.changed_stores(request):
            raise _changed(changed)  # while it waited to be paid for
        request.question.check_group(self.consumer)
        interval = self.context.interval(request.interval_ms, request.question.store)
        return Tree(request, self, interval, channel, prefix)

    def end_tree(
        self, tree: Tree | ChannelWatch, error: RequestError | None = None, retry_ms: int | None = None
    ) -> None:
        """Ends a watch, unless it has already ended, and tells the client."""
        if self._trees.pop(tree.id, None) is not None:
            tree.close()
            self.replies.ended(tree.id, (), error, retry_ms)

    def _rows_of(self, place: Place) -> int:
        searched = place.question.searched_for(self.consumer)
        return self.context.rows_counted(searched.limit, place.tree.interval)

    def _tree(self, request: WatchRequest | ChannelRequest) -> Tree | ChannelWatch:
        return self.tree_of(request) if isinstance(request, WatchRequest) else ChannelWatch(request, self)


def _changed(stores: Iterable[str]) -> StoreChangedError:
    return StoreChangedError(f"the store {' and '.join(sorted(set(stores)))} has changed: ask again")


def _retry_ms(error: RequestError) -> int | None:
    is_passing = isinstance(error, StoreChangedError | UnavailableError)
    return randrange(RETRY_SPREAD_MS) if is_passing else None  # noqa: S311  it is no secret
