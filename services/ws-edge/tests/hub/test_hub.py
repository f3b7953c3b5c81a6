"""One timed read per key, and each subscriber gets news at its own interval."""

import pytest

from testkit.ws_edge.edge import Clock, Recorder
from ws_edge.errors import RowTooLargeError, UnavailableError
from ws_edge.hub.hub import Hub
from ws_edge.hub.watch import Watch
from ws_edge.model.authorization import Consumer
from ws_edge.model.states import KeyState, Position, StoreKey
from ws_edge.upstream.queries import Progress

KEY = StoreKey("orders-by-key", "order-1")
ALICE = Consumer("customer-0001", "alice", False)
BOB = Consumer("customer-0002", "bob", False)
AWAY = UnavailableError("nobody answers")


def row(offset: int, epoch: int = 1, owner: str = "customer-0001") -> KeyState:
    return KeyState(KEY, Position(epoch, offset), row=object(), owner=owner)


def no_row(offset: int, deleted: bool = False) -> KeyState:
    return KeyState(KEY, Position(1, offset), deleted=deleted)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def hub(clock: Clock) -> Hub:
    return Hub(clock, tick=0.025, first_answer_timeout=3.0)


def watch_of(hub: Hub, answer: KeyState | None = None) -> Watch:
    """The watch of the only key that is due; with `answer`, the hub gets this answer for it."""
    (watch,) = hub.take_due()
    if answer is not None:
        hub.answered(watch, answer)
    return watch


def test_a_new_subscription_is_asked_for_at_once_and_answered_with_a_snapshot() -> None:
    calls: list[None] = []
    hub = Hub(Clock(), 0.025, 3.0, lambda: calls.append(None))
    phone = Recorder()
    hub.subscribe(phone, ALICE, KEY, None, 0.1)

    assert len(calls) == 1
    watch_of(hub, row(5))
    assert phone.events == ["snapshot", "5!"]


def test_any_number_of_subscribers_of_a_key_make_one_read(hub: Hub) -> None:
    phones = [Recorder() for _ in range(1000)]
    for phone in phones:
        hub.subscribe(phone, ALICE, KEY, None, 0.1)
    watch_of(hub, row(5))

    assert hub.unique_keys == 1
    assert hub.subscriptions == 1000
    assert all(phone.events == ["snapshot", "5!"] for phone in phones)


def test_a_key_is_asked_for_at_the_fastest_interval_of_its_subscribers(hub: Hub, clock: Clock) -> None:
    hub.subscribe(Recorder(), ALICE, KEY, None, 1.0)
    fast = hub.subscribe(Recorder(), ALICE, KEY, None, 0.1)
    hub.unchanged(watch_of(hub), Progress())
    due_steps = []
    for step in range(40):
        clock.now += 0.025
        if step == 19:
            hub.unsubscribe(fast)
        for watch in hub.take_due():
            due_steps.append(step)
            hub.unchanged(watch, Progress())

    assert due_steps == [3, 7, 11, 15, 19]


def test_a_faster_subscriber_brings_the_next_read_forward(hub: Hub, clock: Clock) -> None:
    hub.subscribe(Recorder(), ALICE, KEY, None, 10.0)
    watch_of(hub, row(5))
    hub.subscribe(fast := Recorder(), ALICE, KEY, None, 0.1)
    clock.now += 0.125

    assert fast.events == ["snapshot", "5!"]
    assert len(hub.take_due()) == 1
    clock.now += 20
    assert hub.take_due() == []


def test_a_state_that_was_not_confirmed_lately_is_read_again_before_it_is_a_snapshot(hub: Hub, clock: Clock) -> None:
    hub.subscribe(Recorder(), ALICE, KEY, None, 10.0)
    watch_of(hub, row(5))
    clock.now += 1.0
    hub.subscribe(late := Recorder(), ALICE, KEY, None, 0.1)

    assert late.events == []
    watch_of(hub, row(6))
    assert late.events == ["snapshot", "6!"]


def test_a_key_is_not_read_twice_at_a_time_and_missed_ticks_are_skipped(hub: Hub, clock: Clock) -> None:
    hub.subscribe(Recorder(), ALICE, KEY, None, 0.1)
    watch = watch_of(hub)
    clock.now += 1.03

    assert hub.take_due() == []
    hub.failed(watch, AWAY)
    assert hub.take_due() == []
    clock.now += 0.07
    assert hub.take_due() == [watch]


