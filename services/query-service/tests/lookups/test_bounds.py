"""Answers are held back until they are fresh enough."""

import asyncio
from collections.abc import Callable

import pytest

from query_service.errors import BoundsError
from query_service.lookups import bounds
from query_service.storage.partition_host import PartitionHost
from query_service.testing import ManualClock, put
from statecast.query.v1 import query_pb2
from statecast.state.v1 import state_pb2

OpenHost = Callable[..., PartitionHost]


def at_least(offset: int, epoch: int = 77) -> query_pb2.Bounds:
    return query_pb2.Bounds(at_least=state_pb2.Position(epoch=epoch, offset=offset))


async def test_a_replica_that_has_applied_the_record_answers(open_host: OpenHost, clock: ManualClock) -> None:
    host = open_host()
    host.apply([put("a", 1, 4)], 5)

    assert bounds.met(host, at_least(4))
    assert not bounds.met(host, at_least(5))


async def test_a_call_waits_until_the_record_is_applied(open_host: OpenHost, clock: ManualClock) -> None:
    host = open_host()
    waiting = asyncio.create_task(bounds.wait_until_met(host, at_least(4), clock.now + 60, clock))
    await asyncio.sleep(0)
    host.apply([put("a", 1, 4)], 5)
    await asyncio.wait_for(waiting, 5)

    assert waiting.done()


async def test_at_the_deadline_it_says_how_far_the_replica_is(open_host: OpenHost, clock: ManualClock) -> None:
    host = open_host()

    with pytest.raises(BoundsError, match="applied through offset -1, not 4"):
        await bounds.wait_until_met(host, at_least(4), clock.now, clock)


async def test_a_position_of_another_incarnation_can_never_be_met(open_host: OpenHost, clock: ManualClock) -> None:
    with pytest.raises(BoundsError, match="another incarnation"):
        await bounds.wait_until_met(open_host(), at_least(0, epoch=1), clock.now + 60, clock)


async def test_a_replica_whose_lag_is_above_the_bound_waits_for_a_new_end(
    open_host: OpenHost, clock: ManualClock
) -> None:
    host = open_host()
    clock.now += 5
    wanted = query_pb2.Bounds(max_lag_ms=100)

    with pytest.raises(BoundsError, match="the lag is 5001 ms, above 100 ms"):
        await bounds.wait_until_met(host, wanted, clock.now, clock)

    host.saw_end(0, clock.now)

    assert bounds.met(host, wanted)
