"""Real instances, as processes, on a real broker."""

import asyncio
import json
import resource
from functools import partial

import grpc
import psutil
import pytest

from statecast.query.v1 import query_service_pb2 as query
from statecast_client import StatecastClient
from testkit.query_instances import Process, Scene

pytestmark = pytest.mark.timeout(180)

GROUPS = [f"order-{number:06d}" for number in range(1, 41)]


async def test_any_instance_answers_any_key_and_says_who_did(scene: Scene) -> None:
    one, other = await scene.serving(2, {group: group.encode() for group in GROUPS}, replicas=1)

    owners = {
        shard.partition: shard.replicas[0].instance
        for shard in (await one.stub.ListShards(query.ListShardsRequest(store="rows"))).shards
    }
    for instance in (one, other):
        for group in GROUPS:
            answer = await instance.read(group)
            assert answer.state.payload == group.encode()
            assert answer.freshness.answered_by == owners[answer.freshness.partition]
            assert answer.freshness.forwarded == (answer.freshness.answered_by != instance.name)
    assert set(owners.values()) == {"query-1", "query-2"}


async def test_the_shard_map_names_all_replicas_and_their_lag(scene: Scene) -> None:
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


async def test_reads_do_not_stop_when_an_instance_is_killed(scene: Scene) -> None:
    one, other = await scene.serving(2, dict.fromkeys(GROUPS, b"row"), replicas=2)
    assert await one.answerers(GROUPS) == {"query-1", "query-2"}

    other.kill()
    for _ in range(10):
        assert await one.answerers(GROUPS) == {"query-1"}
    scene.write({"order-000001": b"after"}, sequence=2)
    changed = await scene.until_newer(one, "order-000001", b"row")

    assert changed.state.payload == b"after"


async def until_members(scene: Scene, count: int, *processes: Process) -> None:
    for process in processes:
        await scene.until(partial(knows, process, count), process)


def knows(process: Process, members: int) -> bool:
    return process.metric("query_service_members") == members


async def test_an_instance_that_is_restarted_costs_no_copy_of_its_partitions(scene: Scene) -> None:
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
        assert (await others[0].read(group)).state.payload == group.encode()
    killed.start()
    await until_members(scene, 3, *others)

    assert [each.log.count('"holding"') for each in others] == opened


async def test_an_instance_that_drains_costs_no_failed_read(scene: Scene) -> None:
    one, other = await scene.serving(2, dict.fromkeys(GROUPS, b"row"), replicas=1)

    other.terminate()
    reads = 0
    while other.running:
        await one.answerers(GROUPS)
        reads += 1

    assert await one.answerers(GROUPS) == {"query-1"}
    assert reads
    assert other.exit_status == 0


async def test_a_new_instance_takes_its_share_without_a_failed_read(scene: Scene) -> None:
    [one] = await scene.serving(1, dict.fromkeys(GROUPS, b"row"), replicas=1)
    scene.launch("query-2", replicas=1)

    async with asyncio.timeout(60):
        while await one.answerers(GROUPS) != {"query-1", "query-2"}:
            pass


async def test_a_killed_instance_goes_on_from_its_disk(scene: Scene) -> None:
    [one] = await scene.serving(1, dict.fromkeys(GROUPS, b"row"), replicas=1)
    before = (await one.read(GROUPS[0])).state.position

    one.kill()
    scene.write({"later": b"row"})
    again = scene.launch("query-1", replicas=1)
    await scene.until_applied(again, len(GROUPS) + 1)

    opened = [json.loads(line) for line in again.log.splitlines() if '"holding"' in line]
    assert sum(each["from_offset"] for each in opened) == len(GROUPS)
    assert (await again.read(GROUPS[0])).state.position == before


async def test_a_wiped_disk_is_rebuilt_and_gives_the_same_answers(scene: Scene) -> None:
    [one] = await scene.serving(1, {group: group.encode() for group in GROUPS}, replicas=1)
    before = [(await one.read(group)).state for group in GROUPS]

    one.kill()
    one.wipe()
    again = scene.launch("query-1", replicas=1)
    await scene.until_applied(again, len(GROUPS))

    assert [(await again.read(group)).state for group in GROUPS] == before


