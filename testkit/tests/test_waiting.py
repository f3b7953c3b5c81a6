"""Waiting by polling."""

import pytest

from testkit.waiting import eventually, wait_until, wait_until_async


def test_an_attempt_is_repeated_until_it_raises_no_assertion_error() -> None:
    numbers = iter(range(5))

    def attempt() -> int:
        number = next(numbers)
        assert number == 3
        return number

    assert eventually(attempt) == 3


def test_the_last_assertion_error_is_raised_at_the_time_out() -> None:
    def attempt() -> None:
        raise AssertionError("never")

    with pytest.raises(AssertionError, match="never"):
        eventually(attempt, timeout_s=0)


def test_a_condition_is_awaited() -> None:
    numbers = iter(range(5))

    wait_until(lambda: next(numbers) == 3, "three comes", interval_s=0)

    assert next(numbers) == 4


def test_a_condition_that_stays_false_fails_with_the_explanation() -> None:
    with pytest.raises(AssertionError, match="not within 0 s: it got as far as 2"):
        wait_until(lambda: False, lambda: "it got as far as 2", timeout_s=0)


async def test_a_condition_may_be_a_coroutine() -> None:
    numbers = iter(range(5))

    async def condition() -> bool:
        return next(numbers) == 3

    await wait_until_async(condition, "three comes", interval_s=0)

    assert next(numbers) == 4
    with pytest.raises(AssertionError, match="never"):
        await wait_until_async(lambda: False, "never", timeout_s=0)
