"""When a call must have been answered."""

import pytest

from query_service.serving.deadlines import deadline_of


class Call:
    """A call with so many seconds left."""

    def __init__(self, left: float | None) -> None:
        self._left = left

    def time_remaining(self) -> float | None:
        return self._left


@pytest.mark.parametrize(("left", "deadline"), [(None, 105.0), (10.0, 109.9), (0.1, 100.09), (-1.0, 99.0)])
def test_the_deadline_lies_a_little_before_the_callers(left: float | None, deadline: float) -> None:
    assert deadline_of(Call(left), 100.0, 5.0) == pytest.approx(deadline)


@pytest.mark.parametrize(("left", "deadline"), [(None, 103.0), (3600.0, 103.0), (2.0, 101.9)])
def test_no_call_is_worked_on_for_longer_than_the_most(left: float | None, deadline: float) -> None:
    assert deadline_of(Call(left), 100.0, 5.0, 3.0) == pytest.approx(deadline)
