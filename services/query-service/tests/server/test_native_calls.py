"""How calls of the native server end that wait for a peer; `test_server` and `test_served_forwards` have the rest."""

import asyncio

import pytest
from pygrpc_native import EVENT_CANCEL

from query_service.errors import OverloadedError
from query_service.metrics import Metrics
from query_service.server.limits import InFlight
from query_service.server.methods import Later, Method
from query_service.server.native_calls import NativeCalls
from testkit.waiting import scaled

NEW = EVENT_CANCEL + 100  # any other kind


class Front:
    """Notes how calls end."""

    def __init__(self) -> None:
        self.ended: list[tuple[int, str]] = []

    def respond(self, call_id: int, response: bytes) -> bool:
        self.ended.append((call_id, response.decode()))
        return False

    def fail(self, call_id: int, _code: int, details: str, _metadata: object) -> None:
        self.ended.append((call_id, details))

    def metrics(self) -> None:
        """Knows of no call."""


class Served:
    """Calls answered by a future."""

    def __init__(self, metrics: Metrics) -> None:
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.front, in_flight = Front(), InFlight(10_000, metrics)
        method = Method("service", "Get", lambda *_: Later(self.answer, bytes), in_flight)
        self.calls = NativeCalls(self.front, [method], 10, -1, in_flight)  # type: ignore[arg-type]

    def begin(self) -> None:
        self.calls.take([(NEW, 1, 0, b"request", None, ((), "peer", None))])

    def cancel(self) -> None:
        self.calls.take([(EVENT_CANCEL, 1, 0, None, None, None)])


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_call_has_the_answer_that_it_waited_for(metrics: Metrics) -> None:
    served = Served(metrics)
    served.begin()
    served.answer.set_result(b"there")
    await turns()

    assert served.front.ended == [(1, "there")]


async def test_a_defect_ends_one_call(metrics: Metrics) -> None:
    served = Served(metrics)
    served.begin()
    served.answer.set_exception(ZeroDivisionError("a defect"))
    await turns()

    assert served.front.ended == [(1, "Unexpected <class 'ZeroDivisionError'>: a defect")]


async def test_a_failure_ends_one_call_with_its_status(metrics: Metrics) -> None:
    served = Served(metrics)
    served.begin()
    served.answer.set_exception(OverloadedError("no memory"))
    await turns()

    assert served.front.ended == [(1, "no memory")]


@pytest.mark.parametrize(("grace_s", "response"), [(0.0, "the instance is stopping"), (scaled(10), "there")])
async def test_a_stop_waits_for_answers_and_then_gives_them_up(metrics: Metrics, grace_s: float, response: str) -> None:
    served = Served(metrics)
    served.begin()
    finishing = asyncio.create_task(served.calls.finish(grace_s))
    await turns()
    if grace_s:
        served.answer.set_result(b"there")
    await finishing

    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert served.front.ended == [(1, response)]


async def test_a_client_that_goes_away_cancels_its_answer(metrics: Metrics) -> None:
    served = Served(metrics)
    served.begin()
    served.cancel()
    await turns()

    assert served.answer.cancelled()