async def test_a_topic_that_is_made_anew_is_read_anew(scene: Scene) -> None:
    [one] = await scene.serving(1, {"old": b"row", "both": b"before"}, replicas=1)
    before = (await one.read("both")).state.position

    scene.make_topic_anew()
    scene.write({"both": b"after"})
    after = await scene.until_newer(one, "both", b"before")

    assert after.state.position.epoch != before.epoch
    assert await one.served("old") == grpc.StatusCode.NOT_FOUND
    assert "directory set aside" in one.log


async def test_poison_replays_and_deletions_do_no_harm(scene: Scene) -> None:
    one = scene.launch("query-1", replicas=1)
    scene.write({"kept": b"one", "deleted": b"one"}, sequence=1)
    scene.write({"kept": b"two"}, sequence=2)
    scene.write({"deleted": None}, sequence=2)
    scene.write_raw(b"kept", b"\xff\xffpoison")
    scene.write_raw(b"\x00broken", b"")
    scene.write({"kept": b"one", "deleted": b"one"}, sequence=1)
    scene.write({"last": b"row"})
    await scene.until_applied(one, 9)

    assert [await one.served(group) for group in ("kept", "deleted")] == [b"two", grpc.StatusCode.NOT_FOUND]
    assert one.log.count("a record is refused") == 2
    assert [one.metric("query_service_records_total", outcome=each) for each in ("applied", "older", "refused")] == [
        5,
        2,
        2,
    ]


async def test_reads_do_not_wait_for_a_peer_that_stands_still_and_come_back_to_it(scene: Scene) -> None:
    patient = {"peer_timeout_ms": 60_000, "call_timeout_ms": 60_000, "max_call_ms": 60_000}
    one, other = await scene.serving(2, dict.fromkeys(GROUPS, b"row"), **patient)
    assert await one.answerers(GROUPS) == {"query-1", "query-2"}
    won_before = one.metric("query_service_hedges_total", outcome="won")

    other.pause()
    answers = await asyncio.gather(*(one.read(group) for group in GROUPS * 3))

    assert {answer.freshness.answered_by for answer in answers} == await one.answerers(GROUPS) == {"query-1"}
    assert one.metric("query_service_hedges_total", outcome="won") > won_before
    assert one.metric("query_service_forwards_total", outcome="unreachable") == 0

    async def both_answer() -> bool:
        return await one.answerers(GROUPS) == {"query-1", "query-2"}

    other.resume()
    await scene.until(both_answer, one)


FULL_BYTES = 100_000
"""Above the size of an instance's log, and below the size of the rows on its disk."""


async def test_a_replica_on_a_full_disk_is_asked_after_the_one_that_does_not_lag(scene: Scene) -> None:
    bounds = {"demoted_lag_ms": 2000, "caught_up_ms": 1000}
    one, other = await scene.serving(2, dict.fromkeys(GROUPS, b"old"), **bounds)
    assert await one.answerers(GROUPS) == {"query-1", "query-2"}

    psutil.Process(other.pid).rlimit(resource.RLIMIT_FSIZE, (FULL_BYTES, FULL_BYTES))
    scene.write({f"filler-{number}": bytes(FULL_BYTES // 2) for number in range(40)})
    scene.write(dict.fromkeys(GROUPS, b"new"), sequence=2)

    async def all_are_new() -> bool:
        return {await one.served(group) for group in GROUPS} == {b"new"}

    async def one_is_listed_first() -> bool:
        shards = (await one.stub.ListShards(query.ListShardsRequest(store="rows"))).shards
        return [shard.replicas[0].instance for shard in shards] == ["query-1"] * 4

    await scene.until(all_are_new, one)
    await scene.until(one_is_listed_first, one)
    assert "cannot store a batch" in other.log
    async with StatecastClient([other.address]) as client:
        read = [await client.get("rows", group) for group in GROUPS]
    assert {(answer.freshness.answered_by, answer.state.payload) for answer in read} == {("query-1", b"new")}


async def test_instances_with_other_settings_are_named(scene: Scene) -> None:
    one, two = scene.launch("query-1", replicas=1), scene.launch("query-2", replicas=2)
    await scene.until_ready(one, two)

    for process, other in ((one, '"query-2": {"REPLICAS": "2"}'), (two, '"query-1": {"REPLICAS": "1"}')):
        await scene.until(partial(differs, process), process)
        assert "settings differ that must be the same at all instances" in process.log
        assert other in process.log


def differs(process: Process) -> bool:
    return process.metric("query_service_settings_differ") == 1
