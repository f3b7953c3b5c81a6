"""A call is answered from bytes to bytes: at once where the servicer can, and else by its method."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from query_service.metrics import Metrics
from query_service.serving.call_bytes import fast_answer_of, handler_of
from query_service.serving.call_limits import MIN_CALL_BYTES, CallLimits, InFlight
from statecast.query.v1 import query_service_pb2 as query

METHODS = query.DESCRIPTOR.services_by_name["QueryService"].methods_by_name
REQUEST = query.GetStateRequest(store="s" * 10).SerializeToString()


class Call:
    """A call that ends when the test says so."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[[object], None]] = []

    def time_remaining(self) -> float:
        return 3.0

    def add_done_callback(self, callback: Callable[[object], None]) -> None:
        self._callbacks.append(callback)

    def end(self) -> None:
        for callback in self._callbacks:
            callback(self)


class Servicer:
    """Knows some answers at once, and gives the store's name back by its method."""

    def __init__(self, in_flight: InFlight, fast: dict[str, Any]) -> None:
        self.limits = CallLimits(in_flight, 5.0, 60.0, 1000, lambda: 0.0)
        self.fast = fast

    async def GetState(self, request: query.GetStateRequest, _call: Any) -> query.GetStateResponse:  # noqa: N802
        response = query.GetStateResponse()
        response.state.key.group = request.store
        return response


@pytest.fixture
def in_flight(metrics: Metrics) -> InFlight:
    return InFlight(10_000, metrics)


def held(metrics: Metrics) -> float | None:
    return metrics.registry.get_sample_value("query_service_in_flight_bytes")


async def test_a_fast_answer_is_sent_and_held_until_the_call_is_over(in_flight: InFlight, metrics: Metrics) -> None:
    call: Any = Call()
    answer = await handler_of(Servicer(in_flight, {"GetState": lambda *_: b"known"}), METHODS["GetState"])(
        REQUEST, call
    )
    during = held(metrics)
    call.end()

    assert answer == b"known"
    assert (during, held(metrics)) == (len(REQUEST) + MIN_CALL_BYTES + len(b"known"), 0)


@pytest.mark.parametrize("fast", [{}, {"GetState": lambda *_: None}, {"BatchGetStates": lambda *_: b"other"}])
async def test_what_has_no_fast_answer_is_answered_by_the_method(in_flight: InFlight, fast: dict[str, Any]) -> None:
    call: Any = Call()
    answer = await handler_of(Servicer(in_flight, fast), METHODS["GetState"])(REQUEST, call)

    assert query.GetStateResponse.FromString(answer).state.key.group == "s" * 10


def test_a_servicer_need_not_know_any_fast_answer() -> None:
    assert fast_answer_of(object(), METHODS["GetState"]) is None


async def test_an_answer_that_a_peer_will_have_is_waited_for_with_the_time_that_is_left(
    in_flight: InFlight, metrics: Metrics
) -> None:
    forwarded: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
    left_s: list[float | None] = []

    def fast(_request: bytes, left: float | None) -> "asyncio.Future[bytes | None]":
        left_s.append(left)
        return forwarded

    call: Any = Call()
    answering = asyncio.ensure_future(
        handler_of(Servicer(in_flight, {"GetState": fast}), METHODS["GetState"])(REQUEST, call)
    )
    await asyncio.sleep(0)
    waiting = not answering.done()
    forwarded.set_result(b"known")
    answer = await answering
    during = held(metrics)
    call.end()

    assert (waiting, answer, left_s) == (True, b"known", [3.0])
    assert (during, held(metrics)) == (len(REQUEST) + MIN_CALL_BYTES + len(b"known"), 0)


async def test_what_a_peer_does_not_answer_is_answered_by_the_method(in_flight: InFlight) -> None:
    forwarded: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
    forwarded.set_result(None)
    call: Any = Call()
    answer = await handler_of(Servicer(in_flight, {"GetState": lambda *_: forwarded}), METHODS["GetState"])(
        REQUEST, call
    )

    assert query.GetStateResponse.FromString(answer).state.key.group == "s" * 10
