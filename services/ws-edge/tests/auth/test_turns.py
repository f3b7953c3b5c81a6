"""Who holds the loop long leaves it to others for as long as they need it, and is not slowed down alone."""

import asyncio

import pytest

from testkit.ws_edge.edge import Clock
from ws_edge.auth.turns import ACTIVE_S, BURST_S, SHARE, SHARE_OF_ALL, STEP_S, Turns

STEPS = 50


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Passes when a step of a call takes time, and when one waits."""
    clock, sleep = Clock(), asyncio.sleep

    async def pass_by(seconds: float) -> None:
        clock.now += seconds
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", pass_by)
    return clock


async def steps(clock: Clock, count: int = STEPS) -> str:
    """Is a call that holds the loop for `count` steps."""
    for _ in range(count):
        clock.now += STEP_S
        await asyncio.sleep(0)
    return "done"


def elapsed(clock: Clock, *, since: float) -> float:
    return clock.now - since


async def test_a_customer_gets_its_share_while_another_is_active(clock: Clock) -> None:
    turns, began = Turns(clock), clock.now
    turns.serve("bob", clock.now)
    await turns.take("alice", steps(clock))

    assert elapsed(clock, since=began) == pytest.approx((STEPS * STEP_S - BURST_S) / SHARE, rel=0.05)


async def test_a_customer_alone_does_not_wait(clock: Clock) -> None:
    turns = Turns(clock)
    turns.serve("bob", clock.now)
    clock.now += ACTIVE_S
    began = clock.now
    turns.serve("alice", began)  # its own frames do not count
    await turns.take("alice", steps(clock))

    assert elapsed(clock, since=began) == pytest.approx(STEPS * STEP_S)


def test_all_calls_of_a_customer_stand_in_one_line_and_others_do_not(clock: Clock) -> None:
    turns = Turns(clock)
    for customer in ("alice", "bob"):
        turns.serve(customer, clock.now)
    first, second = turns.pay("alice", BURST_S + STEP_S), turns.pay("alice", STEP_S)

    assert second == pytest.approx(first + STEP_S / SHARE)
    assert turns.pay("bob", STEP_S) == pytest.approx(2 * STEP_S / SHARE_OF_ALL + STEP_S / SHARE_OF_ALL)


async def test_a_cancelled_call_ends_as_it_would_alone(clock: Clock) -> None:
    ends = list[str]()

    async def call() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ends.append("ended")

    task = asyncio.create_task(Turns(clock).take("alice", call()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert ends == ["ended"]


async def test_a_call_that_is_cancelled_while_it_waits_is_over(clock: Clock) -> None:
    turns = Turns(clock)
    turns.serve("bob", clock.now)
    turns.pay("alice", 1.0)
    task = asyncio.create_task(turns.take("alice", steps(clock)))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_errors_of_a_call_reach_its_caller(clock: Clock) -> None:
    async def call() -> None:
        await asyncio.sleep(0)
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        await Turns(clock).take("alice", call())
