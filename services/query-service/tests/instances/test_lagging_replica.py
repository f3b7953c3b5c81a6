"""A replica on a disk that refuses writes, between real instances."""

import resource
from typing import TYPE_CHECKING

import psutil
import pytest

from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1 import state_pb2
from statecast_client import StatecastClient

if TYPE_CHECKING:
    from instances.conftest import Scene

pytestmark = pytest.mark.timeout(180)

GROUPS = [f"order-{number:06d}" for number in range(1, 41)]
FULL_BYTES = 100_000
"""Above the size of an instance's log, and below the size of the rows on its disk."""


async def test_a_replica_that_lags_is_asked_after_the_one_that_does_not(scene: "Scene") -> None:
    bounds = {"demoted_lag_ms": 2000, "caught_up_ms": 1000}
    one, other = scene.launch("query-1", **bounds), scene.launch("query-2", **bounds)
    scene.write(dict.fromkeys(GROUPS, b"old"))
    await scene.until_ready(one, other)
    await scene.until_applied(one, len(GROUPS))
    await scene.until_applied(other, len(GROUPS))

    async def answers(group: str) -> query.GetStateResponse:
        return await one.stub.GetState(query.GetStateRequest(store="rows", key=state_pb2.StateKey(group=group)))

    assert {(await answers(group)).freshness.answered_by for group in GROUPS} == {"query-1", "query-2"}

    psutil.Process(other.pid).rlimit(resource.RLIMIT_FSIZE, (FULL_BYTES, FULL_BYTES))
    scene.write({f"filler-{number}": bytes(FULL_BYTES // 2) for number in range(40)})
    scene.write(dict.fromkeys(GROUPS, b"new"), sequence=2)

    async def all_are_new() -> bool:
        return all([(await answers(group)).state.payload == b"new" for group in GROUPS])

    async def one_is_listed_first() -> bool:
        shards = (await one.stub.ListShards(query.ListShardsRequest(store="rows"))).shards
        return [shard.replicas[0].instance for shard in shards] == ["query-1"] * 4

    await scene.until(all_are_new, one)
    await scene.until(one_is_listed_first, one)
    assert "cannot store a batch" in other.log
    async with StatecastClient([other.address]) as client:
        read = [await client.get("rows", group) for group in GROUPS]

    assert {answer.freshness.answered_by for answer in read} == {"query-1"}
    assert {answer.state.payload for answer in read} == {b"new"}
