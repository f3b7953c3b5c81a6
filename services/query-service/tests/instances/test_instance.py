"""Real instances, as processes, on a real broker."""

import asyncio
import json
from functools import partial
from typing import TYPE_CHECKING

import grpc
import pytest

from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1 import state_pb2

if TYPE_CHECKING:
    from instances.conftest import Process, Scene

pytestmark = pytest.mark.timeout(180)

GROUPS = [f"order-{number:06d}" for number in range(1, 41)]


def get(group: str) -> query.GetStateRequest:
    return query.GetStateRequest(store="rows", key=state_pb2.StateKey(group=group))


async def test_any_instance_answers_any_key_and_says_who_did(scene: "Scene") -> None:
    one, other = scene.launch("query-1", replicas=1), scene.launch("query-2", replicas=1)
    scene.write({group: group.encode() for group in GROUPS})
    await scene.until_ready(one, other)
    await scene.until_applied(one, len(GROUPS))
    owners = {
        shard.partition: shard.replicas[0].instance
        for shard in (await one.stub.ListShards(query.ListShardsRequest(store="rows"))).shards
    }
    for instance in (one, other):
        for group in GROUPS:
            answer = await instance.stub.GetState(get(group))

            assert answer.state.payload == group.encode()
            assert answer.freshness.answered_by == owners[answer.freshness.partition]
            assert answer.freshness.forwarded == (answer.freshness.answered_by != instance.name)

    assert set(owners.values()) == {"query-1", "query-2"}


async def test_the_shard_map_names_all_replicas_and_their_lag(scene: "Scene") -> None:
    one, other = scene.launch("query-1", replicas=2), scene.launch("query-2", replicas=2)
    await scene.until_ready(one, other)

    async def one_knows_that_both_serve() -> bool:  # it asks its peers about once a second
        answer = await one.stub.ListShards(query.ListShardsRequest())
        return all([replica.serving for replica in shard.replicas] == [True, True] for shard in answer.shards)

    await scene.until(one_knows_that_both_serve, one)
    answer = await one.stub.ListShards(query.ListShardsRequest())

    assert [(store.store, store.partitions) for store in answer.stores] == [("rows", 4)]
    assert [shard.partition for shard in answer.shards] == [0, 1, 2, 3]
    for shard in answer.shards:
        assert [replica.rank for replica in shard.replicas] == [1, 2]
        assert {replica.address for replica in shard.replicas} == {one.address, other.address}
        assert all(replica.lag_records == 0 for replica in shard.replicas)


async def test_reads_do_not_stop_when_an_instance_is_killed(scene: "Scene") -> None:
    one, other = scene.launch("query-1", replicas=2), scene.launch("query-2", replicas=2)
    scene.write(dict.fromkeys(GROUPS, b"row"))
    await scene.until_ready(one, other)
    await scene.until_applied(one, len(GROUPS))
    await scene.until_applied(other, len(GROUPS))
    instances = {(await one.stub.GetState(get(group))).freshness.answered_by for group in GROUPS}
    assert instances == {"query-1", "query-2"}

    other.kill()
    for _ in range(10):
        for group in GROUPS:
            answer = await one.stub.GetState(get(group), timeout=5)
            assert answer.freshness.answered_by == "query-1"
    scene.write({"order-000001": b"after"}, sequence=2)
    changed = await scene.until_newer(one, "order-000001", b"row")

    assert changed.state.payload == b"after"


async def until_members(scene: "Scene", count: int, *processes: "Process") -> None:
    for process in processes:
        await scene.until(partial(knows, process, count), process)


def knows(process: "Process", members: int) -> bool:
    return process.metric("query_service_members") == members


async def test_an_instance_that_is_restarted_costs_no_copy_of_its_partitions(scene: "Scene") -> None:
    instances = [scene.launch(f"query-{number}", replicas=2, zone=f"zone-{number}") for number in (1, 2, 3)]
    scene.write({group: group.encode() for group in GROUPS})
    await scene.until_ready(*instances)
    await until_members(scene, 3, *instances)
    for instance in instances:
        await scene.until_applied(instance, len(GROUPS))
    *others, killed = instances
    opened = [each.log.count('"holding"') for each in others]

    killed.kill()
    await until_members(scene, 2, *others)
    for group in GROUPS:
        assert (await others[0].stub.GetState(get(group), timeout=5)).state.payload == group.encode()
    killed.start()
    await until_members(scene, 3, *others)

    assert [each.log.count('"holding"') for each in others] == opened


