"""A range whose answers unit tests give by hand, and a phone that remembers what it is told of it."""

from ws_edge.authorization import Consumer
from ws_edge.errors import RequestError
from ws_edge.hub.hub import Hub
from ws_edge.hub.member_changes import MemberChange
from ws_edge.hub.range_subscription import RangeSubscription
from ws_edge.hub.range_watch import RangeWatch
from ws_edge.querying.questions import RangeAnswer, RangeQuestion, Removal
from ws_edge.states import Position, RangeKey, StoreKey, Version
from ws_edge.testing.edge import Clock

ALICE = Consumer("alice", "alice", False)
BOB = Consumer("bob", "bob", False)
STAFF = Consumer("", "operator", True)


def range_key(limit: int = 10, reverse: bool = False) -> RangeKey:
    """The orders of alice, or some of them."""
    return RangeKey("orders-by-customer", "alice", "", "", limit, reverse)


def at(offset: int, epoch: int = 1) -> Position:
    """A position."""
    return Position(epoch, offset)


def row(name: str, offset: int, sort: str = "", owner: str = "alice", epoch: int = 1) -> Version:
    """A row of the group, sorted by its name unless it is told otherwise."""
    key = StoreKey("orders-by-customer", "alice", sort or name, name)
    return Version(key, at(offset, epoch), row=object(), owner=owner)


def gone(name: str, offset: int, sort: str = "") -> Removal:
    """The removal of a member."""
    return Removal(StoreKey("orders-by-customer", "alice", sort or name, name), at(offset), None)


def whole(*rows: Version, through: int, more: bool = False, epoch: int = 1) -> RangeAnswer:
    """An answer with all that is in the range."""
    return RangeAnswer(None, at(through, epoch), True, more, list(rows), [], False)


def news(*told: Version | Removal, after: int, through: int) -> RangeAnswer:
    """An answer with what has changed."""
    versions = [each for each in told if isinstance(each, Version)]
    removals = [each for each in told if isinstance(each, Removal)]
    return RangeAnswer(at(after), at(through), False, False, versions, removals, True)


def word(change: MemberChange) -> str:
    """A change as a word: + has entered, ~ has changed, - has left."""
    mark = "-" if change.after is None else "+" if change.before is None else "~"
    return f"{mark}{change.key.member}@{change.position.offset}"


class Phone:
    """Takes everything at once, as words, unless it is told to read slowly."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.taken: list[MemberChange] = []
        self.reads = True

    def range_started(self, _: RangeSubscription, recovered: bool) -> None:
        """How it began."""
        self.told.append("recovered" if recovered else "snapshot")

    def range_changed(self, subscription: RangeSubscription) -> None:
        """Takes what is pending, if it reads."""
        while self.reads and (change := subscription.take()) is not None:
            self.taken.append(change)
            self.told.append(word(change))

    def range_refused(self, _: RangeSubscription, error: RequestError) -> None:
        """The code."""
        self.told.append(error.code)

    def range_delayed(self, _: RangeSubscription) -> None:
        """One word."""
        self.told.append("delayed")


class Range:
    """A hub that watches one range, whose answers are given by hand."""

    def __init__(self, limit: int = 10, reverse: bool = False) -> None:
        self.clock = Clock()
        self.hub = Hub(self.clock, quantum=0.025, patience=3.0)
        self.key = range_key(limit, reverse)

    def join(self, after: Position | None = None, consumer: Consumer = ALICE, sees_all: bool = True) -> Phone:
        """Somebody watches the range from now on."""
        phone = Phone()
        self.subscription = self.hub.watch_range(phone, consumer, self.key, after, 0.1, sees_all)
        return phone

    def due(self) -> tuple[RangeWatch, RangeQuestion]:
        """The range and the next question about it, once it is due."""
        self.clock.now += 0.2
        self.hub.advance()
        (watch,) = self.hub.take_due()
        assert isinstance(watch, RangeWatch)  # noqa: S101  the hub watches nothing else
        return watch, watch.ask()

    def answer(self, answer: RangeAnswer) -> RangeQuestion:
        """Answers the next question, and returns that question."""
        watch, asked = self.due()
        self.hub.answered(watch, answer)
        return asked
