"""A peer, or one of its partitions, is not used for a while after a failure."""

import pytest

from query_service.reads.routed_peer import RoutedPeer
from testkit.query_service import FakeReads, ManualClock

A, B = ("s", 0), ("s", 1)


@pytest.fixture
def peer(clock: ManualClock) -> RoutedPeer:
    return RoutedPeer(FakeReads("query-2"), 1.0, clock)


def test_a_partition_that_is_not_served_leaves_the_others_usable(peer: RoutedPeer) -> None:
    assert peer.usable(A)
    peer.failed(A)

    assert [peer.usable(A), peer.usable(B)] == [False, True]


def test_after_the_back_off_one_call_tries_a_partition_again_and_the_others_do_not(
    peer: RoutedPeer, clock: ManualClock
) -> None:
    peer.failed(A)
    clock.now += 1

    assert [peer.usable(A), peer.usable(A)] == [True, False]


def test_a_peer_that_does_not_answer_is_usable_for_nothing_until_it_does(peer: RoutedPeer, clock: ManualClock) -> None:
    peer.failed(None)
    clock.now += 100
    assert [peer.usable(A), peer.usable(B)] == [False, False]

    peer.answered(None)

    assert peer.usable(A)


def test_an_answer_for_a_partition_makes_it_usable_again(peer: RoutedPeer) -> None:
    for failed in (None, A, B):
        peer.failed(failed)
    peer.answered(A)

    assert [peer.usable(A), peer.usable(B)] == [True, False]


def test_it_knows_whether_the_peer_has_answered_anybody_since_a_time(peer: RoutedPeer, clock: ManualClock) -> None:
    began = clock.now
    assert peer.silent_since(began)

    clock.now += 1
    peer.answered(A)

    assert not peer.silent_since(began)
