"""What clients ask for again and again leaves nothing behind: memory follows what is watched now."""

import gc
import weakref

from testkit.ws_edge.edge import Clock
from testkit.ws_edge.ranges import ALICE, RangeRecorder, news, range_key, row, whole
from ws_edge.hub.hub import Hub
from ws_edge.hub.watch import Subscription
from ws_edge.model.states import KeyState

MINUTE = 60.0


class Row:
    """A row whose life can be followed."""


def followed(state: KeyState) -> "weakref.ref[Row]":
    state.row = Row()
    return weakref.ref(state.row)


def begun(hub: Hub, clock: Clock, member: KeyState, interval: float) -> Subscription:
    """A range of one member that has been read."""
    phone = RangeRecorder()
    phone.reads = False
    subscription = hub.subscribe(phone, ALICE, range_key(), None, interval, sees_all=True)
    clock.now += 1.0
    (watch,) = hub.take_due()
    hub.answered(watch, whole(member, through=5))
    return subscription


def test_a_range_that_nobody_watches_is_not_kept_until_its_next_read() -> None:
    clock = Clock()
    hub = Hub(clock, 0.025, 3.0)
    member = row("a", 1)
    life = followed(member)
    hub.unsubscribe(begun(hub, clock, member, MINUTE))
    del member
    gc.collect()

    assert life() is None


def test_a_subscription_that_has_ended_is_not_kept_until_its_next_delivery() -> None:
    clock = Clock()
    hub = Hub(clock, 0.025, 3.0)
    subscription = begun(hub, clock, row("a", 1), MINUTE)
    other = hub.subscribe(RangeRecorder(), ALICE, range_key(), None, 1.0, sees_all=True)
    member = row("b", 7)
    life = followed(member)
    hub.answered(subscription.watch, news(member, after=5, through=7))
    del member
    for each in (subscription, other):
        hub.unsubscribe(each)
    del subscription, other, each
    gc.collect()

    assert life() is None
