"""The two ports of an instance, with each of the servers that may stand behind them."""

import asyncio
import gc
import struct
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, TypeAlias

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from prometheus_client import CollectorRegistry

from query_service.errors import AbsentError, UnknownStoreError
from query_service.metrics import Metrics
from query_service.server.methods import QUERY, SHARD, Later, Method, parsed
from query_service.server.server import Servers
from query_service.settings import Settings
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.query.v1 import query_service_pb2_grpc as query_grpc
from statecast_service.errors import PortInUseError
from testkit.ports import free_ports
from testkit.query_service import call_limits
from testkit.raw_grpc import ACK, GOAWAY, PING, RST_STREAM, RawConnection, call_frames, frame
from testkit.waiting import scaled, wait_until_async

SERVICE = "statecast.query.v1.QueryService"
GET = f"/{SERVICE}/GetState"
LARGE = 1_000_000
MEDIUM = 50_000
SIZES = {"large": LARGE, "medium": MEDIUM}
ANSWER = query.GetStateResponse.FromString(b"\x0a\x00")

BytesCall: TypeAlias = "grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]"


class Gate:
    """Answers GetState once it is open, as the name of the store says."""

    def __init__(self, metrics: Metrics) -> None:
        self.limits = call_limits(metrics, time.monotonic, in_flight_bytes=4 * LARGE)
        self.opened = asyncio.Event()
        self.waiting = 0
        self.left_s: list[float | None] = []

    def methods(self, service: str) -> Sequence[Method]:
        """Returns the method, as one of a service."""
        return [Method(service, "GetState", self._respond, self.limits.in_flight)]

    def _respond(self, request: bytes, left_s: float | None) -> Later:
        self.left_s.append(left_s)
        return Later(self._get(parsed(query.GetStateRequest, request)), query.GetStateResponse.SerializeToString)

    async def _get(self, request: query.GetStateRequest) -> query.GetStateResponse:
        self.waiting += 1
        try:
            await self.opened.wait()
        finally:
            self.waiting -= 1
        match request.store:
            case "absent":
                raise AbsentError("nöthing", query_pb2.Absence(deleted=True), query_pb2.Freshness(lag_ms=7))
            case "defect":
                raise ZeroDivisionError("a defect")
            case "verbose":
                raise UnknownStoreError("\N{SNOWMAN}" * 20_000)
        response = query.GetStateResponse()
        response.state.payload = b"x" * SIZES.get(request.store, 0)
        return response


class Instance:
    """Both servers, of which the public one takes two calls at a time and 2 KB a request."""

    def __init__(self, grpc_server: str) -> None:
        port, shard_port = free_ports(2)
        fields: dict[str, Any] = {"port": port, "shard_port": shard_port, "grpc_server": grpc_server}
        self.settings = Settings(**fields, max_concurrent_calls=2, max_request_bytes=2048)
        self.address = self.settings.address
        self.metrics = Metrics(CollectorRegistry())
        self.gate = Gate(self.metrics)
        self.servers = self.make_servers()
        self.channel = grpc.aio.insecure_channel(self.address)
        self.stub: query_grpc.QueryServiceAsyncStub = query_grpc.QueryServiceStub(self.channel)

    def make_servers(self) -> Servers:
        return Servers(self.settings, self.gate.methods(QUERY), self.gate.methods(SHARD), self.gate.limits.in_flight)

    async def refusal(self, request: query.GetStateRequest, timeout_s: float = 10.0) -> grpc.aio.AioRpcError:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await self.stub.GetState(request, timeout=timeout_s)
        return refused.value

    async def until_waiting(self, calls: int) -> None:
        """Waits until so many calls are in work."""
        await wait_until_async(lambda: self.gate.waiting == calls, lambda: f"{self.gate.waiting} calls are in work", 10)

    async def until_held(self, least: float, most: float) -> None:
        """Waits until the metric of bytes in flight lies within these."""
        name = "query_service_in_flight_bytes"

        def held() -> float:
            return self.metrics.registry.get_sample_value(name) or 0.0

        await wait_until_async(lambda: least <= held() <= most, lambda: f"{held()} bytes are held", 10)


