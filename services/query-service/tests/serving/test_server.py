"""The two ports of an instance."""

import asyncio
import time
from collections.abc import AsyncIterator

import grpc
import pytest
from prometheus_client import CollectorRegistry

from query_service.metrics import Metrics
from query_service.serving.call_limits import Context, served
from query_service.serving.server import Servers
from query_service.settings import Settings
from statecast.query.v1 import query_service_pb2 as query
from statecast.query.v1 import query_service_pb2_grpc as query_grpc
from statecast.shard.v1 import shard_service_pb2_grpc as shard_grpc
from testkit.ports import free_ports
from testkit.query_service import call_limits


class Gate(query_grpc.QueryServiceServicer):
    """Answers once it is open."""

    def __init__(self) -> None:
        self.limits = call_limits(Metrics(CollectorRegistry()), time.monotonic)
        self.opened = asyncio.Event()
        self.waiting = 0

    @served
    async def GetState(self, request: query.GetStateRequest, context: Context) -> query.GetStateResponse:  # noqa: N802
        self.waiting += 1
        await self.opened.wait()
        return query.GetStateResponse()


class Instance:
    """Both servers, of which the public one takes two calls at a time and 2 KB a request."""

    def __init__(self) -> None:
        port, shard_port = free_ports(2)
        settings = Settings(port=port, shard_port=shard_port, max_concurrent_calls=2, max_request_bytes=2048)
        self.gate = Gate()  # type: ignore[abstract]
        self.servers = Servers(settings, self.gate, shard_grpc.ShardServiceServicer())  # type: ignore[abstract]
        self.channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}")
        self.stub: query_grpc.QueryServiceAsyncStub = query_grpc.QueryServiceStub(self.channel)

    async def refusal(self, request: query.GetStateRequest) -> grpc.StatusCode:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await self.stub.GetState(request, timeout=10)
        return refused.value.code()


@pytest.fixture
async def instance() -> AsyncIterator[Instance]:
    instance = Instance()
    await instance.servers.start()
    yield instance
    instance.gate.opened.set()
    await instance.channel.close()
    await instance.servers.stop(0)


async def test_a_call_too_many_is_refused_at_once_and_those_in_work_end_well(instance: Instance) -> None:
    working = [asyncio.ensure_future(instance.stub.GetState(query.GetStateRequest())) for _ in range(2)]
    async with asyncio.timeout(10):
        while instance.gate.waiting < 2:  # noqa: ASYNC110  the servicer tells nobody
            await asyncio.sleep(0.01)

    assert await instance.refusal(query.GetStateRequest()) == grpc.StatusCode.RESOURCE_EXHAUSTED

    instance.gate.opened.set()

    assert await asyncio.gather(*working) == [query.GetStateResponse()] * 2


async def test_a_request_that_is_too_large_is_refused(instance: Instance) -> None:
    assert await instance.refusal(query.GetStateRequest(store="s" * 3000)) == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert instance.gate.waiting == 0


async def test_a_request_that_is_no_message_is_refused_and_not_logged_as_a_defect(
    instance: Instance, caplog: pytest.LogCaptureFixture
) -> None:
    call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = instance.channel.unary_unary(
        "/statecast.query.v1.QueryService/GetState"
    )
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call(b"\xff")

    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert caplog.records == []


async def test_the_internal_service_is_not_reachable_on_the_public_port(instance: Instance) -> None:
    internal: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = instance.channel.unary_unary(
        "/statecast.shard.v1.ShardService/ListPartitions"
    )
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await internal(b"")

    assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED
