"""What failed at a peer lately."""

from query_service.peer_memory import PeerMemory
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


def test_after_the_back_off_one_call_tries_again_and_the_others_do_not(clock: ManualClock) -> None:
    memory = PeerMemory(1.0, clock)
    memory.failed(None)
    clock.now += 1

    assert [memory.usable(A), memory.usable(A), memory.usable(B)] == [True, False, False]


def test_an_answer_makes_it_usable_again(clock: ManualClock) -> None:
    memory = PeerMemory(1.0, clock)
    memory.failed(None)
    memory.failed(A)
    memory.answered(A)

    assert memory.usable(A)
