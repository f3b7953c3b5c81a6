"""Lookups are forwarded to a peer, then to the next one; at times this instance answers in place of a peer."""

import asyncio
import time
from dataclasses import replace
from itertools import islice
from uuid import uuid4

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from query_service.cluster.shard_map import ShardMap
from query_service.storage.progress import Progress
from statecast.query.v1 import query_pb2
from testkit.served_pair import (
    PeerServer,
    ServedPair,
    batch_request,
    batch_response,
    get_request,
    get_response,
    outcome,
)
from testkit.served_stores import ME, PEER, ServedStores
from testkit.waiting import scaled, wait_until_async


def partitions_of_retained(pair: ServedPair) -> dict[int, str]:
    """Returns a group with a row for each partition of a store that is asked of the peer first."""
    groups: dict[int, str] = {}
    for group in "abcdefgh":
        groups.setdefault(pair.here.view.shard_of("retained", group)[1], group)
        pair.write("retained", group, b"row")
    assert {pair.here.view.shard_map.ranked("retained", partition)[0] for partition in groups} == {pair.member}
    return groups


async def test_gets_of_an_owner_that_restores_are_one_call_of_the_peer() -> None:
    async with ServedPair() as pair:
        groups = list(islice(pair.groups(there=False), 20))
        for group in groups:
            pair.write("keyed", group, group.encode())
        before = pair.answer("GetState", get_request(groups[0]))
        for replica in pair.here.view.replicas.values():
            replica.progress.serving = False
        batch = pair.forwarded("BatchGetStates", batch_request(*groups))
        ended = await asyncio.gather(*(pair.forwarded("GetState", get_request(group)) for group in groups))
        responses = [get_response(each) for each in ended]

        assert get_response(before).freshness.answered_by == ME.instance
        assert [response.state.payload for response in responses] == [group.encode() for group in groups]
        assert {response.freshness.answered_by for response in responses} == {pair.member.instance}
        assert {each.answered_by for each in batch_response(await batch).freshness} == {pair.member.instance}
        assert pair.server.asked == ["BatchGetStates"] * 2
        assert pair.metric("forwards_total", outcome="answered") == 2


async def test_what_the_peer_cannot_answer_is_answered_here_at_once() -> None:
    async with ServedPair() as pair:
        here, there = next(pair.groups(there=False)), next(pair.groups())
        pair.write("keyed", there, b"row")
        pair.peer.failed(pair.here.view.shard_of("keyed", there))
        requests = {"GetState": get_request(there), "BatchGetStates": batch_request(there, here)}
        for method, request in requests.items():
            answer = pair.answer(method, request)

            assert isinstance(answer, bytes)
            assert pair.metric("calls_total", method=method, outcome="ok") == 1
        get = get_response(pair.answer("GetState", requests["GetState"]))
        batch = batch_response(pair.answer("BatchGetStates", requests["BatchGetStates"]))

        assert (get.state.payload, get.freshness.answered_by) == (b"row", ME.instance)
        assert [each.answered_by for each in batch.freshness] == [ME.instance] * 2
        assert pair.server.asked == []


async def test_when_nobody_is_known_to_answer_all_are_asked() -> None:
    async with ServedPair() as pair:
        group = pair.row_there()
        place = pair.here.view.shard_of("keyed", group)
        pair.here.view.replicas[place].progress.serving = False
        pair.peer.failed(place)
        get = get_response(await pair.forwarded("GetState", get_request(group)))
        pair.peer.failed(place)
        batch = batch_response(await pair.forwarded("BatchGetStates", batch_request(group)))

        assert get.state.payload == batch.results[0].state.payload == b"row"
        assert pair.server.asked == ["GetState", "BatchGetStates"]


@pytest.mark.parametrize("hedge_after_s", [0.0, 0.02])
async def test_what_both_replicas_fail_to_answer_is_unavailable(hedge_after_s: float) -> None:
    async with ServedPair(monotonic=time.monotonic, hedge_after_s=hedge_after_s, timeout_s=scaled(5)) as pair:
        group, other = next(pair.groups()), next(pair.groups(there=False))
        pair.write("keyed", group, b"row")
        pair.server.failure = grpc.StatusCode.INTERNAL
        pair.here.view.replicas[pair.here.view.shard_of("keyed", group)].store.close()
        get = await outcome(pair.forwarded("GetState", get_request(group)))
        batch = batch_response(await pair.forwarded("BatchGetStates", batch_request(group, other)))
        codes = {result.index: result.error.code for result in batch.results}

        assert isinstance(get, tuple)
        assert get[0] == grpc.StatusCode.UNAVAILABLE
        assert codes == {0: grpc.StatusCode.UNAVAILABLE.value[0], 1: 0}
        assert {*pair.server.asked} == {"BatchGetStates", "GetState"}
        for method in ("GetState", "BatchGetStates"):
            assert pair.metric("call_seconds_count", method=method) == 1
            assert pair.metric("calls_in_flight", method=method) == 0
        assert pair.metric("in_flight_bytes") == 0
        pair.server.failure = None
        response = get_response(await pair.forwarded("GetState", get_request(group)))
        assert (response.state.payload, response.freshness.answered_by) == (b"row", pair.member.instance)