@pytest.fixture(params=["native", "grpcio"])
async def instance(request: pytest.FixtureRequest) -> AsyncIterator[Instance]:
    """An instance with each server."""
    instance = Instance(request.param)
    await instance.servers.start()
    yield instance
    instance.gate.opened.set()
    await instance.channel.close()
    await instance.servers.stop(0)


async def test_a_call_too_many_is_refused_at_once_and_those_in_work_end_well(instance: Instance) -> None:
    working = [asyncio.ensure_future(instance.stub.GetState(query.GetStateRequest())) for _ in range(2)]
    await instance.until_waiting(2)

    assert (await instance.refusal(query.GetStateRequest())).code() == grpc.StatusCode.RESOURCE_EXHAUSTED

    instance.gate.opened.set()

    assert await asyncio.gather(*working) == [ANSWER] * 2


async def test_a_request_that_is_too_large_is_refused(instance: Instance) -> None:
    refused = await instance.refusal(query.GetStateRequest(store="s" * 3000))

    assert refused.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert instance.gate.left_s == []


async def test_a_request_that_is_too_large_once_it_is_unpacked_is_refused(instance: Instance) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await instance.stub.GetState(query.GetStateRequest(store="s" * 3000), compression=grpc.Compression.Gzip)

    assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert instance.gate.left_s == []


async def test_a_compressed_request_is_answered(instance: Instance) -> None:
    instance.gate.opened.set()
    request = query.GetStateRequest(store="s" * 1000)

    assert await instance.stub.GetState(request, compression=grpc.Compression.Gzip) == ANSWER


async def test_a_request_that_is_no_message_is_refused_and_not_logged_as_a_defect(
    instance: Instance, caplog: pytest.LogCaptureFixture
) -> None:
    call: BytesCall = instance.channel.unary_unary(GET)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call(b"\xff")

    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert caplog.records == []


async def test_a_client_may_list_addresses_when_it_names_the_service(instance: Instance) -> None:
    """The native server takes no :authority of two ports, which such a client sends otherwise."""
    instance.gate.opened.set()
    addresses = f"ipv4:{instance.address},127.0.0.1:1"

    async with grpc.aio.insecure_channel(addresses, [("grpc.default_authority", "query-service")]) as channel:
        stub: query_grpc.QueryServiceAsyncStub = query_grpc.QueryServiceStub(channel)
        assert await stub.GetState(query.GetStateRequest()) == ANSWER


@pytest.mark.parametrize(
    "path", ["/statecast.shard.v1.ShardService/ListPartitions", f"/{SERVICE}/Missing", "/a", "/a/b"]
)
async def test_the_public_port_has_the_public_service_alone(instance: Instance, path: str) -> None:
    call: BytesCall = instance.channel.unary_unary(path)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call(b"")

    assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED


async def test_health_is_told_on_both_ports_and_watched(instance: Instance) -> None:
    serving = health_pb2.HealthCheckResponse.SERVING
    async with grpc.aio.insecure_channel(instance.settings.shard_address) as internal:
        stubs = [health_pb2_grpc.HealthStub(channel) for channel in (instance.channel, internal)]
        request = health_pb2.HealthCheckRequest(service=SERVICE)
        watched = stubs[0].Watch(request)
        before = await watched.read()
        await instance.servers.set_serving(serving=True)

        assert before.status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert (await watched.read()).status == serving
        assert [(await stub.Check(request)).status for stub in stubs] == [serving, serving]
        watched.cancel()


