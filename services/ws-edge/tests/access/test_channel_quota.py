"""Channels are created at a bounded rate, each consumer for itself."""

import pytest

from ws_edge.access.channel_quota import ChannelQuota
from ws_edge.authorization import Consumer
from ws_edge.errors import TooManyChannelsError
from ws_edge.testing.edge import Clock

ALICE, BOB = (Consumer(f"customer-000{number}", "", False) for number in (1, 2))


def test_an_hours_worth_may_come_at_once_and_then_they_come_one_by_one() -> None:
    clock = Clock()
    quota = ChannelQuota(2, clock)
    for _ in range(2):
        quota.take(ALICE)
    with pytest.raises(TooManyChannelsError, match="2 channels an hour"):
        quota.take(ALICE)
    clock.now += 1800
    quota.take(ALICE)
    with pytest.raises(TooManyChannelsError):
        quota.take(ALICE)


def test_one_consumer_takes_nothing_from_another() -> None:
    quota = ChannelQuota(1, Clock())
    quota.take(ALICE)
    quota.take(BOB)
    with pytest.raises(TooManyChannelsError):
        quota.take(BOB)


def test_consumers_who_may_create_as_many_as_anybody_are_forgotten() -> None:
    clock = Clock()
    quota = ChannelQuota(2, clock)
    quota.take(ALICE)
    clock.now += 3600
    quota.take(BOB)

    assert len(quota) == 1
