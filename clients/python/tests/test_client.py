"""The client against fake instances: which one it asks first, and which one next."""

import asyncio
import os
from operator import attrgetter
from typing import TYPE_CHECKING

import grpc
import pytest

from statecast.query.v1 import query_pb2
from statecast.state.v1 import state_pb2
from statecast_client import InvalidError, OverloadedError, StatecastClient, UnavailableError, UnknownStoreError
from statecast_client.router import RETRIED, Router
from testkit.relay import Relay
from testkit.waiting import scaled

if TYPE_CHECKING:
    from conftest import Cluster

GROUPS = [f"order-{number}" for number in range(12)]


async def test_each_key_is_asked_at_its_owner(cluster: "Cluster") -> None:
    for group in GROUPS:
        answer = await cluster.client.get("rows", group)
        assert answer.freshness.answered_by == cluster.owner(group).address

    assert all(len(instance.gets) > 0 for instance in cluster.instances)
    assert sum(instance.listings for instance in cluster.instances) == 1


async def test_a_key_may_be_a_group_its_parts_or_a_message(cluster: "Cluster") -> None:
    key = state_pb2.StateKey(group="g", sort="1", member="m")

    assert (await cluster.client.get("rows", ("g", "1", "m"))).state.key == key
    assert (await cluster.client.get("rows", key)).state.key == key


@pytest.mark.parametrize("code", sorted(RETRIED, key=attrgetter("name")))
async def test_another_instance_answers_when_the_owner_fails(cluster: "Cluster", code: grpc.StatusCode) -> None:
    await cluster.client.get("rows", "x")
    owner = cluster.owner("x")
    owner.failure = code
    answer = await cluster.client.get("rows", "x")
    await cluster.client.get("rows", "x")

    assert answer.freshness.answered_by == cluster.other("x").address
    assert len(owner.gets) == 2


async def test_another_instance_answers_when_the_owner_is_silent_for_half_of_the_time(cluster: "Cluster") -> None:
    async with StatecastClient([each.address for each in cluster.instances], timeout_s=scaled(1)) as client:
        await client.get("rows", "x")
        cluster.owner("x").gate.clear()

        assert (await client.get("rows", "x")).freshness.answered_by == cluster.other("x").address


async def test_an_instance_that_is_far_away_is_connected_to_at_the_first_try(cluster: "Cluster") -> None:
    async with Relay(cluster.instances[0].address, delay_s=0.5) as relay:
        router = Router([relay.address])
        listing = await router.list_shards([scaled(10)])
        await router.close()

    assert listing.stores


async def test_the_error_after_one_retry_names_the_silent_instance(cluster: "Cluster") -> None:
    for instance in cluster.instances:
        instance.failure = grpc.StatusCode.UNAVAILABLE

    with pytest.raises(UnavailableError, match="does not answer: store: told to fail"):
        await cluster.client.get("rows", "x")

    assert sum(len(instance.gets) for instance in cluster.instances) <= 2


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (grpc.StatusCode.NOT_FOUND, UnknownStoreError),
        (grpc.StatusCode.INVALID_ARGUMENT, InvalidError),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, OverloadedError),
    ],
)
async def test_a_refusal_is_named_and_not_retried(
    cluster: "Cluster", code: grpc.StatusCode, error: type[Exception]
) -> None:
    await cluster.client.get("rows", "x")
    cluster.owner("x").failure = code

    with pytest.raises(error):
        await cluster.client.get("rows", "x")

    assert not cluster.other("x").gets


async def test_a_failure_makes_it_read_the_shard_map_again(cluster: "Cluster") -> None:
    await cluster.client.get("rows", "x")
    cluster.owner("x").failure = grpc.StatusCode.UNAVAILABLE
    await cluster.client.get("rows", "x")
    async with asyncio.timeout(10):
        while cluster.other("x").listings == 0:  # noqa: ASYNC110  the fake tells nobody
            await asyncio.sleep(0.01)


async def test_a_shard_map_that_is_known_is_not_sent_again_and_another_one_is(cluster: "Cluster") -> None:
    one, other = cluster.instances
    async with StatecastClient([one.address], timeout_s=10, refresh_s=0) as client:
        async with asyncio.timeout(10):
            while not one.unchanged_listings + other.unchanged_listings:
                await client.get("rows", "x")
        before = (await client.get("rows", "x")).freshness.answered_by
        one.peers = other.peers = [each for each in cluster.instances if each.address != before]
        async with asyncio.timeout(10):
            while (await client.get("rows", "x")).freshness.answered_by == before:
                pass

    assert before == cluster.owner("x").address


async def test_connections_to_instances_that_have_left_are_closed(cluster: "Cluster") -> None:
    one, other = cluster.instances
    leaving = type(one)()
    async with (
        Relay(other.address) as relay,
        StatecastClient([one.address], timeout_s=scaled(5), refresh_s=0) as client,
        asyncio.timeout(scaled(20)),
    ):
        leaving.address = relay.address
        one.peers = other.peers = [leaving]
        while not relay.connections:
            await client.get("rows", "x")
        one.peers = other.peers = [one]
        while relay.connections:
            await client.get("rows", "x")
            await asyncio.sleep(0.01)


async def test_a_get_under_way_fails_when_its_client_is_closed(cluster: "Cluster") -> None:
    owner = cluster.owner("x")
    await cluster.client.get("rows", "x")
    owner.gate.clear()
    gets = [asyncio.create_task(cluster.client.get("rows", key)) for key in ("x", ("x", "1", "m"))]
    async with asyncio.timeout(scaled(10)):
        while not owner.batches:  # noqa: ASYNC110  the fake tells nobody
            await asyncio.sleep(0.01)
        await cluster.client.close()
        owner.gate.set()
        for get in gets:
            with pytest.raises(UnavailableError, match="closed"):
                await get