async def test_reflection_names_and_describes_the_service(instance: Instance) -> None:
    requests = [
        reflection_pb2.ServerReflectionRequest(list_services=""),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol=SERVICE),
    ]
    stub = reflection_pb2_grpc.ServerReflectionStub(instance.channel)
    listed, described = [answer async for answer in stub.ServerReflectionInfo(iter(requests))]

    assert SERVICE in {service.name for service in listed.list_services_response.service}
    assert described.file_descriptor_response.file_descriptor_proto


async def test_the_deadline_of_the_caller_is_known_and_ends_the_work(instance: Instance) -> None:
    timeout_s = scaled(1.0)
    refused = await instance.refusal(query.GetStateRequest(), timeout_s)

    assert refused.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    await instance.until_waiting(0)
    assert 0 < (instance.gate.left_s[0] or 0) <= 1.05 * timeout_s  # gRPC rounds a time up to send it


async def test_a_call_without_a_deadline_is_known_as_one(instance: Instance) -> None:
    instance.gate.opened.set()
    await instance.stub.GetState(query.GetStateRequest())

    assert instance.gate.left_s == [None]


async def test_a_call_that_is_cancelled_is_not_worked_on_any_longer(instance: Instance) -> None:
    call = instance.stub.GetState(query.GetStateRequest())
    await instance.until_waiting(1)
    call.cancel()

    await instance.until_waiting(0)


async def test_calls_of_a_client_that_is_gone_are_not_worked_on_any_longer(instance: Instance) -> None:
    with RawConnection(instance.address) as connection:
        connection.send(call_frames(1, GET, b"") + call_frames(3, GET, b""))
        await instance.until_waiting(2)
        connection.reset()

        await instance.until_waiting(0)


async def test_calls_that_are_cancelled_before_they_begin_leave_nothing_behind(instance: Instance) -> None:
    """Each comes with its cancellation, so both are taken on in one turn of the event loop."""
    reset = struct.pack(">I", 8)
    with RawConnection(instance.address) as connection:
        for stream in range(1, 41, 2):
            connection.send(call_frames(stream, GET, b"") + frame(RST_STREAM, 0, stream, reset))
        connection.send(frame(PING, 0, 0, b"finished"))
        await asyncio.to_thread(connection.until, PING)
    instance.gate.opened.set()

    await instance.until_held(0, 0)
    for _ in range(3):
        assert await instance.stub.GetState(query.GetStateRequest()) == ANSWER


async def test_a_text_that_metadata_cannot_hold_is_cut_short(instance: Instance) -> None:
    instance.gate.opened.set()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await instance.stub.GetState(query.GetStateRequest(store="verbose"))

    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert (caught.value.details() or "").endswith("\N{SNOWMAN}…")


async def test_a_failure_has_its_metadata_and_its_text(instance: Instance) -> None:
    instance.gate.opened.set()
    refused = await instance.refusal(query.GetStateRequest(store="absent"))
    trailing = dict(refused.trailing_metadata() or ())

    assert (refused.code(), refused.details()) == (grpc.StatusCode.NOT_FOUND, "nöthing")
    assert isinstance(trailing["statecast-absence-bin"], bytes)
    assert isinstance(trailing["statecast-freshness-bin"], bytes)


async def test_a_defect_ends_one_call(instance: Instance) -> None:
    instance.gate.opened.set()
    refused = await instance.refusal(query.GetStateRequest(store="defect"))

    assert refused.code() == grpc.StatusCode.UNKNOWN
    assert await instance.stub.GetState(query.GetStateRequest()) == ANSWER


async def test_a_response_that_is_not_read_is_held_until_the_client_goes(instance: Instance) -> None:
    instance.gate.opened.set()
    request = query.GetStateRequest(store="large").SerializeToString()
    with RawConnection(instance.address, window_bytes=0) as connection:
        connection.send(call_frames(1, GET, request) + call_frames(3, GET, request))

        await instance.until_held(2 * LARGE, 3 * LARGE)

    await instance.until_held(0, 0)


