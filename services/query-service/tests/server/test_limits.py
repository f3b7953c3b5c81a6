"""Limits of one call: time, memory, and the size of a batch's response."""

import asyncio
import gc
import math
import re
from collections.abc import Callable

import pytest

from query_service.errors import OverloadedError
from query_service.metrics import Metrics
from query_service.server.limits import MIN_CALL_BYTES, CallLimits, InFlight, capped
from query_service.server.methods import Later, Method
from statecast.query.v1.query_service_pb2 import BatchGetStatesResponse

RESOURCE_EXHAUSTED = 8


def response() -> BatchGetStatesResponse:
    message = BatchGetStatesResponse()
    for index in range(10):
        message.results.add(index=index).state.payload = b"x" * 1000
    return message


def test_a_small_response_stays_as_it_is() -> None:
    encoded = response().SerializeToString()

    assert capped(encoded, 1_000_000) == encoded


def test_what_does_not_fit_fails_key_by_key() -> None:
    cut = BatchGetStatesResponse.FromString(capped(response().SerializeToString(), 5_000))
    kept = [result for result in cut.results if result.HasField("state")]
    failed = [result for result in cut.results if result.HasField("error")]

    assert cut.ByteSize() <= 5_100
    assert 3 <= len(kept) < 10
    assert [result.index for result in cut.results] == list(range(10))
    assert {result.error.code for result in failed} == {RESOURCE_EXHAUSTED}


@pytest.mark.parametrize("others", [0, 2])
def test_a_result_that_would_not_fit_alone_names_its_size_and_the_way_out(others: int) -> None:
    large = BatchGetStatesResponse()
    for index in range(others):
        large.results.add(index=index).state.payload = b"row"
    large.results.add(index=7).state.payload = b"x" * (4_000 if others else 3_000)
    cut = BatchGetStatesResponse.FromString(capped(large.SerializeToString(), 3_000))

    assert [(each.index, each.error.code) for each in cut.results][-1] == (7, RESOURCE_EXHAUSTED)
    assert re.search(r"it has [34]0\d\d bytes, .* 3000: accept more by max_response_", cut.results[-1].error.message)
    assert [each.state.payload for each in cut.results[:-1]] == [b"row"] * others


def test_ranges_fail_before_keys_do() -> None:
    large = response()
    for index in range(5):
        large.ranges.add(index=index, whole=True).states.add(payload=b"x" * 1000)
    cut = BatchGetStatesResponse.FromString(capped(large.SerializeToString(), 13_000))

    assert all(result.HasField("state") for result in cut.results)
    assert [result.error.code for result in cut.ranges][-1] == RESOURCE_EXHAUSTED
    assert [result.index for result in cut.ranges] == list(range(5))
    assert not cut.ranges[-1].whole


@pytest.mark.parametrize(
    ("most_s", "left", "deadline"),
    [
        *((math.inf, left, deadline) for left, deadline in ((None, 105.0), (10.0, 109.9), (0.1, 100.09), (-1.0, 99.0))),
        *((3.0, left, deadline) for left, deadline in ((None, 103.0), (3600.0, 103.0), (2.0, 101.9))),
    ],
)
def test_the_deadline_lies_a_little_before_the_callers_and_within_the_most(
    in_flight: InFlight, most_s: float, left: float | None, deadline: float
) -> None:
    limits = CallLimits(in_flight, 5.0, most_s, lambda: 100.0)

    assert limits.deadline(left) == pytest.approx(deadline)


@pytest.fixture
def in_flight(metrics: Metrics) -> InFlight:
    return InFlight(10_000, metrics)


def held(metrics: Metrics) -> float | None:
    return metrics.registry.get_sample_value("query_service_in_flight_bytes")