async def test_an_instance_that_drains_costs_no_failed_read(scene: "Scene") -> None:
    one, other = scene.launch("query-1", replicas=1), scene.launch("query-2", replicas=1)
    scene.write(dict.fromkeys(GROUPS, b"row"))
    await scene.until_ready(one, other)
    await scene.until_applied(one, len(GROUPS))
    other.terminate()
    reads = 0
    while other.running:
        for group in GROUPS:
            await one.stub.GetState(get(group), timeout=5)
            reads += 1
    for group in GROUPS:
        assert (await one.stub.GetState(get(group), timeout=5)).freshness.answered_by == "query-1"

    assert reads
    assert other.exit_status == 0


async def test_a_new_instance_takes_its_share_without_a_failed_read(scene: "Scene") -> None:
    one = scene.launch("query-1", replicas=1)
    scene.write(dict.fromkeys(GROUPS, b"row"))
    await scene.until_ready(one)
    await scene.until_applied(one, len(GROUPS))
    scene.launch("query-2", replicas=1)
    instances: set[str] = set()
    async with asyncio.timeout(60):
        while instances != {"query-1", "query-2"}:
            instances = {(await one.stub.GetState(get(group), timeout=5)).freshness.answered_by for group in GROUPS}

    assert instances == {"query-1", "query-2"}


async def test_a_killed_instance_goes_on_from_its_disk(scene: "Scene") -> None:
    one = scene.launch("query-1", replicas=1)
    scene.write(dict.fromkeys(GROUPS, b"row"))
    await scene.until_applied(one, len(GROUPS))
    before = (await one.stub.GetState(get(GROUPS[0]))).state.position
    one.kill()
    scene.write({"later": b"row"})
    again = scene.launch("query-1", replicas=1)
    await scene.until_applied(again, len(GROUPS) + 1)
    opened = [json.loads(line) for line in again.log.splitlines() if '"holding"' in line]

    assert sum(each["from_offset"] for each in opened) == len(GROUPS)
    assert (await again.stub.GetState(get(GROUPS[0]))).state.position == before


async def test_a_wiped_disk_is_rebuilt_and_gives_the_same_answers(scene: "Scene") -> None:
    one = scene.launch("query-1", replicas=1)
    scene.write({group: group.encode() for group in GROUPS})
    await scene.until_applied(one, len(GROUPS))
    before = [(await one.stub.GetState(get(group))).state for group in GROUPS]
    one.kill()
    one.wipe()
    again = scene.launch("query-1", replicas=1)
    await scene.until_applied(again, len(GROUPS))

    assert [(await again.stub.GetState(get(group))).state for group in GROUPS] == before


async def test_a_topic_that_is_made_anew_is_read_anew(scene: "Scene") -> None:
    one = scene.launch("query-1", replicas=1)
    scene.write({"old": b"row", "both": b"before"})
    await scene.until_applied(one, 2)
    before = (await one.stub.GetState(get("both"))).state.position
    scene.make_topic_anew()
    scene.write({"both": b"after"})
    after = await scene.until_newer(one, "both", b"before")

    assert after.state.position.epoch != before.epoch
    with pytest.raises(grpc.aio.AioRpcError) as absent:
        await one.stub.GetState(get("old"))
    assert absent.value.code() == grpc.StatusCode.NOT_FOUND
    assert "directory set aside" in one.log


async def test_poison_replays_and_deletions_do_no_harm(scene: "Scene") -> None:
    one = scene.launch("query-1", replicas=1)
    scene.write({"kept": b"one", "deleted": b"one"}, sequence=1)
    scene.write({"kept": b"two"}, sequence=2)
    scene.write({"deleted": None}, sequence=2)
    scene.write_raw(b"kept", b"\xff\xffpoison")
    scene.write_raw(b"\x00broken", b"")
    scene.write({"kept": b"one", "deleted": b"one"}, sequence=1)
    scene.write({"last": b"row"})
    await scene.until_applied(one, 9)

    assert (await one.stub.GetState(get("kept"))).state.payload == b"two"
    with pytest.raises(grpc.aio.AioRpcError) as absent:
        await one.stub.GetState(get("deleted"))
    assert absent.value.code() == grpc.StatusCode.NOT_FOUND
    assert one.log.count("a record is refused") == 2
    assert [one.metric("query_service_records_total", outcome=each) for each in ("applied", "older", "refused")] == [
        5,
        2,
        2,
    ]
