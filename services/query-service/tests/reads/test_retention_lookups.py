"""Answers about rows that a store retains for a limited time."""

import time

import pytest

from query_service.cluster.view import View
from query_service.errors import AbsentError
from query_service.reads.local import LocalReads
from query_service.reads.request_checks import Limits
from statecast.partitioning import partition_of
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1 import state_pb2
from testkit.query_service import FakeRecord, ManualClock, MessageReads

STORE = "orders-by-key"
KEY = state_pb2.StateKey(group="customer-1")
REPLICA = (STORE, partition_of("customer-1", 4))


@pytest.fixture
def store_fields() -> dict[str, object]:
    return {"format": "plain", "message": "json", "retain": "1h"}


@pytest.fixture
def lookup(serving_view: View, wall: ManualClock) -> MessageReads:
    """Lookups in a store with one booking, at offset 0."""
    record = FakeRecord(b"customer-1", b"{}", 0, record_ms=int(wall.now * 1000))
    serving_view.replicas[REPLICA].apply([record], 1)
    return MessageReads(LocalReads(serving_view, Limits(10, 10, 10, 0, 1 << 20), time.monotonic))


async def poll(lookup: MessageReads, offset: int) -> query.BatchGetStatesResponse:
    """Asks for changes after the record at an offset."""
    request = query.BatchGetStatesRequest(store=STORE)
    request.keys.add(key=KEY, after=state_pb2.Position(epoch=77, offset=offset))
    return await lookup.batch(request, time.monotonic() + 10)


async def test_a_row_that_is_too_old_is_not_answered(lookup: MessageReads, wall: ManualClock) -> None:
    request = query.GetStateRequest(store=STORE, key=KEY)
    assert (await lookup.get(request, time.monotonic() + 10)).state.payload == b"{}"
    wall.now += 3601
    with pytest.raises(AbsentError):
        await lookup.get(request, time.monotonic() + 10)
    page = await lookup.scan(query.ScanStatesRequest(store=STORE, group="customer-1"), time.monotonic() + 10)

    assert not page.states


async def test_who_polls_is_told_once_and_with_the_next_record_of_the_partition(
    lookup: MessageReads, serving_view: View, wall: ManualClock
) -> None:
    replica = serving_view.replicas[REPLICA]
    wall.now += 3601
    replica.run_maintenance(0, 0, 10)
    assert not (await poll(lookup, 0)).results
    replica.apply([FakeRecord(b"another", b"{}", 1, record_ms=int(wall.now * 1000))], 2)
    replica.run_maintenance(0, 0, 10)
    (result,) = (await poll(lookup, 0)).results

    assert result.absence.position.offset == 1
    assert not (await poll(lookup, result.absence.position.offset)).results


async def test_a_range_lacks_rows_that_are_too_old_once_it_is_answered_whole(
    lookup: MessageReads, serving_view: View, wall: ManualClock
) -> None:
    wall.now += 3000
    younger = FakeRecord(b"customer-1\0s\0younger", b"{}", 1, record_ms=int(wall.now * 1000))
    serving_view.replicas[REPLICA].apply([younger], 2)
    both, wall.now = await range_of(lookup), wall.now + 601
    left = await range_of(lookup)

    assert [state.key.member for state in both.states] == ["", "younger"]
    assert [state.key.member for state in left.states] == ["younger"]
    assert left.whole


async def range_of(lookup: MessageReads) -> query_pb2.RangeResult:
    """Returns the range of the customer's group, in the answer to a first query."""
    request = query.BatchGetStatesRequest(store=STORE, ranges=[query_pb2.RangeQuery(group="customer-1")])
    (result,) = (await lookup.batch(request, time.monotonic() + 10)).ranges
    return result
