"""A question that unit tests answer by hand, and a subscriber that records its rows."""

from google.protobuf.struct_pb2 import Value

from testkit.ws_edge.edge import Clock
from ws_edge.model.authorization import EVERYONE, Consumer, OwnerRule
from ws_edge.model.questions import Question
from ws_edge.model.states import KeyState, Position, StoreKey
from ws_edge.model.stores import Store
from ws_edge.upstream.queries import Query, RangeResult
from ws_edge.watches.audience import WatchOptions
from ws_edge.watches.hub import Hub
from ws_edge.watches.subscription import RowNews, Subscription
from ws_edge.watches.token import Resumption, mask_of, resumption_of, token_of
from ws_edge.watches.watch import Watch

ALICE = Consumer("alice", "alice", staff=False)
BOB = Consumer("bob", "bob", staff=False)
STAFF = Consumer("", "operator", staff=True)
BOARDS = Store("boards", Value, True, OwnerRule(None, everyone=True))
BETS = Store("bets", Value, True, OwnerRule("owner"))
"""Its rows are hidden one by one."""
SCORES = Store("scores", Value, False, OwnerRule(None, everyone=True))
"""It has one row per group."""


def at(offset: int, epoch: int = 1) -> Position:
    """Returns a position."""
    return Position(epoch, offset)


def row(name: str, offset: int, sort: str = "", owner: str = EVERYONE, epoch: int = 1) -> KeyState:
    """Returns a row, sorted by its name unless `sort` is set; the row of a key has no name."""
    return KeyState(StoreKey("boards", "g", sort or name, name), at(offset, epoch), row=object(), owner=owner)


def gone(name: str, offset: int, sort: str = "") -> KeyState:
    """Returns the removal of a row."""
    return KeyState(StoreKey("boards", "g", sort or name, name), at(offset))


def whole(*rows: KeyState, through: int, more: bool = False, epoch: int = 1) -> RangeResult:
    """Returns an answer with all rows, which says nothing about removals."""
    return RangeResult(None, at(through, epoch), True, more, list(rows), [], False)


def resuming(*changes: KeyState, after: int, through: int) -> RangeResult:
    """Returns an answer with all rows, and all removals after an offset."""
    rows = [change for change in changes if change.row is not None]
    removals = [change for change in changes if change.row is None]
    return RangeResult(at(after), at(through), True, False, rows, removals, True)


def news(*changes: KeyState, after: int, through: int) -> RangeResult:
    """Returns an answer with all changes after an offset."""
    rows = [change for change in changes if change.row is not None]
    removals = [change for change in changes if change.row is None]
    return RangeResult(at(after), at(through), False, False, rows, removals, True)


def keyed(state: KeyState) -> RangeResult:
    """Returns the answer for a key."""
    rows, removals = ([], [state]) if state.row is None else ([state], [])
    return RangeResult(at(-1, state.position.epoch), state.position, True, False, rows, removals, True)


class Recorder:
    """A subscriber that records how it begins, and each row as its name and offset, with - for one that has left."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.taken: list[RowNews] = []
        self.token = ""
        self.reads = True

    def ready(self, subscription: Subscription) -> None:
        """Takes all news, if it reads."""
        if not self.reads:
            return
        if (failure := subscription.take_failure()) is not None:
            self.events.append(failure.code)
        if (beginning := subscription.take_beginning()) is not None:
            self.events.append("resumed" if beginning.resumed else "snapshot")
        while (taken := subscription.take_row()) is not None:
            self.taken.append(taken)
            state = taken.state
            name = f"{state.key.member}@" if state.key.member else ""
            self.events.append(f"{'-' if state.row is None else ''}{name}{state.position.offset}")
        self.token = subscription.take_token() or self.token


class Asked:
    """A hub with one question, which is answered by hand."""

    def __init__(
        self, store: Store = BOARDS, limit: int = 10, reverse: bool = False, fields: tuple[str, ...] = ()
    ) -> None:
        """`fields` are those that subscribers get; empty for all."""
        self.clock, self.fields = Clock(), fields
        self.hub = Hub(self.clock, 0.025)
        self.question = Question(store, "g", limit=limit if store.members else 1, reverse=reverse)

    def join(
        self, after: Position | None = None, ahead: int = 0, consumer: Consumer = ALICE, interval: float = 0.1
    ) -> Recorder:
        """Subscribes a new recorder, which holds everything through a position."""
        token = "" if after is None else token_of(mask_of(self.question, self.fields, consumer), after, ahead)
        phone, options = Recorder(), WatchOptions(consumer, interval, self.fields, token=token)
        self.subscription = self.hub.subscribe(phone, self.question, options)
        return phone

    def due(self) -> tuple[Watch, Query]:
        """Advances the clock until a query is due; returns the watch and the query."""
        self.clock.now += 0.2
        self.hub.advance()
        (watch,) = self.hub.take_due()
        return watch, watch.query()

    def answer(self, answer: RangeResult) -> Query:
        """Answers the next query, and returns that query."""
        watch, query = self.due()
        self.hub.answered(watch, answer)
        return query

    def resumption(self, phone: Recorder, consumer: Consumer = ALICE) -> Resumption | None:
        """Returns the content of a recorder's token; None when it has none."""
        return resumption_of(mask_of(self.question, self.fields, consumer), phone.token)
