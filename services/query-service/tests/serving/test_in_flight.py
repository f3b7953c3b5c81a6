"""What the calls in work may hold in memory."""

from collections.abc import Callable

import pytest

from query_service.errors import OverloadedError
from query_service.metrics import Metrics
from query_service.serving.in_flight import InFlight, within_memory
from statecast.query.v1 import query_service_pb2 as query


class Call:
    """A call that ends when the test says so."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[[object], None]] = []

    def add_done_callback(self, callback: Callable[[object], None]) -> None:
        self._callbacks.append(callback)

    def end(self) -> None:
        for callback in self._callbacks:
            callback(self)


class Servicer:
    """Answers every request with an answer of the same size."""

    def __init__(self, in_flight: InFlight) -> None:
        self.in_flight = in_flight
        self.worked = 0

    @within_memory
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


async def test_a_call_too_many_is_not_worked_on(in_flight: InFlight, metrics: Metrics) -> None:
    call, servicer = Call(), Servicer(in_flight)
    with pytest.raises(OverloadedError):
        await servicer.method(query.ListShardsRequest(store="s" * 9_500), call)  # type: ignore[arg-type]
    call.end()

    assert servicer.worked == 0
    assert held(metrics) == 0
