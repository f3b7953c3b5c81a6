"""Scans of whole stores, on real instances."""

import pytest

from statecast.query.v1 import query_service_pb2 as query
from testkit.query_instances import Process, Scene

pytestmark = pytest.mark.timeout(180)

GROUPS = [f"order-{number:06d}" for number in range(1, 101)]


async def scan(process: Process, **fields: object) -> tuple[list[str], set[int]]:
    """Reads to the end; returns the groups and the partitions that they came from."""
    request = query.ScanStatesRequest(store="rows", page_size=7, **fields)  # type: ignore[arg-type]
    groups: list[str] = []
    while True:
        answer = await process.stub.ScanStates(request, timeout=10)
        groups += [state.key.group for state in answer.states]
        if not answer.next_page_token:
            return groups, {each.partition for each in answer.shards}
        request.page_token = answer.next_page_token


async def test_any_instance_reads_the_whole_store_and_all_together_read_their_own_rows_once(scene: Scene) -> None:
    instances = await scene.serving(2, dict.fromkeys(GROUPS, b"row"), replicas=1)
    for instance in instances:
        assert await scan(instance) == (GROUPS, {0, 1, 2, 3})
        assert await scan(instance, reverse=True) == (GROUPS[::-1], {0, 1, 2, 3})

    own = [await scan(instance, local_only=True) for instance in instances]

    assert sorted(own[0][0] + own[1][0]) == GROUPS
    assert own[0][1] | own[1][1] == {0, 1, 2, 3}
    assert not own[0][1] & own[1][1]


async def test_an_instances_own_scan_is_whole_when_another_instance_joins_in_the_middle(scene: Scene) -> None:
    [one] = await scene.serving(1, dict.fromkeys(GROUPS, b"row"))
    request = query.ScanStatesRequest(store="rows", page_size=7, local_only=True)
    first = await one.stub.ScanStates(request, timeout=10)
    assert {each.partition for each in first.shards} == {0, 1, 2, 3}

    other = scene.launch("query-2")
    await scene.until_ready(other)

    async def other_owns_some() -> bool:
        return 0 < len((await scan(one, local_only=True))[1]) < 4

    await scene.until(other_owns_some, one)
    rest, partitions = await scan(one, local_only=True, page_token=first.next_page_token)

    assert [state.key.group for state in first.states] + rest == GROUPS
    assert partitions == {0, 1, 2, 3}
