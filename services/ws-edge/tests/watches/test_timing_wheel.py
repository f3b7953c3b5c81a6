"""The wheel gives out each item once, never early, in the order in which items are due."""

from hypothesis import given
from hypothesis import strategies as st

from ws_edge.watches.timing_wheel import TimingWheel


def test_an_item_is_due_from_the_slot_at_or_after_its_time() -> None:
    wheel: TimingWheel[str] = TimingWheel(0.025, 10.0)
    wheel.add("a", 10.11)

    assert wheel.take(10.124) == []
    assert wheel.take(10.125) == [(405, "a")]
    assert wheel.take(20.0) == []


def test_a_time_that_has_passed_is_due_in_the_next_slot() -> None:
    wheel: TimingWheel[str] = TimingWheel(0.025, 10.0)
    wheel.take(10.0)
    wheel.add("late", 9.0)

    assert wheel.take(10.0) == []
    assert [item for _, item in wheel.take(10.025)] == ["late"]


def test_the_next_slot_starts_at_a_whole_number_of_ticks() -> None:
    wheel: TimingWheel[str] = TimingWheel(0.025, 10.0)

    assert abs(wheel.next_at(10.03) - 10.05) < 1e-9


def test_a_long_pause_costs_no_more_than_the_filled_slots() -> None:
    wheel: TimingWheel[str] = TimingWheel(0.001, 0.0)
    wheel.add("b", 2.0)
    wheel.add("a", 1.0)

    assert [item for _, item in wheel.take(1e9)] == ["a", "b"]


def test_an_item_that_is_added_again_moves_and_a_discarded_one_does_not_come() -> None:
    wheel: TimingWheel[str] = TimingWheel(1.0, 0.0)
    for time in (30.0, 2.0):
        wheel.add("moved", time)
    wheel.add("gone", 3.0)
    wheel.discard("gone")
    wheel.discard("unknown")

    assert wheel.due_at("moved") == 2.0
    assert wheel.take(100.0) == [(2, "moved")]


@given(
    st.lists(st.floats(0, 50, allow_nan=False), max_size=50),
    st.lists(st.floats(0, 60, allow_nan=False), max_size=20).map(sorted),
)
def test_every_item_comes_once_and_not_before_its_time(times: list[float], moments: list[float]) -> None:
    wheel: TimingWheel[int] = TimingWheel(0.025, 0.0)
    for item, time in enumerate(times):
        wheel.add(item, time)
    taken: list[int] = []
    for moment in [*moments, 100.0]:
        batch = [item for _, item in wheel.take(moment)]

        assert all(times[item] <= moment + 1e-6 for item in batch)
        taken += batch

    assert sorted(taken) == list(range(len(times)))
