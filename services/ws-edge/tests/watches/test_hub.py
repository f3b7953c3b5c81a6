"""One timed read per question, and each subscriber gets news at its own interval."""

import pytest

from testkit.ws_edge.answers import ALICE, BETS, SCORES, STAFF, Asked, Recorder, at, gone, keyed, row
from testkit.ws_edge.edge import Clock
from ws_edge.errors import RowTooLargeError, UnavailableError
from ws_edge.model.questions import Question
from ws_edge.model.states import KeyState, Position
from ws_edge.upstream.queries import Progress
from ws_edge.watches.audience import WatchOptions
from ws_edge.watches.hub import Hub
from ws_edge.watches.subscription import Subscriber, Subscription
from ws_edge.watches.token import mask_of, token_of
from ws_edge.watches.watch import Watch

KEY = Question(SCORES, "g")
AWAY = UnavailableError("nobody answers")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def hub(clock: Clock) -> Hub:
    return Hub(clock, 0.025)


def join(hub: Hub, phone: Subscriber, interval: float = 0.1, after: Position | None = None) -> Subscription:
    """Subscribes to the key, with everything through a position."""
    token = "" if after is None else token_of(mask_of(KEY, (), ALICE), after)
    return hub.subscribe(phone, KEY, WatchOptions(ALICE, interval, token=token))


def watch_of(hub: Hub, state: KeyState | None = None) -> Watch:
    """Returns the only due watch, of a key; with a state, the hub gets it as the answer."""
    (watch,) = hub.take_due()
    if state is not None:
        hub.answered(watch, keyed(state))
    return watch


def version(offset: int, epoch: int = 1) -> KeyState:
    return row("", offset, epoch=epoch)


def test_a_new_subscription_is_asked_for_at_once_and_answered_with_all_rows() -> None:
    calls: list[None] = []
    hub = Hub(Clock(), 0.025, lambda: calls.append(None))
    join(hub, phone := Recorder())

    assert len(calls) == 1
    watch_of(hub, version(5))
    assert phone.events == ["snapshot", "5"]
    assert [news.snapshot for news in phone.taken] == [True]


def test_a_key_is_asked_for_at_the_fastest_interval_of_its_subscribers(hub: Hub, clock: Clock) -> None:
    join(hub, Recorder(), 1.0)
    fast = join(hub, Recorder(), 0.1)
    watch_of(hub, version(5))
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
    join(hub, Recorder(), 10.0)
    watch_of(hub, version(5))
    join(hub, fast := Recorder(), 0.1)
    clock.now += 0.125

    assert fast.events == ["snapshot", "5"]
    assert len(hub.take_due()) == 1
    clock.now += 20
    assert hub.take_due() == []


def test_rows_that_were_not_confirmed_lately_are_read_again_before_somebody_begins_with_them(
    hub: Hub, clock: Clock
) -> None:
    join(hub, Recorder(), 10.0)
    watch_of(hub, version(5))
    clock.now += 1.0
    join(hub, late := Recorder(), 0.1)

    assert late.events == []
    watch_of(hub, version(6))
    assert late.events == ["snapshot", "6"]


def test_a_key_is_not_read_twice_at_a_time_and_missed_ticks_are_skipped(hub: Hub, clock: Clock) -> None:
    join(hub, Recorder())
    watch = watch_of(hub)
    clock.now += 1.03

    assert hub.take_due() == []
    hub.failed(watch, AWAY)
    assert hub.take_due() == []
    clock.now += 0.07
    assert hub.take_due() == [watch]


def test_each_subscriber_gets_the_newest_row_at_its_own_interval(hub: Hub, clock: Clock) -> None:
    join(hub, fast := Recorder(), 0.1)
    join(hub, slow := Recorder(), 1.0)
    watch_of(hub, version(1))
    for offset in range(2, 13):
        clock.now += 0.1
        hub.advance()
        watch_of(hub, version(offset))

    assert fast.events == ["snapshot", "1", *(str(offset) for offset in range(2, 13))]
    assert slow.events == ["snapshot", "1", "10"]
    clock.now += 1.0
    hub.advance()
    assert slow.events == ["snapshot", "1", "10", "12"]


def test_a_key_without_a_row_is_an_empty_range_until_its_row_appears(hub: Hub, clock: Clock) -> None:
    join(hub, phone := Recorder())
    for answer in (gone("", 5), gone("", 6), gone("", 7), version(8), gone("", 9), gone("", 12), version(13)):
        watch_of(hub, answer)
        clock.now += 0.1
        hub.advance()

    assert phone.events == ["snapshot", "8", "-9", "13"]


def test_a_row_that_is_too_large_is_told_at_once_to_all_who_watch_it_and_who_come_later(hub: Hub, clock: Clock) -> None:
    join(hub, early := Recorder())
    watch_of(hub, version(5))
    join(hub, second := Recorder(), after=at(1, epoch=2))
    for _ in range(50):
        clock.now += 0.1
        for watch in hub.take_due():
            hub.failed(watch, RowTooLargeError("too large"))
        hub.advance()
    join(hub, late := Recorder())

    assert early.events == second.events == ["snapshot", "5", "row_too_large"]
    assert late.events == ["row_too_large"]


def test_a_range_that_is_too_large_is_told_to_no_one_from_whom_rows_may_be_hidden() -> None:
    asked = Asked(BETS)
    alice, staff = asked.join(), asked.join(consumer=STAFF)
    watches = asked.hub.take_due()
    for watch in watches:
        asked.hub.failed(watch, RowTooLargeError("too large"))

    assert (len(watches), alice.events, staff.events) == (2, [], ["row_too_large"])


def test_a_key_without_a_row_is_read_more_seldom_the_longer_it_has_none(hub: Hub, clock: Clock) -> None:
    """So 20,000 keys that will never have a row cost a tenth of keys with rows."""
    join(hub, phone := Recorder())
    reads = list[int]()
    for _ in range(4):
        reads.append(0)
        for _ in range(1000):  # a hundred seconds
            for watch in hub.take_due():
                reads[-1] += 1
                hub.answered(watch, keyed(gone("", 5)))
            clock.now += 0.1
    clock.now += 1
    watch_of(hub, version(6))
    first = len(phone.events)
    for offset in range(7, 17):
        clock.now += 0.1
        watch_of(hub, version(offset))
        hub.advance()

    assert reads[0] > 300
    assert all(90 <= each <= 110 for each in reads[1:])
    assert phone.events[first - 1] == "6"
    assert len(phone.events) - first >= 9


def test_a_key_that_nobody_watches_is_forgotten(hub: Hub, clock: Clock) -> None:
    subscription = join(hub, phone := Recorder())
    watch = watch_of(hub)
    hub.unsubscribe(subscription)
    hub.unsubscribe(subscription)
    hub.answered(watch, keyed(version(5)))
    clock.now += 10
    hub.advance()

    assert (hub.watches, hub.subscriptions) == (0, 0)
    assert hub.take_due() == []
    assert phone.events == []
