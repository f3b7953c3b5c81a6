"""A range whose answers unit tests give by hand, and a subscriber that records its changes."""

from testkit.ws_edge.edge import Clock
from ws_edge.errors import RequestError
from ws_edge.hub.hub import Hub
from ws_edge.hub.member_changes import MemberChange
from ws_edge.hub.watch import Subscription, Watch
from ws_edge.model.authorization import Consumer
from ws_edge.model.states import KeyState, Position, RangeKey, StoreKey
from ws_edge.upstream.queries import Query, RangeResult

ALICE = Consumer("alice", "alice", False)
BOB = Consumer("bob", "bob", False)
STAFF = Consumer("", "operator", True)


def range_key(limit: int = 10, reverse: bool = False) -> RangeKey:
    """The orders of alice, or some of them."""
    return RangeKey("orders-by-customer", "alice", "", "", limit, reverse)


def at(offset: int, epoch: int = 1) -> Position:
    """A position."""
    return Position(epoch, offset)


def row(name: str, offset: int, sort: str = "", owner: str = "alice", epoch: int = 1) -> KeyState:
    """A row of the group, sorted by its name unless `sort` is set."""
    key = StoreKey("orders-by-customer", "alice", sort or name, name)
    return KeyState(key, at(offset, epoch), row=object(), owner=owner)


def gone(name: str, offset: int, sort: str = "") -> KeyState:
    """The removal of a member."""
    return KeyState(StoreKey("orders-by-customer", "alice", sort or name, name), at(offset))


def whole(*rows: KeyState, through: int, more: bool = False, epoch: int = 1) -> RangeResult:
    """An answer with all that is in the range."""
    return RangeResult(None, at(through, epoch), True, more, list(rows), [], False)


def news(*changes: KeyState, after: int, through: int) -> RangeResult:
    """An answer with what has changed."""
    versions = [change for change in changes if change.row is not None]
    removals = [change for change in changes if change.row is None]
    return RangeResult(at(after), at(through), False, False, versions, removals, True)


def word(change: MemberChange) -> str:
    """A change as a word: + has entered, ~ has changed, - has left."""
    mark = "-" if change.state.row is None else "+" if change.before is None else "~"
    return f"{mark}{change.state.key.member}@{change.state.position.offset}"


class RangeRecorder:
    """A subscriber of a range that records its changes as words, at once while `reads` is true."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.taken: list[MemberChange] = []
        self.reads = True

    def started(self, _: Subscription, recovered: bool) -> None:
        """Records how the subscription started."""
        self.events.append("recovered" if recovered else "snapshot")

    def changed(self, subscription: Subscription, state: KeyState | None = None, snapshot: bool = False) -> None:
        """Takes what is pending, if it reads."""
        while self.reads and (change := subscription.take()) is not None:
            self.taken.append(change)
            self.events.append(word(change))

    def change_taken(self, _: Subscription, __: MemberChange) -> None:
        """Is not told of its own."""

    def refused(self, _: Subscription, error: RequestError) -> None:
        """Records the error code."""
        self.events.append(error.code)

    def delayed(self, _: Subscription) -> None:
        """Records the delay."""
        self.events.append("delayed")


class Range:
    """A hub that watches one range, whose answers are given by hand."""

    def __init__(self, limit: int = 10, reverse: bool = False) -> None:
        self.clock = Clock()
        self.hub = Hub(self.clock, tick=0.025, first_answer_timeout=3.0)
        self.key = range_key(limit, reverse)

    def join(self, after: Position | None = None, consumer: Consumer = ALICE, sees_all: bool = True) -> RangeRecorder:
        """Subscribes a new recorder to the range."""
        phone = RangeRecorder()
        self.subscription = self.hub.subscribe(phone, consumer, self.key, after, 0.1, sees_all=sees_all)
        return phone

    def due(self) -> tuple[Watch, Query]:
        """Advances the clock until a query is due; returns the range's watch and the query."""
        self.clock.now += 0.2
        self.hub.advance()
        (watch,) = self.hub.take_due()
        return watch, watch.query()

    def answer(self, answer: RangeResult) -> Query:
        """Answers the next query, and returns that query."""
        watch, query = self.due()
        self.hub.answered(watch, answer)
        return query