async def test_a_batch_takes_no_longer_than_its_time_when_no_shard_map_comes(cluster: "Cluster") -> None:
    for instance in cluster.instances:
        instance.gate.clear()
    async with StatecastClient([cluster.instances[0].address], timeout_s=scaled(2)) as client:
        async with asyncio.timeout(scaled(3.5)):
            with pytest.raises(UnavailableError):
                await client.batch_get("rows", GROUPS)


async def test_without_a_shard_map_any_instance_is_asked(cluster: "Cluster") -> None:
    for instance in cluster.instances:
        instance.peers = ()
    for group in GROUPS:
        assert (await cluster.client.get("rows", group)).freshness.answered_by == cluster.instances[0].address


async def test_a_batch_is_one_call_per_owner_in_the_order_of_its_keys(cluster: "Cluster") -> None:
    results = await cluster.client.batch_get("rows", GROUPS)

    assert [result.state.key.group for result in results] == GROUPS
    assert [result.index for result in results] == list(range(len(GROUPS)))
    assert [len(instance.batches) for instance in cluster.instances] == [1, 1]


async def test_many_keys_of_the_same_owner_are_several_calls(cluster: "Cluster") -> None:
    results = await cluster.client.batch_get("rows", [("x", "1", str(number)) for number in range(1001)])

    assert [result.index for result in results] == list(range(1001))
    assert [len(batch.keys) for batch in cluster.owner("x").batches] == [1000, 1]


@pytest.mark.parametrize("status", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED])
async def test_keys_of_a_shard_that_fails_have_its_error_and_the_others_their_value(
    cluster: "Cluster", status: grpc.StatusCode
) -> None:
    lost = cluster.instances[0]
    for instance in cluster.instances:
        instance.refusals = {0: status, 2: status}
    results = await cluster.client.batch_get("rows", GROUPS)
    failed = {index for index, group in enumerate(GROUPS) if cluster.owner(group) is lost}

    assert 0 < len(failed) < len(GROUPS)
    assert [result.index for result in results] == list(range(len(GROUPS)))
    assert {result.index: result.error.code for result in results if result.HasField("error")} == dict.fromkeys(
        failed, status.value[0]
    )
    assert all("told to fail" in results[index].error.message for index in failed)


async def test_a_batch_whose_calls_all_fail_raises_their_error(cluster: "Cluster") -> None:
    with pytest.raises(UnknownStoreError, match="there is no `other`"):
        await cluster.client.batch_get("other", GROUPS)


async def test_a_key_that_is_not_unicode_is_refused_before_anybody_is_asked(cluster: "Cluster") -> None:
    client, text = cluster.client, os.fsdecode(b"order-\xff")
    for _ in range(2):  # without the shard map and with it
        with pytest.raises(InvalidError, match=r"order-.*is not Unicode"):
            await client.get("rows", text)
        with pytest.raises(InvalidError, match="is not Unicode"):
            await client.batch_get("rows", ["x", text])
        with pytest.raises(InvalidError, match="is not Unicode"):
            client.watch("rows", [("x", text, "m")])
        with pytest.raises(InvalidError, match="is not Unicode"):
            await anext(client.scan("rows", "x", sort_from=text))
        await client.shards()

    assert not any(instance.batches or instance.scans for instance in cluster.instances)


async def test_the_position_of_the_caller_goes_with_its_key(cluster: "Cluster") -> None:
    position = state_pb2.Position(epoch=1, offset=5)
    await cluster.client.batch_get("rows", ["x", ("x", "1", "m")], after={1: position})
    [request] = cluster.owner("x").batches

    assert not request.keys[0].HasField("after")
    assert request.keys[1].after == position
    assert request.keys[1].key == state_pb2.StateKey(group="x", sort="1", member="m")


async def test_a_scan_goes_on_to_its_last_page(cluster: "Cluster") -> None:
    rows = [state.key.group async for state in cluster.client.scan("rows", "g", sort_prefix="2026")]

    assert rows == ["g0", "g1", "g2"]
    assert [scan.sort_prefix for scan in cluster.owner("g").scans] == ["2026"] * 3


async def test_a_scan_takes_a_window_of_many_groups(cluster: "Cluster") -> None:
    await anext(cluster.client.scan("rows", group_from="a", group_to="f", sort_from="2026-01", sort_to="2026-02"))
    [scan] = [scan for instance in cluster.instances for scan in instance.scans]

    assert (scan.group, scan.group_from, scan.group_to) == ("", "a", "f")
    assert (scan.sort_from, scan.sort_to) == ("2026-01", "2026-02")


async def test_a_local_scan_asks_the_first_address_and_nobody_else(cluster: "Cluster") -> None:
    assert len([state async for state in cluster.client.scan("rows", local_only=True)]) == 3
    assert len(cluster.instances[0].scans) == 3
    cluster.instances[0].failure = grpc.StatusCode.UNAVAILABLE

    with pytest.raises(UnavailableError):
        await anext(cluster.client.scan("rows", local_only=True))

    assert cluster.instances[1].scans == []


async def test_the_shard_map_can_be_read(cluster: "Cluster") -> None:
    listing = await cluster.client.shards()

    assert [shard.partition for shard in listing.shards] == [0, 1, 2, 3]
    assert listing.stores == [query_pb2.Store.FromString(listing.stores[0].SerializeToString())]


def test_no_address_is_refused() -> None:
    with pytest.raises(InvalidError, match="addresses"):
        StatecastClient([])
