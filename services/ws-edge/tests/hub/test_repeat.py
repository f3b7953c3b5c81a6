"""Who asks for it is told a key's state again at each interval, as long as replicas answer for it."""

import pytest

from testkit.ws_edge.edge import Clock, Recorder
from ws_edge.errors import UnavailableError
from ws_edge.hub.hub import Hub
from ws_edge.hub.watch import Subscription, Watch
from ws_edge.model.authorization import Consumer
from ws_edge.model.states import KeyState, Position, StoreKey
from ws_edge.upstream.queries import Progress

KEY = StoreKey("orders-by-key", "order-1")
ALICE = Consumer("customer-0001", "alice", False)
TICK_S = 0.025


def row(offset: int, owner: str = "customer-0001") -> KeyState:
    return KeyState(KEY, Position(1, offset), row=object(), owner=owner)


class Phones:
    """A hub with every read answered at once, unless nobody answers."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.hub = Hub(self.clock, TICK_S, first_answer_timeout=3.0)
        self.state = row(5)
        self.is_away = False
        self.held: list[Watch] = []

    def subscribe(
        self, interval: float, repeat: bool = True, after: Position | None = None
    ) -> tuple[Recorder, Subscription]:
        phone = Recorder()
        return phone, self.hub.subscribe(phone, ALICE, KEY, after, interval, repeat=repeat)

    def run(self, seconds: float) -> None:
        """Lets so much time go by, tick by tick."""
        for _ in range(round(seconds / TICK_S)):
            self.hub.advance()
            for watch in self.hub.take_due():
                self._answer(watch)
            self.clock.now += TICK_S

    def change(self, offset: int) -> None:
        self.state = row(offset)
        for watch in self.held:
            self.hub.answered(watch, self.state)

    def _answer(self, watch: Watch) -> None:
        if self.is_away:
            self.hub.failed(watch, UnavailableError("away"))
        elif watch.position == self.state.position:
            if watch.interval == 0:
                self.held = [watch]
            else:
                self.hub.unchanged(watch, Progress())
        else:
            self.hub.answered(watch, self.state)


@pytest.fixture
def phones() -> Phones:
    return Phones()


def test_an_unchanged_state_is_told_again_at_each_interval_to_those_who_ask(phones: Phones) -> None:
    repeating, _ = phones.subscribe(1.0)
    other, _ = phones.subscribe(1.0, repeat=False)
    phones.run(10.5)

    assert repeating.events == ["snapshot", *["5!"] * 11]
    assert other.events == ["snapshot", "5!"]


def test_changes_and_repetitions_together_come_once_an_interval(phones: Phones) -> None:
    phone, _ = phones.subscribe(1.0)
    phones.run(2.5)
    for offset in range(6, 26):
        phones.change(offset)
        phones.run(0.1)
    phones.run(2.0)

    assert phone.events[:4] == ["snapshot", "5!", "5!", "5!"]
    news = [event for event in phone.events[4:] if not event.endswith("!")]
    assert 1 <= len(news) <= 3
    assert news[-1] == "25"
    assert len(phone.events) - 1 <= 6.5 + 1


def test_each_subscriber_is_told_again_at_its_own_interval(phones: Phones) -> None:
    fast, _ = phones.subscribe(0.5)
    slow, _ = phones.subscribe(2.0)
    phones.run(8.25)

    assert (len(fast.events) - 1, len(slow.events) - 1) == (17, 5)


def test_a_key_that_is_in_a_long_poll_is_told_again_as_well(phones: Phones) -> None:
    phones.subscribe(0.0, repeat=False)
    phone, _ = phones.subscribe(1.0)
    phones.run(5.5)
    phones.change(6)
    phones.run(2.0)

    assert phone.events[:7] == ["snapshot", *["5!"] * 6]
    assert phone.events[7:] == ["6", "6!"]


def test_a_client_that_resumes_is_told_again_after_an_interval(phones: Phones) -> None:
    phone, _ = phones.subscribe(1.0, after=Position(1, 5))
    phones.run(0.9)
    begun = list(phone.events)
    phones.run(1.5)

    assert begun == ["recovered"]
    assert phone.events == ["recovered", "5!", "5!"]


def test_nothing_is_told_again_while_nobody_answers(phones: Phones) -> None:
    phone, _ = phones.subscribe(1.0)
    phones.run(2.5)
    phones.is_away = True
    phones.run(10.0)
    during = list(phone.events)
    phones.is_away = False
    phones.run(2.5)

    assert during == ["snapshot", *["5!"] * 3, "delayed"]
    assert 2 <= len(phone.events) - len(during) <= 3


def test_a_key_without_a_row_is_told_again(phones: Phones) -> None:
    phones.state = KeyState(KEY, Position(1, 5))
    phone, _ = phones.subscribe(1.0)
    phones.run(2.5)

    assert phone.events == ["snapshot", *["unknown!"] * 3]


def test_a_row_that_has_become_anothers_is_not_told_again(phones: Phones) -> None:
    phone, _ = phones.subscribe(1.0)
    phones.run(1.5)
    phones.state = row(6, owner="customer-0002")
    phones.run(5.0)

    assert phone.events == ["snapshot", "5!", "5!", "forbidden "]


def test_a_subscription_that_has_ended_is_not_told_again(phones: Phones) -> None:
    phone, subscription = phones.subscribe(1.0)
    phones.run(1.5)
    phones.hub.unsubscribe(subscription)
    phones.run(5.0)

    assert phone.events == ["snapshot", "5!", "5!"]
    assert phones.hub.unique_keys == 0
