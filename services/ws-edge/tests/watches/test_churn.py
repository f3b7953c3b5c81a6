"""Watches that come and go leave nothing behind: memory follows the current watches."""

import gc
import weakref

from testkit.ws_edge.answers import Asked, news, row, whole
from ws_edge.model.states import KeyState

MINUTE = 60.0


class Row:
    """A row that can be referenced weakly."""


def followed(state: KeyState) -> "weakref.ref[Row]":
    state.row = Row()
    return weakref.ref(state.row)


def test_a_range_that_nobody_watches_is_not_kept_until_its_next_read() -> None:
    asked, member = Asked(), row("a", 1)
    life = followed(member)
    asked.join(interval=MINUTE)
    asked.answer(whole(member, through=5))
    asked.hub.unsubscribe(asked.subscription)
    del member, asked.subscription
    gc.collect()

    assert life() is None


def test_a_subscription_that_has_ended_is_not_kept_until_its_next_frame() -> None:
    asked, member = Asked(), row("b", 7)
    asked.join(interval=MINUTE)
    slow = asked.subscription
    asked.answer(whole(row("a", 1), through=5))
    asked.join(interval=1.0)
    life = followed(member)
    asked.hub.answered(slow.watch, news(member, after=5, through=7))
    del member
    for each in (slow, asked.subscription):
        asked.hub.unsubscribe(each)
    del slow, asked.subscription, each
    gc.collect()

    assert life() is None
