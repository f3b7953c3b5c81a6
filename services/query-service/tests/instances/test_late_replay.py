"""A processor replays its records of before a long pause."""

import pytest

from statecast.partitioning import partition_of
from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1 import state_pb2
from testkit.query_instances import Process, Scene
from testkit.topics import publish_checkpointed

pytestmark = pytest.mark.timeout(180)

REPLAYED, CHECKPOINTED = "alice", "carol"
"""Customers with groups in two partitions."""


def old(group: str) -> str:
    return f"{group}\0001\0order"


def new(group: str) -> str:
    return f"{group}\0002\0order"


async def sorts(process: Process, group: str) -> list[str]:
    """Returns the sort values under which the order stands in a group."""
    answer = await process.stub.ScanStates(query.ScanStatesRequest(store="rows", group=group), timeout=10)
    return [state.key.sort for state in answer.states]


async def is_forgotten(process: Process, group: str) -> bool:
    """Returns whether the deletion of the order under its first sort value is no longer known."""
    request = query.BatchGetStatesRequest(store="rows")
    request.keys.add(key=state_pb2.StateKey(group=group, sort="1", member="order"))
    (result,) = (await process.stub.BatchGetStates(request, timeout=10)).results
    return not result.absence.deleted


async def test_an_order_that_moved_is_never_shown_where_it_was(kafka: str, scene: Scene) -> None:
    one = scene.launch("query-1", deletions_s=1)
    for group in (REPLAYED, CHECKPOINTED):
        scene.write({old(group): b"old"}, sequence=1)
        scene.write({old(group): None, new(group): b"new"}, sequence=2)
    await scene.until_applied(one, 6)
    publish_checkpointed(kafka, scene.topic, partition_of(CHECKPOINTED, 4), 100)
    await scene.until(lambda: is_forgotten(one, CHECKPOINTED), one)
    scene.write({old(REPLAYED): b"old"}, sequence=1)
    await scene.until_applied(one, 7)

    assert await sorts(one, REPLAYED) == ["2"]