def test_each_subscriber_gets_the_newest_state_at_its_own_interval(hub: Hub, clock: Clock) -> None:
    hub.subscribe(fast := Recorder(), ALICE, KEY, None, 0.1)
    hub.subscribe(slow := Recorder(), ALICE, KEY, None, 1.0)
    watch_of(hub, row(1))
    for offset in range(2, 13):
        clock.now += 0.1
        hub.advance()
        watch_of(hub, row(offset))

    assert fast.events == ["snapshot", "1!", *(str(offset) for offset in range(2, 13))]
    assert slow.events == ["snapshot", "1!", "10"]
    clock.now += 1.0
    hub.advance()
    assert slow.events == ["snapshot", "1!", "10", "12"]


def test_a_subscriber_with_a_position_gets_only_newer_states(hub: Hub) -> None:
    hub.subscribe(current := Recorder(), ALICE, KEY, Position(1, 5), 0.1)
    hub.subscribe(behind := Recorder(), ALICE, KEY, Position(1, 4), 0.1)
    hub.subscribe(foreign := Recorder(), ALICE, KEY, Position(2, 900), 0.1)
    watch_of(hub, row(5))

    assert current.events == ["recovered"]
    assert behind.events == ["recovered", "5!"]
    assert foreign.events == ["snapshot", "5!"]


def test_a_subscriber_that_is_ahead_of_a_replica_is_not_taken_back(hub: Hub, clock: Clock) -> None:
    hub.subscribe(phone := Recorder(), ALICE, KEY, Position(1, 9), 0.1)
    watch_of(hub, row(5))
    for offset in (8, 9, 10):
        clock.now += 0.1
        watch_of(hub, row(offset))

    assert phone.events == ["recovered", "10"]


def test_a_replica_that_is_behind_takes_no_subscriber_back(hub: Hub, clock: Clock) -> None:
    hub.subscribe(phone := Recorder(), ALICE, KEY, None, 0.1)
    for answer in (row(5), row(4), no_row(3, deleted=True), row(6), row(1, epoch=2), row(7), row(2, epoch=2)):
        watch_of(hub, answer)
        clock.now += 0.1

    assert phone.events == ["snapshot", "5!", "6", "1", "2"]


def test_an_epoch_that_was_left_comes_back_when_replicas_keep_answering_with_it(hub: Hub, clock: Clock) -> None:
    hub.subscribe(phone := Recorder(), ALICE, KEY, None, 0.1)
    for epoch, offset in ((2, 5), (1, 9), (2, 6), (1, 9), (2, 7), (2, 8), (2, 9)):
        watch_of(hub, row(offset, epoch))
        clock.now += 0.1

    assert phone.events == ["snapshot", "5!", "9", "9"]


def test_an_unknown_key_is_reported_once_and_then_its_row_appears(hub: Hub, clock: Clock) -> None:
    hub.subscribe(phone := Recorder(), ALICE, KEY, None, 0.1)
    for answer in (no_row(5), no_row(6), no_row(7), row(8), no_row(9, deleted=True), no_row(12), row(13)):
        watch = watch_of(hub, answer)
        clock.now += 0.1

    assert phone.events == ["snapshot", "unknown!", "8", "deleted", "13"]
    assert watch.position == Position(1, 13)


def test_a_resuming_subscriber_is_not_told_again_that_a_key_is_unknown(hub: Hub, clock: Clock) -> None:
    hub.subscribe(phone := Recorder(), ALICE, KEY, Position(1, 5), 0.1)
    watch_of(hub, KeyState(KEY, Position(1, 9), absent_after=Position(1, -1)))
    clock.now += 0.1
    watch_of(hub, row(12))

    assert phone.events == ["recovered", "12"]


def test_a_subscription_to_somebody_elses_row_is_refused_and_ends(hub: Hub) -> None:
    hub.subscribe(mine := Recorder(), ALICE, KEY, None, 0.1)
    hub.subscribe(theirs := Recorder(), BOB, KEY, None, 0.1, "ref")
    watch_of(hub, row(5))
    cached = hub.subscribe(again := Recorder(), BOB, KEY, Position(1, 999), 0.1)

    assert mine.events == ["snapshot", "5!"]
    assert theirs.events == ["forbidden ref"]
    assert again.events == ["forbidden "]
    assert cached.is_ended
    assert hub.subscriptions == 1