@pytest.mark.parametrize("hedge_after_s", [0.0, 0.02])
async def test_of_two_peers_the_second_answers_what_the_first_does_not(hedge_after_s: float) -> None:
    third = replace(PEER, instance="query-3", shard_address=f"unix-abstract:query-service-{uuid4().hex}")
    stores = ServedStores(me=third, peer=ME)
    server = PeerServer(stores)
    await server.start(third.shard_address)
    async with ServedPair(monotonic=time.monotonic, hedge_after_s=hedge_after_s, timeout_s=scaled(5)) as pair:
        shard_map = pair.here.view.shard_map = ShardMap(frozenset({ME, pair.member, third}), 2)
        group = next(pair.groups())
        holders = shard_map.holders(*pair.here.view.shard_of("keyed", group))
        pair.write("keyed", group, b"row")
        stores.write("keyed", group, b"row")
        pair.server.failure = grpc.StatusCode.INTERNAL
        get, batch = await asyncio.gather(
            pair.forwarded("GetState", get_request(group)), pair.forwarded("BatchGetStates", batch_request(group))
        )
        freshness = [get_response(get).freshness, *batch_response(batch).freshness]

        assert holders == (pair.member, third)
        assert [(each.answered_by, each.forwarded) for each in freshness] == [(third.instance, True)] * 2
        assert get_response(get).state.payload == batch_response(batch).results[0].state.payload == b"row"
        assert pair.server.asked == server.asked == ["BatchGetStates"] * 2
        assert pair.metric("forwards_total", outcome="unreachable") == 2
        assert pair.metric("forwards_total", outcome="answered") == 2
    await server.stop()


async def test_a_partition_that_the_peer_does_not_serve_is_looked_up_here_and_not_there_again() -> None:
    async with ServedPair() as pair:
        group = pair.row_there()
        pair.there.view.replicas[pair.here.view.shard_of("keyed", group)].progress.serving = False
        responses = [get_response(await pair.answered("GetState", get_request(group))) for _ in range(3)]

        assert {(each.state.payload, each.freshness.answered_by) for each in responses} == {(b"row", ME.instance)}
        assert pair.server.asked == ["BatchGetStates"]
        assert not pair.is_usable(group)
        assert not pair.peer.unreachable
        assert pair.metric("calls_total", method="GetState", outcome="ok") == 3
        assert pair.metric("forwards_total", outcome="not_served") == 1


@pytest.mark.parametrize("method", ["GetState", "BatchGetStates"])
async def test_of_keys_together_a_peer_is_not_asked_again_for_those_that_it_does_not_serve(method: str) -> None:
    async with ServedPair() as pair:
        groups = partitions_of_retained(pair)
        served, unserved, _ = sorted(groups)
        pair.there.view.replicas["retained", unserved].progress.serving = False
        requests = [get_request(groups[partition], store="retained") for partition in (served, unserved)]
        if method == "GetState":
            one, other = await asyncio.gather(*(pair.forwarded("GetState", request) for request in requests))
            assert get_response(one).freshness.answered_by == pair.member.instance
            assert get_response(other).freshness.answered_by == ME.instance
        else:
            other = await pair.forwarded(method, batch_request(groups[served], groups[unserved], store="retained"))
            assert [each.answered_by for each in batch_response(other).freshness] == [
                pair.member.instance if partition == served else ME.instance for partition in sorted((served, unserved))
            ]
        later = get_response(pair.answer("GetState", requests[1]))

        assert (later.state.payload, later.freshness.answered_by) == (b"row", ME.instance)
        assert pair.server.asked == ["BatchGetStates"]
        assert pair.peer.usable(("retained", served))
        assert not pair.peer.usable(("retained", unserved))
        assert not pair.peer.unreachable
        assert (pair.metric("calls_in_flight", method=method), pair.metric("in_flight_bytes")) == (0, 0)


@pytest.mark.parametrize("restores", [False, True])
async def test_a_long_poll_goes_on_at_the_peer_when_its_partition_moves_away(*, restores: bool) -> None:
    async with ServedPair(monotonic=time.monotonic, timeout_s=scaled(5)) as pair:
        group = next(pair.groups(there=False))
        pair.write("keyed", group, b"row")
        place = pair.here.view.shard_of("keyed", group)
        replica = pair.here.view.replicas[place]
        request = batch_request(group, max_wait=Duration(seconds=8))
        request.keys[0].after.epoch, request.keys[0].after.offset = 77, replica.progress.applied_offset
        polling = pair.forwarded("BatchGetStates", request)
        await wait_until_async(lambda: replica.changes.is_watched, "the call does not wait", interval_s=0.001)
        if restores:
            replica.start_over(replica.store, Progress(0, 2.0, time.monotonic))
        else:
            del pair.here.view.replicas[place]
            replica.close()
        await pair.until_asked()
        pair.there.write("keyed", group, b"newer")
        response = batch_response(await polling)

        assert [result.state.payload for result in response.results] == [b"newer"]
        assert pair.server.asked == ["BatchGetStates"]


async def test_a_long_poll_goes_on_at_the_peer_when_this_replica_falls_behind_its_bounds() -> None:
    async with ServedPair(monotonic=time.monotonic, timeout_s=0.5) as pair:
        pair.here.local.monotonic = pair.there.local.monotonic = time.monotonic
        group = next(pair.groups(there=False))
        replica = pair.here.view.replicas[pair.here.view.shard_of("keyed", group)]
        bounds = query_pb2.Bounds(max_lag_ms=1000)
        request = batch_request(group, max_wait=Duration(nanos=500_000_000), bounds=bounds)
        request.keys[0].after.epoch, request.keys[0].after.offset = 77, -1
        polling = pair.forwarded("BatchGetStates", request, 60)
        await wait_until_async(lambda: replica.changes.is_watched, "the call does not wait", interval_s=0.001)
        pair.here.clock.now += 60
        pair.there.write("keyed", group, b"newer")
        response = batch_response(await polling)

        assert [result.state.payload for result in response.results] == [b"newer"]
        assert [each.answered_by for each in response.freshness] == [pair.member.instance]
