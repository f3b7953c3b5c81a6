"""What failed at a peer lately."""

from query_service.cluster.peer_memory import PeerMemory
from query_service.testing import ManualClock

A, B = ("s", 0), ("s", 1)


def test_a_peer_is_usable_until_it_fails(clock: ManualClock) -> None:
    assert PeerMemory(1.0, clock).usable(A)


def test_a_partition_that_is_not_served_leaves_the_others_usable(clock: ManualClock) -> None:
    memory = PeerMemory(1.0, clock)
    memory.failed(A)

    assert not memory.usable(A)
    assert memory.usable(B)


def test_a_peer_that_does_not_answer_is_usable_for_nothing(clock: ManualClock) -> None:
    memory = PeerMemory(1.0, clock)
    memory.failed(None)

    assert not memory.usable(A)
    assert not memory.usable(B)


def test_after_the_back_off_one_call_tries_a_partition_again_and_the_others_do_not(clock: ManualClock) -> None:
    memory = PeerMemory(1.0, clock)
    memory.failed(A)
    clock.now += 1

    assert [memory.usable(A), memory.usable(A)] == [True, False]


def test_a_peer_that_does_not_answer_stays_unusable_until_it_does(clock: ManualClock) -> None:
    memory = PeerMemory(1.0, clock)
    memory.failed(None)
    clock.now += 100
    assert not memory.usable(A)

    memory.answered(None)

    assert memory.usable(A)


def test_an_answer_for_a_partition_makes_it_usable_again(clock: ManualClock) -> None:
    memory = PeerMemory(1.0, clock)
    memory.failed(None)
    memory.failed(A)
    memory.failed(B)
    memory.answered(A)

    assert [memory.usable(A), memory.usable(B)] == [True, False]


def test_it_knows_whether_the_peer_has_answered_anybody_since_a_time(clock: ManualClock) -> None:
    memory = PeerMemory(1.0, clock)
    began = clock.now
    assert memory.silent_since(began)

    clock.now += 1
    memory.answered(A)

    assert not memory.silent_since(began)