def test_a_row_that_changes_its_owner_is_withdrawn_at_once(hub: Hub, clock: Clock) -> None:
    hub.subscribe(slow := Recorder(), ALICE, KEY, None, 60.0)
    hub.subscribe(Recorder(), Consumer("", "operator", True), KEY, None, 0.1)
    watch_of(hub, row(5))
    clock.now += 0.1
    watch_of(hub, row(6))
    clock.now += 0.1
    watch_of(hub, row(7, owner="customer-0002"))
    clock.now += 60
    hub.advance()

    assert slow.events == ["snapshot", "5!", "forbidden "]


def test_a_first_answer_that_is_late_is_announced_once_and_then_comes(hub: Hub, clock: Clock) -> None:
    hub.subscribe(phone := Recorder(), ALICE, KEY, None, 0.1)
    for _ in range(100):
        for watch in hub.take_due():
            hub.failed(watch, AWAY)
        clock.now += 0.1
        hub.advance()

    assert phone.events == ["delayed"]
    watch_of(hub, row(5))
    assert phone.events == ["delayed", "snapshot", "5!"]


def test_an_outage_is_told_to_running_watches_once_and_what_comes_after_it_follows(hub: Hub, clock: Clock) -> None:
    hub.subscribe(phone := Recorder(), ALICE, KEY, None, 0.1)
    watch_of(hub, row(5))
    for _ in range(2):
        for _ in range(100):
            clock.now += 0.1
            for watch in hub.take_due():
                hub.failed(watch, AWAY)
            hub.advance()
        clock.now += 0.1
        for watch in hub.take_due():
            hub.unchanged(watch, Progress())

    assert phone.events == ["snapshot", "5!", "delayed", "delayed"]
    clock.now += 0.1
    watch_of(hub, row(6))
    assert phone.events[-1] == "6"


def test_a_failure_that_passes_soon_is_not_told(hub: Hub, clock: Clock) -> None:
    hub.subscribe(phone := Recorder(), ALICE, KEY, None, 0.1)
    watch_of(hub, row(5))
    for number in range(100):
        clock.now += 0.1
        for watch in hub.take_due():
            hub.failed(watch, AWAY) if number % 10 else hub.unchanged(watch, Progress())
        hub.advance()

    assert phone.events == ["snapshot", "5!"]


def test_a_row_that_is_too_large_is_told_at_once_to_all_who_watch_it_and_who_come_later(hub: Hub, clock: Clock) -> None:
    hub.subscribe(early := Recorder(), ALICE, KEY, None, 0.1)
    watch_of(hub, row(5))
    hub.subscribe(waiting := Recorder(), ALICE, KEY, Position(2, 1), 0.1)
    for _ in range(50):
        clock.now += 0.1
        for watch in hub.take_due():
            hub.failed(watch, RowTooLargeError("too large"))
        hub.advance()
    hub.subscribe(late := Recorder(), ALICE, KEY, None, 0.1)

    assert [each.events for each in (early, waiting, late)] == [
        ["snapshot", "5!", "delayed"],
        ["snapshot", "5!", "delayed"],
        ["delayed"],
    ]


def test_a_key_without_a_row_is_read_more_seldom_the_longer_it_has_none(hub: Hub, clock: Clock) -> None:
    """So that 20,000 keys that will never have one cost a tenth of those that have."""
    hub.subscribe(phone := Recorder(), ALICE, KEY, None, 0.1)
    reads, state = list[int](), no_row(5)
    for _ in range(4):
        reads.append(0)
        for _ in range(1000):  # a hundred seconds
            for watch in hub.take_due():
                reads[-1] += 1
                hub.answered(watch, state)
            clock.now += 0.1
    clock.now += 1
    watch_of(hub, row(6))
    first = len(phone.events)
    for offset in range(7, 17):
        clock.now += 0.1
        watch_of(hub, row(offset))
        hub.advance()

    assert reads[0] > 300
    assert all(90 <= each <= 110 for each in reads[1:])
    assert phone.events[first - 1] == "6"
    assert len(phone.events) - first >= 9


def test_a_key_that_nobody_watches_is_forgotten(hub: Hub, clock: Clock) -> None:
    subscription = hub.subscribe(phone := Recorder(), ALICE, KEY, None, 0.1)
    watch = watch_of(hub)
    hub.unsubscribe(subscription)
    hub.unsubscribe(subscription)
    hub.answered(watch, row(5))
    clock.now += 10
    hub.advance()

    assert (hub.unique_keys, hub.subscriptions) == (0, 0)
    assert hub.take_due() == []
    assert phone.events == []


def test_a_key_that_nobody_watches_any_more_is_not_read(hub: Hub) -> None:
    hub.unsubscribe(hub.subscribe(Recorder(), ALICE, KEY, None, 0.1))

    assert hub.take_due() == []
