"""Each consumer and each address has its share, over all sockets, and gets it back."""

import pytest

from ws_edge.access.gateway import Caller
from ws_edge.access.quotas import STRIKES, Quota, Quotas, Share, site_of
from ws_edge.authorization import Consumer
from ws_edge.errors import FrameFloodError, TooManyFramesError, TooManySocketsError, TooManySubscriptionsError
from ws_edge.testing.edge import Clock

SMALL = Quota(sockets=2, subscriptions=3, frames_per_s=10, burst_s=1)
LARGE = Quota(sockets=100, subscriptions=100, frames_per_s=100, burst_s=1)


def caller(consumer: str, address: str) -> Caller:
    return Caller(Consumer(consumer, consumer, False), address=address)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def opened(quotas: Quotas, consumer: str, address: str) -> Share:
    share = quotas.share(caller(consumer, address))
    share.check_socket()
    return share.__enter__()


def test_the_sockets_of_a_consumer_are_counted_wherever_it_is(clock: Clock) -> None:
    quotas = Quotas(SMALL, LARGE, clock)
    first = opened(quotas, "a", "192.0.2.1")
    opened(quotas, "a", "192.0.2.2")
    opened(quotas, "b", "192.0.2.1")

    with pytest.raises(TooManySocketsError, match="this consumer has 2 sockets"):
        opened(quotas, "a", "192.0.2.3")
    assert quotas.sockets == 3
    first.__exit__()
    opened(quotas, "a", "192.0.2.3")


def test_the_sockets_of_an_address_are_counted_whoever_it_is(clock: Clock) -> None:
    quotas = Quotas(LARGE, SMALL, clock)
    opened(quotas, "a", "192.0.2.1")
    opened(quotas, "b", "192.0.2.1")
    opened(quotas, "c", "192.0.2.2")

    with pytest.raises(TooManySocketsError, match="this address has 2 sockets"):
        opened(quotas, "d", "192.0.2.1")


def test_subscriptions_are_counted_over_all_sockets_and_given_back(clock: Clock) -> None:
    quotas = Quotas(SMALL, LARGE, clock)
    first, second = opened(quotas, "a", ""), opened(quotas, "a", "")
    first.hold(2)
    second.hold(1)
    with pytest.raises(TooManySubscriptionsError, match="this consumer has 3 subscriptions"):
        second.check_subscription()
    first.hold(1)
    second.check_subscription()
    second.hold(2)
    first.__exit__()

    second.check_subscription()


def test_frames_are_counted_over_all_sockets_of_a_consumer(clock: Clock) -> None:
    quotas = Quotas(SMALL, LARGE, clock)
    first, second, other = (opened(quotas, name, "") for name in ("a", "a", "b"))
    for share in (first, second) * 5:
        share.take_frame()

    with pytest.raises(TooManyFramesError, match="10 frames a second"):
        first.take_frame()
    other.take_frame()
    clock.now += 0.1
    second.take_frame()


def test_who_goes_on_is_told_a_hundred_times(clock: Clock) -> None:
    share = opened(Quotas(SMALL, LARGE, clock), "a", "")
    for _ in range(10):
        share.take_frame()
    for _ in range(STRIKES):
        with pytest.raises(TooManyFramesError) as refusal:
            share.take_frame()
        assert not isinstance(refusal.value, FrameFloodError)

    with pytest.raises(FrameFloodError):
        share.take_frame()


def test_accounts_are_forgotten_when_nothing_in_them_counts(clock: Clock) -> None:
    quotas = Quotas(SMALL, LARGE, clock)
    share = opened(quotas, "a", "192.0.2.1")
    for _ in range(10):
        share.take_frame()
    quotas.forget_idle()
    assert len(quotas) == 2
    share.__exit__()
    quotas.forget_idle()
    assert len(quotas) == 2  # or a reconnect would make the bucket full again
    clock.now += 1
    quotas.forget_idle()

    assert len(quotas) == 0


@pytest.mark.parametrize(
    ("address", "site"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("", ""),
        ("unix:", "unix:"),
    ],
)
def test_addresses_of_one_site_are_one(address: str, site: str) -> None:
    assert site_of(address) == site