async def test_responses_that_are_not_read_make_the_instance_refuse_more(instance: Instance) -> None:
    instance.gate.opened.set()
    large = query.GetStateRequest(store="large").SerializeToString()
    with RawConnection(instance.address, window_bytes=0) as connection:
        for stream in (1, 3):
            connection.send(call_frames(stream, GET, large))
        await instance.until_held(2 * LARGE, 3 * LARGE)
        with RawConnection(instance.address, window_bytes=0) as other:
            if instance.settings.grpc_server == "native":  # at grpcio, both calls are in work until they are read
                other.send(call_frames(1, GET, large))
                await instance.until_held(3 * LARGE, 4 * LARGE)
            refused = await instance.refusal(query.GetStateRequest(store="large"))

            assert refused.code() == grpc.StatusCode.RESOURCE_EXHAUSTED

    await instance.until_held(0, 0)


async def test_a_stop_lets_the_calls_in_work_end(instance: Instance) -> None:
    """Large responses, too, but those of grpcio (GrpcioServer)."""
    store = "large" if instance.settings.grpc_server == "native" else "medium"
    working = asyncio.ensure_future(instance.stub.GetState(query.GetStateRequest(store=store)))
    await instance.until_waiting(1)
    stopping = asyncio.create_task(instance.servers.stop(10))
    await asyncio.sleep(0.1)
    instance.gate.opened.set()

    assert len((await working).state.payload) == SIZES[store]
    await stopping


async def test_a_stop_gives_up_what_takes_too_long_and_gives_the_ports_back(instance: Instance) -> None:
    working = asyncio.ensure_future(instance.refusal(query.GetStateRequest()))
    await instance.until_waiting(1)
    await instance.servers.stop(0.05)

    assert (await working).code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
    await instance.until_waiting(0)
    again = instance.make_servers()
    await again.start()
    await again.stop(0)


async def test_a_port_in_use_is_named(instance: Instance) -> None:
    with pytest.raises(PortInUseError, match="QUERY_SERVICE_PORT="):
        await instance.make_servers().start()


@pytest.mark.parametrize("instance", ["native"], indirect=True)
async def test_pings_are_answered_however_many_there_are(instance: Instance) -> None:
    """Clients that share a connection keep it alive, each by its own clock; grpcio closes it at the third."""
    with RawConnection(instance.address) as connection:
        for number in range(100):
            await asyncio.to_thread(connection.send, frame(PING, 0, 0, struct.pack(">Q", number)))
            flags, payload = await asyncio.to_thread(connection.until, PING)

            assert (flags, payload) == (ACK, struct.pack(">Q", number))


@pytest.mark.parametrize("instance", ["native"], indirect=True)
async def test_a_path_that_is_no_text_ends_neither_the_native_server_nor_the_one_behind_it(instance: Instance) -> None:
    with RawConnection(instance.address) as connection:
        connection.send(call_frames(1, f"/{SERVICE}/Get\udcad", b""))
        await asyncio.to_thread(connection.until, GOAWAY)
    instance.gate.opened.set()
    checked = await health_pb2_grpc.HealthStub(instance.channel).Check(health_pb2.HealthCheckRequest())

    assert checked.status == health_pb2.HealthCheckResponse.NOT_SERVING
    assert await instance.stub.GetState(query.GetStateRequest()) == ANSWER
    assert not instance.servers.has_ended


@pytest.fixture
def _no_collector() -> Iterator[None]:
    """Disables the garbage collector, which would give back the failed call."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("instance", ["grpcio"], indirect=True)
async def test_a_path_that_is_no_text_ends_a_server_of_grpcio_which_is_told(instance: Instance) -> None:
    """So that the instance ends, and is started again, although the connection stays open."""
    began = instance.servers.has_ended
    with RawConnection(instance.address) as connection:
        connection.send(call_frames(1, f"/{SERVICE}/Get\udcad", b""))
        await wait_until_async(lambda: instance.servers.has_ended, "the server has not ended")

    assert not began
