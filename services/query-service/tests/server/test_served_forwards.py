"""Reads passed on to a peer, as clients see them through each of the servers."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from query_service.instance import servers_of
from query_service.settings import Settings
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api
from statecast.query.v1 import query_service_pb2_grpc as query_grpc
from statecast.shard.v1 import shard_service_pb2 as shard
from statecast.shard.v1 import shard_service_pb2_grpc as shard_grpc
from testkit.ports import free_ports
from testkit.served_pair import ServedPair, batch_request, get_request
from testkit.waiting import scaled, wait_until_async

TIMEOUT_S = scaled(20)


class Instance:
    """The servers of an instance; its peer holds the same rows."""

    def __init__(self, grpc_server: str, pair: ServedPair) -> None:
        port, shard_port = free_ports(2)
        fields: dict[str, Any] = {"port": port, "shard_port": shard_port, "grpc_server": grpc_server}
        self.settings = own = Settings(**fields, hedge_after_ms=0, peer_timeout_ms=60_000, max_batch_keys=200)
        self.pair = pair
        self.servers = servers_of(own, pair.here.view, pair.peers, pair.here.metrics, pair.here.checkpoints)
        self.channel = grpc.aio.insecure_channel(own.address)
        self.stub: query_grpc.QueryServiceAsyncStub = query_grpc.QueryServiceStub(self.channel)
        self.here, self.there = next(pair.groups(there=False)), next(pair.groups())
        for group in (self.here, self.there):
            pair.write("keyed", group, group.encode())

    def get(self, group: str) -> "grpc.aio.UnaryUnaryCall[api.GetStateRequest, api.GetStateResponse]":
        return self.stub.GetState(get_request(group), timeout=TIMEOUT_S)

    def batch(self, *groups: str) -> "grpc.aio.UnaryUnaryCall[api.BatchGetStatesRequest, api.BatchGetStatesResponse]":
        return self.stub.BatchGetStates(batch_request(*groups), timeout=TIMEOUT_S)

    async def until_metric(self, value: float, name: str, **labels: str) -> None:
        """Waits until a metric has a value."""

        def now() -> float:
            return self.pair.metric(name, **labels)

        await wait_until_async(lambda: now() == value, lambda: f"{name} is {now()}")


@pytest.fixture(params=["native", "grpcio"])
async def instance(request: pytest.FixtureRequest) -> AsyncIterator[Instance]:
    """An instance with each server."""
    async with ServedPair(monotonic=time.monotonic, timeout_s=scaled(10)) as pair:
        instance = Instance(request.param, pair)
        await instance.servers.start()
        yield instance
        pair.server.gate.set()
        await instance.channel.close()
        await instance.servers.stop(0)


async def test_a_get_and_a_batch_are_answered_by_the_peer(instance: Instance) -> None:
    response = await instance.get(instance.there)
    batch = await instance.batch(instance.here, instance.there, instance.here)

    assert (response.state.payload, response.freshness.forwarded) == (instance.there.encode(), True)
    assert {result.index: result.state.payload for result in batch.results} == {
        0: instance.here.encode(),
        1: instance.there.encode(),
        2: instance.here.encode(),
    }
    assert {each.forwarded: sorted(each.keys) for each in batch.freshness} == {False: [0, 2], True: [1]}
    assert instance.pair.server.asked == ["BatchGetStates"] * 2
    await instance.until_metric(0, "in_flight_bytes")


async def test_a_peer_keeps_to_the_limits_of_the_instance_that_was_asked(instance: Instance) -> None:
    own = instance.settings
    request = batch_request(*[instance.here] * (own.max_batch_keys + 1), max_wait=Duration(seconds=own.max_wait_ms))
    async with grpc.aio.insecure_channel(own.shard_address) as channel:
        stub: shard_grpc.ShardServiceAsyncStub = shard_grpc.ShardServiceStub(channel)
        answer = await stub.BatchGetStates(shard.BatchGetStatesRequest(query=request), timeout=TIMEOUT_S)
    with pytest.raises(grpc.aio.AioRpcError, match="keys, ranges"):
        await instance.stub.BatchGetStates(request, timeout=TIMEOUT_S)

    assert len(answer.answer.results) == own.max_batch_keys + 1


async def test_many_gets_are_answered_each_with_its_own_value(instance: Instance) -> None:
    groups = [group for group, _ in zip(instance.pair.groups(), range(50), strict=False)]
    for group in groups:
        instance.pair.write("keyed", group, group.encode())
    responses = await asyncio.gather(*map(instance.get, groups))

    assert [response.state.payload for response in responses] == [group.encode() for group in groups]
    assert {*instance.pair.server.asked} == {"BatchGetStates"}
    await instance.until_metric(50, "calls_total", method="GetState", outcome="ok")
    await instance.until_metric(0, "calls_in_flight", method="GetState")


async def test_a_key_that_is_absent_at_the_peer_ends_the_call_with_both_metadata(instance: Instance) -> None:
    group = instance.there
    instance.pair.write("keyed", group, None)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await instance.get(group)
    trailing: dict[str, Any] = dict(refused.value.trailing_metadata() or ())
    absence = query_pb2.Absence.FromString(trailing["statecast-absence-bin"])
    freshness = query_pb2.Freshness.FromString(trailing["statecast-freshness-bin"])

    assert refused.value.code() == grpc.StatusCode.NOT_FOUND
    assert refused.value.details() == f"key: `{group}` has no value in `keyed`"
    assert absence.deleted
    assert not absence.HasField("unchanged_since")
    assert (freshness.forwarded, freshness.answered_by) == (True, instance.pair.member.instance)
    assert instance.pair.server.asked == ["BatchGetStates"]
    await instance.until_metric(1, "calls_total", method="GetState", outcome="AbsentError")
    await instance.until_metric(0, "in_flight_bytes")


@pytest.mark.parametrize("is_batch", [False, True])
async def test_a_client_that_goes_away_gives_its_memory_back(instance: Instance, is_batch: bool) -> None:
    instance.pair.server.gate.clear()
    call = instance.batch(instance.there) if is_batch else instance.get(instance.there)
    sending = asyncio.ensure_future(call)
    await instance.pair.until_asked()
    assert instance.pair.metric("in_flight_bytes") > 0
    call.cancel()
    await asyncio.gather(sending, return_exceptions=True)

    method = "BatchGetStates" if is_batch else "GetState"
    await instance.until_metric(1, "calls_total", method=method, outcome="interrupted")
    await instance.until_metric(0, "in_flight_bytes")
    await instance.until_metric(0, "calls_in_flight", method=method)
    instance.pair.server.gate.set()
    assert (await instance.get(instance.there)).freshness.forwarded


@pytest.mark.parametrize("is_gone", [False, True])
async def test_a_stop_lets_what_is_at_the_peer_be_answered(instance: Instance, is_gone: bool) -> None:
    """Also by this instance, when the peer goes away before it has answered."""
    instance.pair.server.gate.clear()
    working = asyncio.ensure_future(instance.get(instance.there))
    await instance.pair.until_asked()
    stopping = asyncio.create_task(instance.servers.stop(TIMEOUT_S))
    await asyncio.sleep(0.1)
    if is_gone:
        instance.pair.server.failure = grpc.StatusCode.UNAVAILABLE
    instance.pair.server.gate.set()
    response = await working
    await stopping

    assert (response.state.payload, response.freshness.forwarded) == (instance.there.encode(), not is_gone)
    assert instance.pair.metric("calls_total", method="GetState", outcome="ok") == 1


async def test_a_stop_gives_up_what_the_peer_does_not_answer_in_time(instance: Instance) -> None:
    instance.pair.server.gate.clear()
    working = asyncio.gather(instance.get(instance.there), instance.batch(instance.there), return_exceptions=True)
    await instance.pair.until_asked(2)
    await instance.servers.stop(0.05)

    for failure in await working:
        assert isinstance(failure, grpc.aio.AioRpcError)
        assert failure.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
    await instance.until_metric(0, "in_flight_bytes")
    await instance.until_metric(0, "calls_in_flight", method="GetState")
