"""The public service, over a real channel."""

import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from query_service.cluster.view import View
from query_service.errors import AbsentError, NotServedError, UnknownStoreError
from query_service.metrics import Metrics
from query_service.reads import Page
from query_service.reads.request_checks import Limits
from query_service.server.methods import QueryMethods
from query_service.server.peers import Peers
from query_service.server.shard_listing import ShardListing
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.query.v1 import query_service_pb2_grpc as query_grpc
from statecast.state.v1 import state_pb2
from testkit.query_service import FakeReads, ManualClock, call_limits, preference_of, serve, store_definition
from testkit.waiting import scaled

KEY = state_pb2.StateKey(group="order-1")


class Service:
    """The public methods on a real server, in front of reads that a test chooses."""

    def __init__(self, view: View, metrics: Metrics, clock: ManualClock) -> None:
        self.lookup = FakeReads("query-1")
        self.metrics = metrics
        listing = ShardListing(view, preference_of(view, Peers(1.0, 1.0, clock).of), clock)
        limits = call_limits(metrics, clock, in_flight_bytes=8000)
        methods = QueryMethods(self.lookup, Limits(5, 10, 5, 1000, answer_bytes=1000), limits, listing, metrics)
        self.server, address = serve(methods.methods())
        self.channel = grpc.aio.insecure_channel(address)
        self.stub: query_grpc.QueryServiceAsyncStub = query_grpc.QueryServiceStub(self.channel)

    async def refusal(self, request: query.GetStateRequest) -> grpc.aio.AioRpcError:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await self.stub.GetState(request)
        return refused.value

    def counted(self, outcome: str) -> float | None:
        labels = {"method": "GetState", "outcome": outcome}
        return self.metrics.registry.get_sample_value("query_service_calls_total", labels)


@pytest.fixture
async def service(view: View, metrics: Metrics, clock: ManualClock) -> AsyncIterator[Service]:
    service = Service(view, metrics, clock)
    await service.server.start()
    yield service
    await service.channel.close()
    await service.server.stop(0)


async def test_a_right_call_is_looked_up_and_counted(service: Service) -> None:
    answer = await service.stub.GetState(query.GetStateRequest(store="s", key=KEY))

    assert answer.state.key == KEY
    assert service.counted("ok") == 1


@pytest.mark.parametrize(
    ("size", "accepted", "is_refused"), [(5 << 20, 0, True), (3000, 2000, True), (3000, 4000, False), (3000, 0, False)]
)
async def test_a_shard_map_larger_than_its_caller_takes_is_refused(
    service: Service, view: View, size: int, accepted: int, is_refused: bool
) -> None:
    store = store_definition("orders-by-key").model_copy(update={"description": "x" * size})
    view.stores = {store.name: store}
    call = service.stub.ListShards(query.ListShardsRequest(max_response_bytes=accepted))

    assert await call.code() == (grpc.StatusCode.RESOURCE_EXHAUSTED if is_refused else grpc.StatusCode.OK)
    assert ("accept more by max_response_bytes, or name a store" in (await call.details() or "")) == is_refused


async def test_a_wrong_call_is_refused_before_it_is_looked_up(service: Service) -> None:
    refused = await service.refusal(query.GetStateRequest(store="s", bounds=query_pb2.Bounds(max_lag_ms=-1)))

    assert refused.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert (refused.details() or "").startswith("bounds.max_lag_ms: ")
    assert service.lookup.deadlines == []
    assert service.counted("InvalidRequestError") == 1


async def test_a_call_without_a_deadline_gets_the_services_own(service: Service, clock: ManualClock) -> None:
    await service.stub.GetState(query.GetStateRequest(store="s", key=KEY))
    await service.stub.GetState(query.GetStateRequest(store="s", key=KEY), timeout=1)

    assert service.lookup.deadlines[0] == clock.now + 5
    assert clock.now < service.lookup.deadlines[1] < clock.now + 1


async def test_a_call_is_not_worked_on_for_ever_whatever_its_deadline(service: Service, clock: ManualClock) -> None:
    await service.stub.GetState(query.GetStateRequest(store="s", key=KEY), timeout=3600)

    assert service.lookup.deadlines == [clock.now + 60]


async def test_an_overload_is_refused_before_it_is_looked_up(service: Service) -> None:
    key = state_pb2.StateKey(group="g" * 7000)
    refused = await service.refusal(query.GetStateRequest(store="s", key=key))

    assert refused.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "MAX_IN_FLIGHT_MB" in (refused.details() or "")
    assert service.lookup.deadlines == []


async def test_an_answer_that_there_is_no_memory_for_is_refused(service: Service) -> None:
    key = state_pb2.StateKey(group="g" * 4000)

    refused = await service.refusal(query.GetStateRequest(store="s", key=key))

    assert refused.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert len(service.lookup.deadlines) == 1


async def test_a_long_poll_gets_its_wait_on_top(service: Service, clock: ManualClock) -> None:
    await service.stub.BatchGetStates(query.BatchGetStatesRequest(store="s", max_wait=Duration(seconds=1)))

    assert service.lookup.deadlines == [clock.now + 6]


async def test_an_unknown_store_and_a_shard_that_nobody_serves_have_their_status(service: Service) -> None:
    service.lookup.failure = UnknownStoreError("store: there is no store `s`")
    unknown = await service.refusal(query.GetStateRequest(store="s", key=KEY))
    service.lookup.failure = NotServedError("still reading")
    unserved = await service.refusal(query.GetStateRequest(store="s", key=KEY))

    assert (unknown.code(), unserved.code()) == (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNAVAILABLE)


async def test_an_absence_travels_in_the_trailing_metadata(service: Service) -> None:
    absence = query_pb2.Absence(position=state_pb2.Position(epoch=77, offset=5), deleted=True)
    freshness = query_pb2.Freshness(partition=1, lag_ms=7, answered_by="query-1")
    service.lookup.failure = AbsentError("nothing", absence, freshness)
    refused = await service.refusal(query.GetStateRequest(store="s", key=KEY))
    trailing = dict(refused.trailing_metadata() or ())

    assert refused.code() == grpc.StatusCode.NOT_FOUND
    assert trailing["statecast-absence-bin"] == absence.SerializeToString()
    assert trailing["statecast-freshness-bin"] == freshness.SerializeToString()


async def test_an_answer_that_is_too_large_fails_key_by_key(service: Service) -> None:
    keys = [query_pb2.KeyQuery(key=state_pb2.StateKey(group=f"{number}" * 500)) for number in range(5)]
    answer = await service.stub.BatchGetStates(query.BatchGetStatesRequest(store="s", keys=keys))

    assert [result.WhichOneof("result") for result in answer.results] == ["state", "error", "error", "error", "error"]


async def test_a_wrong_scan_and_a_wrong_store_of_shards_are_refused(service: Service) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match="page_size: -1 is below 0"):
        await service.stub.ScanStates(query.ScanStatesRequest(store="s", page_size=-1))
    with pytest.raises(grpc.aio.AioRpcError, match="there is no store `s`"):
        await service.stub.ListShards(query.ListShardsRequest(store="s"))


async def test_a_page_holds_memory_while_it_is_read(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, gate, scan = asyncio.Event(), asyncio.Event(), service.lookup.scan

    async def slow_scan(request: query.ScanStatesRequest, deadline: float) -> Page:
        reading.set()
        await gate.wait()
        return await scan(request, deadline)

    monkeypatch.setattr(service.lookup, "scan", lambda request, deadline, _: slow_scan(request, deadline))
    request = query.ScanStatesRequest(store="s", group="order-1", page_size=5)
    first = asyncio.ensure_future(service.stub.ScanStates(request))
    await reading.wait()
    with pytest.raises(grpc.aio.AioRpcError, match="overloaded"):
        await service.stub.ScanStates(request, timeout=scaled(5))
    gate.set()

    assert len((await first).states) == 1
