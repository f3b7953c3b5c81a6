"""One subscription hears of the rows that its consumer may see, of its fields, and whether the edge sees."""

import json

from google.protobuf.struct_pb2 import Value

from testkit.ws_edge.edge import Clock, Recorder
from ws_edge.errors import UnavailableError
from ws_edge.model.authorization import EVERYONE, Consumer, OwnerRule
from ws_edge.model.json_rows import decode
from ws_edge.model.questions import Question
from ws_edge.model.states import KeyState, Position, StoreKey
from ws_edge.model.stores import Store
from ws_edge.upstream.queries import Progress, RangeResult
from ws_edge.watches.hub import Hub
from ws_edge.watches.subscription import Subscription, WatchOptions
from ws_edge.watches.token import mask_of, resumption_of

ALICE = Consumer("alice", "alice", False)
OPEN = Store("boards", Value, True, OwnerRule(None, everyone=True))
OWNED = Store("orders", Value, True, OwnerRule("owner"))
NAMES = ("a", "b")


def row(name: str, offset: int, owner: str = EVERYONE, **values: int) -> KeyState:
    return KeyState(StoreKey("s", "g", "", name), Position(1, offset), decode(json.dumps(values).encode()), owner)


class Asked:
    """A question whose answers are given by hand, and its only subscriber."""

    def __init__(self, store: Store = OPEN, **options: bool | tuple[str, ...]) -> None:
        self.clock, self.phone = Clock(), Recorder()
        self.hub = Hub(self.clock, 0.025)
        self.question = Question(store, "g", limit=10)
        self.subscription: Subscription = self.hub.subscribe(
            self.phone,
            self.question,
            WatchOptions(ALICE, 0.1, **options),  # type: ignore[arg-type]
        )

    def answer(self, through: int, *rows: KeyState) -> None:
        self.due()
        result = RangeResult(None, Position(1, through), True, False, list(rows), [], False)
        self.hub.answered(self.subscription.watch, result)

    def due(self) -> None:
        self.clock.now += 0.2
        self.hub.advance()
        self.hub.take_due()


def test_a_change_of_no_field_that_is_told_is_no_news_and_brings_a_bookmark() -> None:
    asked = Asked(fields=NAMES)
    asked.answer(1, row("k1", 1, a=1, b=1, c=1))
    asked.answer(2, row("k1", 2, a=1, b=1, c=2))
    bookmark = asked.subscription.bookmark()
    resumption = resumption_of(mask_of(asked.question, NAMES, ALICE), bookmark)

    assert asked.phone.events == ["snapshot", "1!"]
    assert resumption is not None
    assert resumption.position == Position(1, 2)
    assert asked.subscription.bookmark() == ""


def test_it_is_blind_while_nobody_answers_and_while_answers_are_old() -> None:
    asked = Asked()
    asked.clock.now += 4
    waiting = asked.subscription.blind_s(asked.clock.now)
    asked.answer(1, row("k1", 1, a=1))
    seeing = asked.subscription.blind_s(asked.clock.now)
    asked.due()
    asked.hub.failed(asked.subscription.watch, UnavailableError("away"))
    asked.clock.now += 5
    failing = asked.subscription.blind_s(asked.clock.now)
    asked.due()
    asked.hub.unchanged(asked.subscription.watch, Progress(None, 12_000))
    lagging = asked.subscription.blind_s(asked.clock.now)

    assert waiting >= 4
    assert seeing == 0
    assert failing >= 5
    assert lagging == 12
