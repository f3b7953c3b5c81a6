"""A peer, or one of its partitions, is not used for a while after a failure."""

from query_service.reads.routed_peer import RoutedPeer
from testkit.query_service import FakeReads, ManualClock

A, B = ("s", 0), ("s", 1)


def test_a_peer_is_usable_until_it_fails(clock: ManualClock) -> None:
    assert RoutedPeer(FakeReads("query-2"), 1.0, clock).usable(A)


def test_a_partition_that_is_not_served_leaves_the_others_usable(clock: ManualClock) -> None:
    health = RoutedPeer(FakeReads("query-2"), 1.0, clock)
    health.failed(A)

    assert not health.usable(A)
    assert health.usable(B)


def test_a_peer_that_does_not_answer_is_usable_for_nothing(clock: ManualClock) -> None:
    health = RoutedPeer(FakeReads("query-2"), 1.0, clock)
    health.failed(None)

    assert not health.usable(A)
    assert not health.usable(B)


def test_after_the_back_off_one_call_tries_a_partition_again_and_the_others_do_not(clock: ManualClock) -> None:
    health = RoutedPeer(FakeReads("query-2"), 1.0, clock)
    health.failed(A)
    clock.now += 1

    assert [health.usable(A), health.usable(A)] == [True, False]


def test_a_peer_that_does_not_answer_stays_unusable_until_it_does(clock: ManualClock) -> None:
    health = RoutedPeer(FakeReads("query-2"), 1.0, clock)
    health.failed(None)
    clock.now += 100
    assert not health.usable(A)

    health.answered(None)

    assert health.usable(A)


def test_an_answer_for_a_partition_makes_it_usable_again(clock: ManualClock) -> None:
    health = RoutedPeer(FakeReads("query-2"), 1.0, clock)
    health.failed(None)
    health.failed(A)
    health.failed(B)
    health.answered(A)

    assert [health.usable(A), health.usable(B)] == [True, False]


def test_it_knows_whether_the_peer_has_answered_anybody_since_a_time(clock: ManualClock) -> None:
    health = RoutedPeer(FakeReads("query-2"), 1.0, clock)
    began = clock.now
    assert health.silent_since(began)

    clock.now += 1
    health.answered(A)

    assert not health.silent_since(began)
