"""The connections to the other instances."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import grpc
import pytest
from structlog.testing import capture_logs

from query_service.cluster.shard_map import Member, ShardMap
from query_service.cluster.view import View
from query_service.errors import UnreachableError
from query_service.metrics import Metrics
from query_service.reads import Reads
from query_service.reads.dispatch import Dispatch
from query_service.reads.hedge import Hedging
from query_service.reads.local import LocalReads
from query_service.reads.request_checks import Limits
from query_service.reads.routed import RoutedReads
from query_service.server.limits import CallLimits
from query_service.server.methods import SHARD, Later, Method, ShardMethods
from query_service.server.partition_listing import PartitionListing
from query_service.server.peers import Peers, interval_s
from query_service.server.shard_channel import FEATURES, members_at
from query_service.storage.checkpoints import Checkpoints, Pace
from statecast.query.v1 import query_service_pb2
from statecast.shard.v1 import shard_service_pb2 as shard
from statecast.shard.v1 import shard_service_pb2_grpc as shard_grpc
from statecast.state.v1 import state_pb2
from testkit.ports import free_ports
from testkit.query_service import FakeReads, GatedReads, ManualClock, MessageReads, call_limits, preference_of, serve
from testkit.relay import Relay
from testkit.waiting import scaled, wait_until_async

LIMITS = Limits(10, 10, 10, 10, 1 << 20)


def shard_methods(reads: Reads, view: View, limits: CallLimits, checkpoints: Checkpoints) -> Sequence[Method]:
    return ShardMethods(
        reads, LIMITS, limits, PartitionListing(view), checkpoints, Pace(1e9, limits.monotonic)
    ).methods()


@asynccontextmanager
async def serving(methods: Sequence[Method], port: int = 0) -> AsyncIterator[Member]:
    """Yields query-1, which serves these methods."""
    server, address = serve(methods, port)
    await server.start()
    yield Member("query-1", address, address, 1)
    await server.stop(0)


@pytest.fixture
async def member(
    serving_view: View, metrics: Metrics, clock: ManualClock, checkpoints: Checkpoints
) -> AsyncIterator[Member]:
    """A member that serves all partitions but one."""
    serving_view.replicas["orders-by-key", 2].progress.serving = False
    local = LocalReads(serving_view, LIMITS, clock)
    async with serving(shard_methods(local, serving_view, call_limits(metrics, clock), checkpoints)) as member:
        yield member


@pytest.fixture
async def peers(clock: ManualClock) -> AsyncIterator[Peers]:
    peers = Peers(1.0, 5.0, clock)
    yield peers
    await peers.keep(())


async def until_asked(peers: Peers, member: Member) -> None:
    await wait_until_async(lambda: peers.were_asked([member]), "the peer is not asked", 30)


async def test_a_peer_tells_what_it_serves(peers: Peers, member: Member) -> None:
    store = "orders-by-key"

    assert await peers.served_by(member) == {(store, 0), (store, 1), (store, 3)}


async def test_a_peer_that_is_far_away_is_connected_to_at_the_first_try(peers: Peers, member: Member) -> None:
    async with Relay(member.shard_address, delay_s=0.5) as relay:
        assert await peers.served_by(Member("query-1", relay.address, relay.address, 1))


async def test_what_a_peer_holds_is_known_once_it_was_asked(peers: Peers, member: Member) -> None:
    assert not peers.were_asked([member])
    await peers.keep([member])
    await until_asked(peers, member)

    assert [serving for serving, _ in peers.of(member).held.values()] == [True, True, False, True]


async def test_a_peer_that_does_not_answer_serves_nothing(peers: Peers) -> None:
    nobody = Member("query-2", "127.0.0.1:1", "127.0.0.1:1", 1)

    assert await peers.served_by(nobody) == frozenset()
    await until_asked(peers, nobody)
    assert peers.of(nobody).held == {}


async def test_a_member_that_is_dropped_while_it_is_asked_serves_nothing(peers: Peers, member: Member) -> None:
    async with Relay(member.shard_address, delay_s=5) as relay:
        silent = Member("query-2", relay.address, relay.address, 1)
        asking = asyncio.create_task(peers.served_by(silent))
        await asyncio.sleep(0)
        await peers.keep(())

        assert await asking == frozenset()


async def test_another_instance_at_the_address_of_a_member_is_not_taken_for_it(peers: Peers, member: Member) -> None:
    gone = Member("query-9", member.address, member.shard_address, 1)
    with capture_logs() as logs:
        for _ in range(2):
            assert await peers.served_by(gone) == frozenset()

    assert [(log["member"], log["answers"]) for log in logs] == [("query-9", "query-1")]
    assert peers.of(gone).held == {}


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


async def test_members_tell_who_they_are(serving_view: View, member: Member) -> None:
    serving_view.me = Member("query-1", "h:1", "h:2", 1, (("rows", "rows.g2"),), "a", 1, FEATURES)
    older = grpc.aio.server()
    older_address = f"127.0.0.1:{older.add_insecure_port('127.0.0.1:0')}"
    await older.start()
    nobody = "127.0.0.1:1"
    asked = [member.shard_address, older_address, nobody]
    members = await asyncio.to_thread(members_at, asked, None)
    await older.stop(None)

    assert members == {member.shard_address: serving_view.me}
    assert [each.facts for each in members.values()] == [serving_view.me.facts]


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
    clock: ManualClock, metrics: Metrics, serving_view: View, checkpoints: Checkpoints
) -> None:
    port = free_ports(1)[0]
    address = f"127.0.0.1:{port}"
    peers = Peers(0.01, 5.0, clock)
    peer = peers.of(Member("query-1", address, address, 1))
    peer.failed(None)
    assert peer.unreachable

    local = LocalReads(serving_view, LIMITS, clock)
    async with serving(shard_methods(local, serving_view, call_limits(metrics, clock), checkpoints), port):
        await wait_until_async(lambda: not peer.unreachable, "the peer counts as dead", 30)

        assert peer.usable(("orders-by-key", 0))
        await peers.keep(())


async def test_a_peer_has_its_time_to_list_its_partitions_however_soon_it_is_asked_again(
    clock: ManualClock, metrics: Metrics, serving_view: View
) -> None:
    async def slowly() -> shard.ListPartitionsResponse:
        await asyncio.sleep(0.1)
        return PartitionListing(serving_view).answer(b"")

    def respond(*_: object) -> Later:
        return Later(slowly(), shard.ListPartitionsResponse.SerializeToString)

    method = Method(SHARD, "ListPartitions", respond, call_limits(metrics, clock).in_flight)
    async with serving([method]) as member:
        peers = Peers(0.01, scaled(5.0), clock)
        peer = peers.of(member)
        await wait_until_async(lambda: len(peer.held) == 4, "the partitions are not listed", 10)

        assert not peer.unreachable
        await peers.keep(())


async def test_a_peer_that_is_too_busy_to_list_its_partitions_still_holds_them(
    clock: ManualClock, metrics: Metrics, serving_view: View, checkpoints: Checkpoints
) -> None:
    limits = call_limits(metrics, clock)
    local = LocalReads(serving_view, LIMITS, clock)
    async with serving(shard_methods(local, serving_view, limits, checkpoints)) as member:
        peers = Peers(0.01, 5.0, clock)
        peer = peers.of(member)
        await wait_until_async(lambda: len(peer.held) == 4, "the partitions are not listed", 30)
        limits.in_flight.add(limits.in_flight.room)
        peer.failed(None)
        await wait_until_async(lambda: not peer.unreachable, "the peer counts as dead", 30)

        assert len(peer.held) == 4
        assert await peers.served_by(member) == frozenset()
        await peers.keep(())


async def test_a_call_that_ends_by_its_own_deadline_leaves_its_peer_in_use(
    view: View, metrics: Metrics, clock: ManualClock, checkpoints: Checkpoints
) -> None:
    slow = GatedReads("query-1")
    async with serving(shard_methods(slow, view, call_limits(metrics, time.monotonic), checkpoints)) as holder:
        elsewhere = View(Member("query-2", "h:1", "h:2", 1), view.stores.values(), 1)
        elsewhere.topics, elsewhere.shard_map = view.topics, ShardMap(frozenset({holder}), 1)
        peers, limits = Peers(1.0, 5.0, time.monotonic), Limits(10, 10, 10, 10, 1 << 20)
        hedging = Hedging(0.0, 5.0, 0.1, metrics, time.monotonic)
        nothing, order = FakeReads("query-2"), preference_of(elsewhere, peers.of)
        dispatch = Dispatch(elsewhere, nothing, peers.of, order, hedging, 5.0, metrics, time.monotonic)
        reads = MessageReads(RoutedReads(elsewhere, nothing.as_local, dispatch, limits, lambda _: None))
        request = query_service_pb2.GetStateRequest(store="orders-by-key", key=state_pb2.StateKey(group="g"))
        request.bounds.max_lag_ms = 1 << 40  # so that it goes alone
        await reads.get(request, time.monotonic() + 30)

        slow.gate.clear()
        with pytest.raises(UnreachableError):
            await reads.get(request, time.monotonic() + 0.05)

        assert peers.of(holder).usable(("orders-by-key", 0))
        await peers.keep(())


async def test_a_peer_that_is_dropped_is_asked_no_longer(peers: Peers) -> None:
    peers.of(Member("query-2", "127.0.0.1:1", "127.0.0.1:1", 1)).failed(None)
    before = len(asyncio.all_tasks())
    await peers.keep([])
    await wait_until_async(lambda: len(asyncio.all_tasks()) < before, "the peer is asked on", 10)


def test_the_calls_for_listings_grow_with_the_instances_and_not_with_their_square() -> None:
    calls_per_s = {instances: instances * (instances - 1) / interval_s(instances - 1) for instances in (2, 6, 50, 200)}

    assert calls_per_s == pytest.approx({2: 2, 6: 30, 50: 250, 200: 1000})
