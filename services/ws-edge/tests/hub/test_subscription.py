"""A subscription lacks what is newer, and a watch knows its fastest subscriber."""

from ws_edge.authorization import Consumer
from ws_edge.hub.subscription import Subscription, Watch
from ws_edge.states import Position, StoreKey, Version
from ws_edge.testing.edge import Recorder

KEY = StoreKey("orders-by-key", "o")
ALICE = Consumer("customer-0001", "alice", False)


def subscription(watch: Watch, after: Position | None = None, interval: float = 1.0) -> Subscription:
    return Subscription(watch, Recorder(), ALICE, after, interval)


def test_a_subscription_lacks_what_is_newer_or_of_another_epoch() -> None:
    version = Version(KEY, Position(1, 5), row=object())
    watch = Watch(KEY, 0.0)

    assert subscription(watch).lacks(version)
    assert subscription(watch, Position(1, 4)).lacks(version)
    assert subscription(watch, Position(2, 9)).lacks(version)
    assert not subscription(watch, Position(1, 5)).lacks(version)
    assert not subscription(watch, Position(1, 6)).lacks(version)


def test_who_knows_that_there_is_nothing_lacks_nothing_while_that_is_certain() -> None:
    nothing = Version(KEY, Position(1, 9), unchanged_since=Position(1, 5))
    watch = Watch(KEY, 0.0)

    assert subscription(watch).lacks(nothing)
    assert subscription(watch, Position(1, 4)).lacks(nothing)
    assert subscription(watch, Position(2, 7)).lacks(nothing)
    assert not subscription(watch, Position(1, 5)).lacks(nothing)
    assert not subscription(watch, Position(1, 9)).lacks(nothing)
    assert subscription(watch, Position(1, 7)).lacks(Version(KEY, Position(1, 9)))


def test_the_fastest_interval_is_that_of_whoever_is_left() -> None:
    watch = Watch(KEY, 0.0)
    slow, fast, as_fast = (subscription(watch, interval=seconds) for seconds in (1.0, 0.1, 0.1))
    for each in (slow, fast, as_fast):
        watch.add(each)
    intervals = [watch.interval]
    for each in (fast, as_fast, slow):
        watch.remove(each)
        intervals.append(watch.interval)

    assert intervals == [0.1, 0.1, 1.0, 0.0]


def test_the_position_of_a_key_that_is_not_there_moves_on_silently() -> None:
    watch = Watch(KEY, 0.0)

    assert watch.accept(Version(KEY, Position(1, 5)))
    assert not watch.accept(Version(KEY, Position(1, 8)))
    assert watch.position == Position(1, 8)
    assert not watch.accept(Version(KEY, Position(1, 7), row=object()))
    assert watch.position == Position(1, 8)
    assert watch.accept(Version(KEY, Position(1, 9), row=object()))
