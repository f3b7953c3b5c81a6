"""What one call may take: time, memory, and the size of a batch's response."""

import math
from collections.abc import Callable

import grpc
import pytest
from grpc.aio import AbortError

from query_service.errors import OverloadedError
from query_service.metrics import Metrics
from query_service.serving.call_limits import CallLimits, InFlight, cap, served
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query

RESOURCE_EXHAUSTED = 8


def response() -> query.BatchGetStatesResponse:
    message = query.BatchGetStatesResponse()
    for index in range(10):
        message.results.add(index=index).state.payload = b"x" * 1000
    return message


def test_a_small_response_stays_as_it_is() -> None:
    capped = response()
    cap(capped, 1_000_000)

    assert capped == response()


def test_what_does_not_fit_fails_key_by_key() -> None:
    capped = response()
    cap(capped, 5_000)
    kept = [result for result in capped.results if result.HasField("state")]
    failed = [result for result in capped.results if result.HasField("error")]

    assert capped.ByteSize() <= 5_100
    assert 3 <= len(kept) < 10
    assert [result.index for result in capped.results] == list(range(10))
    assert {result.error.code for result in failed} == {RESOURCE_EXHAUSTED}


def test_ranges_fail_before_keys_do() -> None:
    capped = response()
    for index in range(5):
        capped.ranges.add(index=index, whole=True).states.add(payload=b"x" * 1000)
    cap(capped, 13_000)

    assert all(result.HasField("state") for result in capped.results)
    assert [result.error.code for result in capped.ranges][-1] == RESOURCE_EXHAUSTED
    assert [result.index for result in capped.ranges] == list(range(5))
    assert not capped.ranges[-1].whole


class TimedCall:
    """A call with so many seconds left."""

    def __init__(self, left: float | None) -> None:
        self._left = left

    def time_remaining(self) -> float | None:
        return self._left


@pytest.mark.parametrize(("left", "deadline"), [(None, 105.0), (10.0, 109.9), (0.1, 100.09), (-1.0, 99.0)])
def test_the_deadline_lies_a_little_before_the_callers(in_flight: InFlight, left: float, deadline: float) -> None:
    limits = CallLimits(in_flight, 5.0, math.inf, 1000, lambda: 100.0)

    assert limits.deadline_of(TimedCall(left)) == pytest.approx(deadline)  # type: ignore[arg-type]


@pytest.mark.parametrize(("left", "deadline"), [(None, 103.0), (3600.0, 103.0), (2.0, 101.9)])
def test_no_call_is_worked_on_for_longer_than_the_most(in_flight: InFlight, left: float, deadline: float) -> None:
    limits = CallLimits(in_flight, 5.0, 3.0, 1000, lambda: 100.0)

    assert limits.deadline_of(TimedCall(left)) == pytest.approx(deadline)  # type: ignore[arg-type]


class Call:
    """A call that ends when the test says so."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[[object], None]] = []

    def add_done_callback(self, callback: Callable[[object], None]) -> None:
        self._callbacks.append(callback)

    async def abort(self, code: grpc.StatusCode, details: str, trailing_metadata: object) -> None:
        raise AbortError(f"{code.name}: {details}")

    def end(self) -> None:
        for callback in self._callbacks:
            callback(self)


class Servicer:
    """Answers every request with an answer of the same size."""

    def __init__(self, in_flight: InFlight) -> None:
        self.limits = CallLimits(in_flight, 5.0, 60.0, 1000, lambda: 0.0)
        self.worked = 0

    @served
    async def method(self, request: query.ListShardsRequest, context: object) -> query.ListShardsRequest:
        self.worked += 1
        return request


@pytest.fixture
def in_flight(metrics: Metrics) -> InFlight:
    return InFlight(10_000, metrics)


def held(metrics: Metrics) -> float | None:
    return metrics.registry.get_sample_value("query_service_in_flight_bytes")


def test_bytes_are_held_until_the_call_is_over(in_flight: InFlight, metrics: Metrics) -> None:
    first, second = Call(), Call()
    in_flight.hold(first, 9_000)  # type: ignore[arg-type]
    with pytest.raises(OverloadedError, match="ask again later"):
        in_flight.hold(second, 1_001)  # type: ignore[arg-type]
    assert held(metrics) == 9_000

    first.end()
    in_flight.hold(second, 10_000)  # type: ignore[arg-type]

    assert held(metrics) == 10_000


async def test_a_call_holds_its_request_and_its_answer(in_flight: InFlight, metrics: Metrics) -> None:
    call, servicer, request = Call(), Servicer(in_flight), query.ListShardsRequest(store="s" * 2_000)
    await servicer.method(request, call)  # type: ignore[arg-type]
    assert held(metrics) == 1_024 + 2 * request.ByteSize()

    call.end()

    assert held(metrics) == 0


def test_a_batch_holds_what_its_keys_take_beside_their_bytes(in_flight: InFlight, metrics: Metrics) -> None:
    """A key of five bytes takes hundreds while it waits, so bytes alone would let long polls fill the memory."""
    many = query.BatchGetStatesRequest(store="s", keys=[query_pb2.KeyQuery() for _ in range(15)])
    with pytest.raises(OverloadedError):
        in_flight.hold_queries(Call(), many)  # type: ignore[arg-type]
    many.keys.pop()
    in_flight.hold_queries(Call(), many)  # type: ignore[arg-type]

    assert held(metrics) == 14 * 700


async def test_a_call_too_many_is_not_worked_on(in_flight: InFlight, metrics: Metrics) -> None:
    call, servicer = Call(), Servicer(in_flight)
    with pytest.raises(AbortError, match="RESOURCE_EXHAUSTED"):
        await servicer.method(query.ListShardsRequest(store="s" * 9_500), call)  # type: ignore[arg-type]
    call.end()

    assert servicer.worked == 0
    assert held(metrics) == 0
