"""Rules that all reads of a replica share: bounds, and which values are rows."""

import pytest

from query_service.errors import BoundsError
from query_service.reads.replica_reads import shortfall, wait_until_met
from statecast.query.v1 import query_pb2
from statecast.state.v1.state_pb2 import Position
from testkit.query_service import ManualClock, OpenReplica, put


def at_least(offset: int, epoch: int = 77) -> query_pb2.Bounds:
    return query_pb2.Bounds(at_least=Position(epoch=epoch, offset=offset))


async def test_a_replica_that_has_applied_the_record_answers(open_replica: OpenReplica, clock: ManualClock) -> None:
    host = open_replica()
    host.apply([put("a", 1, 4)], 5)

    assert shortfall(host, at_least(4)) is None
    assert shortfall(host, at_least(5)) is not None


async def test_a_position_of_another_incarnation_can_never_be_met(
    open_replica: OpenReplica, clock: ManualClock
) -> None:
    with pytest.raises(BoundsError, match="another incarnation"):
        await wait_until_met(open_replica(), at_least(0, epoch=1), clock.now + 60, clock)


async def test_a_replica_whose_lag_is_above_the_bound_waits_for_a_new_end(
    open_replica: OpenReplica, clock: ManualClock
) -> None:
    host = open_replica()
    clock.now += 5
    wanted = query_pb2.Bounds(max_lag_ms=100)

    with pytest.raises(BoundsError, match="the lag is 5001 ms, above 100 ms"):
        await wait_until_met(host, wanted, clock.now, clock)

    host.note_end_offset(0, clock.now)

    assert shortfall(host, wanted) is None