@pytest.mark.parametrize(
    ("size", "advice"),
    [(1_001, "ask again later"), (10_001, r"needs 10001 bytes .* MAX_IN_FLIGHT_MB allows 10000 .* ask for less")],
)
def test_only_a_call_that_may_fit_later_is_advised_to_ask_again(in_flight: InFlight, size: int, advice: str) -> None:
    in_flight.add(9_000)
    in_flight.check_room(1_000)

    with pytest.raises(OverloadedError, match=advice):
        in_flight.check_room(size)


def method_of(respond: Callable[[bytes, float | None], bytes | Later], in_flight: InFlight, metrics: Metrics) -> Method:
    return Method("service", "Get", respond, in_flight, metrics.calls.of("Get"))


async def test_a_call_that_waits_holds_its_request_and_the_memory_of_the_work(
    in_flight: InFlight, metrics: Metrics
) -> None:
    gate = asyncio.Event()

    async def respond() -> bytes:
        await gate.wait()
        return b"known"

    answer = method_of(lambda *_: Later(respond(), bytes, 700), in_flight, metrics).answer(b"request", None)
    assert isinstance(answer, asyncio.Future)
    during = held(metrics), metrics.calls.of("Get").in_flight
    gate.set()

    assert await answer == b"known"
    await asyncio.sleep(0)
    assert during == (len(b"request") + MIN_CALL_BYTES + 700, 1)
    assert (held(metrics), metrics.calls.of("Get").in_flight) == (0, 0)
    assert metrics.calls.of("Get").outcomes == {"ok": 1}


async def test_an_answer_at_once_holds_nothing_and_is_counted(in_flight: InFlight, metrics: Metrics) -> None:
    method = method_of(lambda request, _: request[::-1], in_flight, metrics)

    assert method.answer(b"request", 3.5) == b"tseuqer"
    assert held(metrics) == 0
    assert metrics.calls.of("Get").outcomes == {"ok": 1}


@pytest.mark.parametrize(("request_bytes", "response_bytes"), [(9_500, 1), (1, 9_500)])
@pytest.mark.parametrize("waits", [False, True])
async def test_a_call_that_there_is_no_memory_for_fails(
    in_flight: InFlight, metrics: Metrics, request_bytes: int, response_bytes: int, waits: bool
) -> None:
    asked: list[int] = []

    async def later() -> bytes:
        return b"x" * (response_bytes + MIN_CALL_BYTES)

    def respond(request: bytes, _left_s: float | None) -> bytes | Later:
        asked.append(len(request))
        return Later(later(), bytes) if waits else b"x" * response_bytes

    async def call() -> bytes:
        answer = method_of(respond, in_flight, metrics).answer(b"x" * request_bytes, None)
        return answer if isinstance(answer, bytes) else await answer

    with pytest.raises(OverloadedError):
        await call()
    await asyncio.sleep(0)

    assert asked == ([1] if request_bytes == 1 else [])
    assert held(metrics) == 0
    assert metrics.calls.of("Get").outcomes == {"OverloadedError": 1}


async def test_a_defect_is_counted_as_interrupted(in_flight: InFlight, metrics: Metrics) -> None:
    async def defect() -> bytes:
        raise ZeroDivisionError

    answer = method_of(lambda *_: Later(defect(), bytes), in_flight, metrics).answer(b"", None)
    assert isinstance(answer, asyncio.Future)
    await asyncio.gather(answer, return_exceptions=True)

    assert metrics.calls.of("Get").outcomes == {"interrupted": 1}


async def test_a_call_that_is_cancelled_before_it_begins_leaves_nothing_behind(
    in_flight: InFlight, metrics: Metrics
) -> None:
    async def respond() -> bytes:
        raise AssertionError

    answer = method_of(lambda *_: Later(respond(), bytes), in_flight, metrics).answer(b"", None)
    assert isinstance(answer, asyncio.Future)
    answer.cancel()
    await asyncio.gather(answer, return_exceptions=True)
    del answer
    gc.collect()  # pytest fails the test for a coroutine that was never awaited

    assert metrics.calls.of("Get").outcomes == {"interrupted": 1}
    assert held(metrics) == 0
