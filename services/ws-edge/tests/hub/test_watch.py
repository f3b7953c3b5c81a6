"""A subscription lacks states newer than its own, and a watch knows its fastest subscriber."""

from testkit.ws_edge.edge import Recorder
from ws_edge.hub.watch import KeyWatch, Subscription, Watch
from ws_edge.model.authorization import Consumer
from ws_edge.model.states import KeyState, Position, StoreKey

KEY = StoreKey("orders-by-key", "o")
ALICE = Consumer("customer-0001", "alice", False)


def watch_of(key: StoreKey = KEY) -> Watch:
    return KeyWatch(key, 0.0)


def subscription(watch: Watch, after: Position | None = None, interval: float = 1.0) -> Subscription:
    return Subscription(watch, Recorder(), ALICE, after, interval)


def test_a_subscription_lacks_what_is_newer_or_of_another_epoch() -> None:
    state = KeyState(KEY, Position(1, 5), row=object())

    assert state.is_newer_than(None)
    assert state.is_newer_than(Position(1, 4))
    assert state.is_newer_than(Position(2, 9))
    assert not state.is_newer_than(Position(1, 5))
    assert not state.is_newer_than(Position(1, 6))


def test_an_absent_key_is_no_news_to_a_subscriber_that_knows_it() -> None:
    nothing = KeyState(KEY, Position(1, 9), absent_after=Position(1, 5))

    assert nothing.is_newer_than(None)
    assert nothing.is_newer_than(Position(1, 4))
    assert nothing.is_newer_than(Position(2, 7))
    assert not nothing.is_newer_than(Position(1, 5))
    assert not nothing.is_newer_than(Position(1, 9))
    assert KeyState(KEY, Position(1, 9)).is_newer_than(Position(1, 7))


def test_the_interval_of_a_watch_is_the_shortest_of_its_subscriptions() -> None:
    watch = watch_of()
    slow, fast, as_fast = (subscription(watch, interval=seconds) for seconds in (1.0, 0.1, 0.1))
    for each in (slow, fast, as_fast):
        watch.add(each)
    intervals = [watch.interval]
    for each in (fast, as_fast, slow):
        watch.remove(each)
        intervals.append(watch.interval)

    assert intervals == [0.1, 0.1, 1.0, 0.0]


def test_the_position_of_a_key_that_is_not_there_moves_on_silently() -> None:
    watch = watch_of()

    assert watch.accept(KeyState(KEY, Position(1, 5)))
    assert not watch.accept(KeyState(KEY, Position(1, 8)))
    assert watch.position == Position(1, 8)
    assert not watch.accept(KeyState(KEY, Position(1, 7), row=object()))
    assert watch.position == Position(1, 8)
    assert watch.accept(KeyState(KEY, Position(1, 9), row=object()))
