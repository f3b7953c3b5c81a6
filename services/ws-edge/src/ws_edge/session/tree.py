"""A watch of a client: its first place and, with steps, a place below each row that names a group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ws_edge.codec.bodies import View
from ws_edge.codec.requests import WatchRequest
from ws_edge.errors import (
    ForbiddenError,
    MalformedFrameError,
    MalformedWatchError,
    RequestError,
    TooManyFieldListsError,
    TooManyRowsError,
    TooManyWatchesError,
)
from ws_edge.model.questions import Question
from ws_edge.model.states import KeyState, Path
from ws_edge.session.place import Place
from ws_edge.watches.audience import WatchOptions

if TYPE_CHECKING:
    from ws_edge.session.channel_watch import ChannelWatch
    from ws_edge.session.watches import Watches

ROOT: Path = ()


@dataclass(slots=True, eq=False)
class Tree:
    """The places of one watch.

    A row is followed when it is in the frame to be sent, so that a client gets a row before the places below it.
    """

    request: WatchRequest
    watches: Watches
    """The watches of its socket."""
    interval: float
    """In seconds."""
    parent: ChannelWatch | None = None
    """The channel, if the watch belongs to one."""
    prefix: Path = ()
    """The name of the watch in its channel; empty without a channel."""
    places: dict[Path, Place] = field(default_factory=dict, init=False)
    _below: dict[Path, str] = field(default_factory=dict, init=False)
    """The tokens of places that have not begun."""
    _incomplete: int = field(default=0, init=False)
    """How many places have not been sent a token since they began."""
    _owes_current: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        self._below = dict(self.request.below) if self.request.steps else {}
        # Each token is taken once, and the request lives as long as the watch.
        self.request = self.request._replace(below={})

    @property
    def id(self) -> int:
        return self.request.id

    @property
    def is_complete(self) -> bool:
        """Whether each place has been sent a token since it began."""
        return ROOT in self.places and not self._incomplete

    def begin(self) -> None:
        """Starts the first place. Raises RequestError."""
        request = self.request
        self._watch(ROOT, self.watches.context.granted(request.question), request.fields, request.token)

    def close(self) -> None:
        """Ends all places, and takes the cost of those below a frame's watches from the budget."""
        self.watches.pay(sum(bool(place.full_path) for place in self.places.values()))
        self._prune(ROOT)
        self._owes_current = False

    def completed(self, place: Place) -> None:
        """Notes that a place has been sent its token, and drops tokens of places below without a row, as clients do."""
        if place.is_complete:
            return
        place.is_complete = True
        self._incomplete -= 1
        depth = len(place.path)
        for path in [each for each in self._below if len(each) > depth and each[:depth] == place.path]:
            if path[: depth + 1] not in self.places:
                del self._below[path]

    def take_current(self) -> bool:
        """Returns whether to tell the client now that it has everything; True once."""
        if self.parent is not None:
            return self.parent.take_current()
        is_complete = self._owes_current and self.is_complete
        self._owes_current = self._owes_current and not is_complete
        return is_complete

    def follow(self, place: Place, row: KeyState) -> None:
        """Watches the place that a row names now; ends the row's previous place if that is another one."""
        depth = len(place.path)
        if depth == len(self.request.steps) or self.places.get(place.path) is not place:
            return
        path = (*place.path, row.key.member)
        if row.row is None:
            self._prune(path)  # the client drops it with the row
            return
        question, child = self._next(place, row), self.places.get(path)
        if child is not None and child.question == question:
            return
        if child is not None:
            self._end(path)
        if question is None:
            return
        token = self._below.pop(path, "")
        try:
            self._watch(path, question, self.request.steps[depth].fields, token)
        except TooManyWatchesError as error:
            self._fail(TooManyRowsError(str(error)))
        except TooManyFieldListsError as error:
            self._fail(error)

    def drop(self, place: Place, name: str) -> None:
        """Ends the place below a row that the client drops by an error."""
        if self.places.get(place.path) is place:
            self._end((*place.path, name))

    def refused(self, place: Place, error: RequestError) -> None:
        """Ends a place that the query service refuses to answer: a nested one alone, the root with the whole watch."""
        refusal = MalformedWatchError(str(error))
        if place.path == ROOT:
            self._fail(refusal)
        else:
            self._end(place.path, refusal)

    def walk(self) -> Iterator[Place]:
        """Returns all places."""
        return iter(tuple(self.places.values()))

    def _next(self, place: Place, row: KeyState) -> Question | None:
        """Returns the next step's question for a row; None if it names no group that the consumer may see."""
        step = self.request.steps[len(place.path)]
        question = self.watches.context.granted(step.question(place.question.store.text_of(row.row, step.field)))
        try:
            question.check()
            question.check_group(self.watches.consumer)
        except (MalformedFrameError, ForbiddenError):
            return None
        return question

    def _watch(self, path: Path, question: Question, fields: tuple[str, ...], token: str) -> None:
        request = self.request
        times = request.times and question.store.shows_changes(self.watches.consumer)
        place = Place(self, path, question, View(fields, request.delta, times))
        self.watches.add(place)
        self.places[path] = place
        self._incomplete += 1
        if path != ROOT:
            self.places[path[:-1]].children[path[-1]] = None
        step = request.steps[len(path)] if place.has_steps else None
        options = WatchOptions(
            self.watches.consumer, self.interval, fields, request.delta, token, step.field if step else ""
        )
        place.subscription = self.watches.context.hub.subscribe(place, question, options)

    def _prune(self, path: Path) -> None:
        """Ends the places at a path and below."""
        for each in [each for each in self._below if each[: len(path)] == path]:
            del self._below[each]
        place = self.places.pop(path, None)
        if place is None:
            return
        self._incomplete -= not place.is_complete
        for name in tuple(place.children):
            self._prune((*path, name))
        above = self.places.get(path[:-1]) if path else None
        if above is not None:
            above.children.pop(path[-1], None)
        if place.subscription is not None:
            self.watches.context.hub.unsubscribe(place.subscription)
        self.watches.remove(place)
        root = self.places.get(ROOT)
        if root is None or self._incomplete:
            return
        if self.parent is not None:
            self.parent.completed()
        elif self._owes_current:
            self.watches.writer.ready(root)

    def _end(self, path: Path, error: RequestError | None = None) -> None:
        """Prunes the place, and tells the client, which cannot see it from the row."""
        if path in self.places:
            self._prune(path)
            self.watches.replies.ended(self.id, (*self.prefix, *path), error)

    def _fail(self, error: RequestError) -> None:
        if self.parent is None:
            self.watches.end_tree(self, error)
        else:
            self.parent.end_tree(self.prefix[0], error)
