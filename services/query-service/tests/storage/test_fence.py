"""Which records change a store."""

from hypothesis import given
from hypothesis import strategies as st

from query_service.storage.fence import newest_rows
from query_service.storage.store_keys import HEADER


def value(epoch: int, sequence: int, offset: int = 0) -> bytes:
    return HEADER.pack(epoch, sequence, offset, 0, 0, 0)


def test_a_higher_sequence_wins_and_an_equal_one_does_not() -> None:
    held = [value(1, 5)] * 3
    rows, stale = newest_rows([b"a", b"b", b"c"], [value(1, 4), value(1, 5), value(1, 6)], held)

    assert rows == {b"c": value(1, 6)}
    assert stale == 2


def test_a_higher_epoch_wins_over_any_sequence() -> None:
    rows, _ = newest_rows([b"a"], [value(2, 0)], [value(1, 2**60)])

    assert rows == {b"a": value(2, 0)}


def test_within_a_batch_the_highest_wins_wherever_it_stands() -> None:
    rows, stale = newest_rows([b"a"] * 3, [value(1, 1), value(1, 9), value(1, 3)], [None] * 3)

    assert rows == {b"a": value(1, 9)}
    assert stale == 1


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=30), st.integers(0, 30))
def test_any_replay_of_a_log_gives_the_same_rows(log: list[tuple[int, int]], again_from: int) -> None:
    def apply(fences: list[tuple[int, int]], held: dict[bytes, bytes]) -> None:
        for fence in fences:
            held.update(newest_rows([b"k"], [value(*fence)], [held.get(b"k")])[0])

    once: dict[bytes, bytes] = {}
    apply(log, once)
    twice = dict(once)
    apply(log[again_from:], twice)

    assert twice == once
