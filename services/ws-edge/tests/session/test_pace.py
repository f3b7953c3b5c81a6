"""Sockets are opened in line, no faster than the settings say or the machine can."""

import asyncio

import pytest

from testkit.ws_edge.edge import Clock, until
from ws_edge.errors import BusyError
from ws_edge.session.pace import MAX_WAIT_S, Pace, departures


async def test_handshakes_wait_in_line_and_those_that_have_waited_too_long_are_refused() -> None:
    clock = Clock()
    pace, order = Pace(1000, clock), list[int]()

    async def open_one(number: int) -> None:
        if (turn := pace.turn()) is not None:
            await turn
        order.append(number)

    handshakes = [asyncio.create_task(open_one(number)) for number in range(400)]
    await until(lambda: len(order) > 200)
    clock.now += MAX_WAIT_S
    last = asyncio.create_task(open_one(400))
    ends = await asyncio.gather(*handshakes, last, return_exceptions=True)

    opened = len(order) - 1
    assert order == [*range(opened), 400]
    assert 200 < opened < 400
    assert {type(each) for each in ends[opened:400]} == {BusyError}


async def test_a_wave_that_takes_long_to_be_read_is_let_in() -> None:
    """Nothing is opened while thousands of connections are accepted, which says nothing of the time after that."""
    clock = Clock()
    pace = Pace(10_000, clock)

    async def open_one() -> None:
        if (turn := pace.turn()) is not None:
            await turn

    handshakes = [asyncio.create_task(open_one()) for _ in range(6_000)]
    await asyncio.sleep(0)
    clock.now += MAX_WAIT_S / 2
    await asyncio.gather(*handshakes)


async def test_a_machine_that_cannot_keep_the_pace_refuses_whom_it_does_not_reach() -> None:
    clock = Clock()
    pace, refusals = Pace(1000, clock), list[BusyError]()

    async def open_one() -> None:
        try:
            if (turn := pace.turn()) is not None:
                await turn
        except BusyError as error:
            refusals.append(error)
        else:
            clock.now += 0.01

    await asyncio.gather(*(open_one() for _ in range(3_000)))

    assert 2_000 < len(refusals) < 2_500  # the line moves by 100 a second for five seconds
    assert refusals[-1].busy_s > 15


@pytest.mark.parametrize(("per_second", "burst"), [(100, 10), (0.5, 1)])
async def test_a_tenth_of_a_second_of_sockets_is_opened_at_once_and_always_one(per_second: float, burst: int) -> None:
    pace = Pace(per_second, Clock())
    turns = [pace.turn() for _ in range(20)]
    for turn in turns:
        if turn is not None:
            turn.cancel()

    assert turns[: burst + 1].count(None) == turns.count(None) == burst


def test_sockets_leave_as_fast_as_another_edge_opens_them_and_within_the_window() -> None:
    assert departures(4, per_second=2.0, longest_s=60.0) == [0.0, 0.5, 1.0, 1.5]
    assert departures(15_000, per_second=1000.0, longest_s=20.0)[-1] == pytest.approx(15, abs=0.01)
    assert departures(4, per_second=0.1, longest_s=2.0) == [0.0, 0.5, 1.0, 1.5]
    assert departures(0, per_second=1.0, longest_s=1.0) == []
