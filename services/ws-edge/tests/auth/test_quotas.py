"""Each consumer and each address has a quota over all of its sockets, and gets back the part no longer in use."""

from collections import Counter
from contextlib import ExitStack

import pytest
import structlog.testing

from testkit.ws_edge.edge import Clock
from ws_edge.auth.gateway import Caller
from ws_edge.auth.quotas import ChannelQuota, Quota, QuotaReservation, Quotas, TokenBucket, network_of
from ws_edge.errors import TooManyChannelsError, TooManyFieldListsError, TooManySocketsError
from ws_edge.model.authorization import Consumer

SMALL = Quota(sockets=2, rows=3, frames_per_s=10, burst_s=1, sockets_per_s=0.1)
LARGE = Quota(sockets=100, rows=100, frames_per_s=100, burst_s=1, sockets_per_s=100)


def caller(consumer: str, address: str) -> Caller:
    return Caller(Consumer(consumer, consumer, False), address=address)


def opened(quotas: Quotas, consumer: str, address: str) -> QuotaReservation:
    return quotas.reserve(caller(consumer, address)).__enter__()


def test_a_consumer_has_eight_lists_of_fields_for_each_store_over_all_sockets(clock: Clock) -> None:
    quotas = Quotas(LARGE, LARGE, clock)
    first, second, other = (opened(quotas, name, "") for name in ("a", "a", "b"))
    for number in range(8):
        first.add(1, "odds", (f"field-{number}",))
    with pytest.raises(TooManyFieldListsError, match="odds by 8 lists"):
        second.add(1, "odds", ("name",))
    second.add(1, "odds", ("field-0",))
    second.add(1, "odds")
    second.add(1, "orders", ("name",))
    other.add(1, "odds", ("name",))
    first.remove(1, "odds", ("field-0",))
    with pytest.raises(TooManyFieldListsError):
        second.add(1, "odds", ("name",))
    second.remove(1, "odds", ("field-0",))

    second.add(1, "odds", ("name",))


def test_frames_are_paid_from_one_budget_by_all_sockets_of_a_consumer(clock: Clock) -> None:
    quotas = Quotas(SMALL, LARGE, clock)
    first, second, other = (opened(quotas, name, "") for name in ("a", "a", "b"))

    assert [first.pay(4), second.pay(6)] == [0, 0]
    assert [first.pay(1), second.pay(2)] == pytest.approx([0.1, 0.3])  # the second waits in line
    assert other.pay(1) == 0
    clock.now += 0.5
    assert second.pay(1) == 0


def test_frames_are_paid_from_one_budget_by_all_consumers_of_an_address(clock: Clock) -> None:
    quotas = Quotas(LARGE, SMALL, clock)
    first, second = opened(quotas, "a", "192.0.2.1"), opened(quotas, "b", "192.0.2.1")
    first.pay(10)

    assert second.pay(5) == pytest.approx(0.5)


def test_idle_accounts_are_forgotten(clock: Clock) -> None:
    quotas = Quotas(SMALL, LARGE, clock)
    reservation = opened(quotas, "a", "192.0.2.1")
    reservation.pay(10)
    quotas.forget_idle()
    assert len(quotas.accounts) == 2
    reservation.__exit__()
    quotas.forget_idle()
    assert len(quotas.accounts) == 2  # or a reconnect would make the bucket full again
    clock.now += 1
    quotas.forget_idle()
    assert len(quotas.accounts) == 1  # or it would open a burst of sockets again
    clock.now += 9
    quotas.forget_idle()

    assert len(quotas.accounts) == 0


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("", ""),
        ("unix:", "unix:"),
    ],
)
def test_addresses_of_one_network_count_as_one(address: str, network: str) -> None:
    assert network_of(address) == network


def test_sockets_that_may_be_opened_at_once_come_back_one_by_one(clock: Clock) -> None:
    quotas = Quotas(SMALL, LARGE, clock)
    for _ in "12":
        opened(quotas, "a", "").__exit__()
    with pytest.raises(TooManySocketsError, match="this consumer opens more"):
        quotas.reserve(caller("a", ""))
    clock.now += 10

    quotas.reserve(caller("a", ""))


def test_the_log_says_once_that_an_address_is_full_and_may_be_a_proxys() -> None:
    quotas = Quotas(LARGE, SMALL, lambda: 0.0)
    with structlog.testing.capture_logs() as logs, ExitStack() as entered:
        for number in range(SMALL.sockets):
            entered.enter_context(quotas.reserve(caller(f"customer-{number}", "192.0.2.1")))
        for number in range(2):
            with pytest.raises(TooManySocketsError):
                quotas.reserve(caller(f"late-{number}", "192.0.2.1"))

    [line] = logs
    assert (line["event"], line["sockets"]) == ("address_full", SMALL.sockets)
    assert "trusted_ips" in line["hint"]


def test_a_burst_may_be_taken_at_once_and_no_more() -> None:
    bucket = TokenBucket(rate=2, burst=3, now=0)

    assert [bucket.take(0) for _ in range(4)] == [True, True, True, False]


def test_tokens_come_back_at_the_rate_up_to_the_burst() -> None:
    bucket = TokenBucket(rate=2, burst=3, now=0)
    for _ in range(3):
        bucket.take(0)

    assert [bucket.take(0.5), bucket.take(0.5)] == [True, False]
    assert not bucket.is_full(1.5)
    assert bucket.is_full(2.5)
    assert [bucket.take(1000) for _ in range(4)] == [True, True, True, False]


ALICE, BOB = (Consumer(f"customer-000{number}", "", False) for number in (1, 2))


def test_channels_of_one_hour_may_be_created_at_once_and_then_one_by_one() -> None:
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


def test_consumers_with_a_full_channel_quota_are_forgotten() -> None:
    clock = Clock()
    quota = ChannelQuota(2, clock)
    quota.take(ALICE)
    clock.now += 3600
    quota.take(BOB)

    assert len(quota.buckets) == 1


def test_a_new_channel_looks_at_few_consumers_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Counter[TokenBucket]()
    is_full = TokenBucket.is_full

    def counted(bucket: TokenBucket, now: float) -> bool:
        looks[bucket] += 1
        return is_full(bucket, now)

    monkeypatch.setattr(TokenBucket, "is_full", counted)
    clock, consumers = Clock(), [Consumer(str(number), "", False) for number in range(100)]
    quota = ChannelQuota(2, clock)
    for consumer in consumers + consumers[:50]:
        quota.take(consumer)
    clock.now += 1800
    quota.take(ALICE)

    assert set(quota.buckets) == {*(each.principal for each in consumers[:50]), ALICE.principal}
    assert looks.total() <= 3 * len(consumers)
