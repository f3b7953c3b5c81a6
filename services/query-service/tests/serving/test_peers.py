"""The connections to the other instances."""

import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest

from query_service.cluster.shard_map import Member
from query_service.cluster.view import View
from query_service.lookups.local_lookup import LocalLookup
from query_service.lookups.request_checks import Limits
from query_service.metrics import Metrics
from query_service.serving.peers import Peers
from query_service.serving.servicers import ShardServicer
from query_service.serving.shard_listing import ShardListing
from statecast.shard.v1 import shard_service_pb2 as shard
from statecast.shard.v1 import shard_service_pb2_grpc as shard_grpc
from testkit.ports import free_ports
from testkit.query_service import ManualClock, call_limits

LIMITS = Limits(10, 10, 10, 10)


@pytest.fixture
async def member(serving_view: View, metrics: Metrics, clock: ManualClock) -> AsyncIterator[Member]:
    """A member that serves all partitions but one."""
    serving_view.replicas["orders-by-key", 2].progress.serving = False
    local = LocalLookup(serving_view, LIMITS, clock)
    server = grpc.aio.server()
    servicer = ShardServicer(
        local, ShardListing(serving_view, Peers(1.0, 1.0, clock).freshness_at), LIMITS, call_limits(metrics, clock)
    )
    shard_grpc.add_ShardServiceServicer_to_server(servicer, server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    yield Member("query-1", address, address, 1)
    await server.stop(None)


@pytest.fixture
async def peers(clock: ManualClock) -> AsyncIterator[Peers]:
    peers = Peers(1.0, 5.0, clock)
    yield peers
    await peers.keep(())


async def test_a_peer_tells_what_it_serves(peers: Peers, member: Member) -> None:
    store = "orders-by-key"

    assert await peers.served_by(member) == {(store, 0), (store, 1), (store, 3)}
    assert [serving for serving, _ in (await peers.freshness_at(member)).values()] == [True, True, False, True]


async def test_a_peer_that_does_not_answer_serves_nothing(peers: Peers) -> None:
    nobody = Member("query-2", "127.0.0.1:1", "127.0.0.1:1", 1)

    assert await peers.served_by(nobody) == frozenset()
    assert await peers.freshness_at(nobody) == {}


async def test_one_connection_per_member_is_kept_until_it_is_dropped(peers: Peers, member: Member) -> None:
    first = peers.of(member)
    await peers.keep([member])
    assert peers.of(member) is first

    await peers.keep([])

    assert peers.of(member) is not first


async def test_the_internal_service_lists_partitions_by_store_and_number(member: Member) -> None:
    async with grpc.aio.insecure_channel(member.shard_address) as channel:
        stub: shard_grpc.ShardServiceAsyncStub = shard_grpc.ShardServiceStub(channel)
        answer = await stub.ListPartitions(shard.ListPartitionsRequest())

    assert [each.freshness.partition for each in answer.partitions] == [0, 1, 2, 3]


async def test_the_internal_service_reads_no_range_without_a_group(member: Member) -> None:
    """Below the first group are the notes of the store itself, which are no rows."""
    request = shard.BatchGetStatesRequest()
    request.query.store = "orders-by-key"
    request.query.ranges.add()
    async with grpc.aio.insecure_channel(member.shard_address) as channel:
        stub: shard_grpc.ShardServiceAsyncStub = shard_grpc.ShardServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.BatchGetStates(request)

    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT


async def test_a_peer_that_does_not_answer_is_probed_until_it_does(
    clock: ManualClock, metrics: Metrics, serving_view: View
) -> None:
    port = free_ports(1)[0]
    address = f"127.0.0.1:{port}"
    peers = Peers(0.01, 5.0, clock)
    peer = peers.of(Member("query-1", address, address, 1))
    peer.failed(None)
    assert peer.unreachable
    assert await peers.freshness_at(Member("query-1", address, address, 1)) == {}

    local = LocalLookup(serving_view, LIMITS, clock)
    server = grpc.aio.server()
    listing = ShardListing(serving_view, peers.freshness_at)
    servicer = ShardServicer(local, listing, LIMITS, call_limits(metrics, clock))
    shard_grpc.add_ShardServiceServicer_to_server(servicer, server)
    server.add_insecure_port(address)
    await server.start()
    async with asyncio.timeout(30):
        while peer.unreachable:  # noqa: ASYNC110  a peer tells nobody
            await asyncio.sleep(0.01)

    assert peer.usable(("orders-by-key", 0))
    await peers.keep(())
    await server.stop(None)


async def test_a_peer_that_is_dropped_is_probed_no_longer(peers: Peers) -> None:
    peers.of(Member("query-2", "127.0.0.1:1", "127.0.0.1:1", 1)).failed(None)
    before = len(asyncio.all_tasks())
    await peers.keep([])
    async with asyncio.timeout(10):
        while len(asyncio.all_tasks()) >= before:  # noqa: ASYNC110  a task that ends tells nobody
            await asyncio.sleep(0.01)
