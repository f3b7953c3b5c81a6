"""How calls of the native server end that wait for a peer; `test_server` and `test_served_forwards` have the rest."""

import asyncio

import pytest
from pygrpc_native import EVENT_CANCEL

from query_service.errors import OverloadedError
from query_service.metrics import Metrics
from query_service.serving.call_limits import Context, InFlight
from query_service.serving.grpc_server import Method
from query_service.serving.native_calls import NativeCalls
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
    """Calls whose fast answer is a future, and whose servicer answers once its gate is open."""

    def __init__(self, metrics: Metrics) -> None:
        self.answer: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        self.gate = asyncio.Event()
        self.working = 0
        self.front = Front()
        method = Method("service", "Get", self._work, lambda *_: self.answer, self._work)
        self.calls = NativeCalls(self.front, [method], 10, -1, InFlight(1000, metrics))  # type: ignore[arg-type]

    def begin(self) -> None:
        self.calls.take([(NEW, 1, 0, b"request", None, ((), "peer", None))])

    def cancel(self) -> None:
        self.calls.take([(EVENT_CANCEL, 1, 0, None, None, None)])

    async def _work(self, _request: bytes, _call: Context) -> bytes:
        self.working += 1
        try:
            await self.gate.wait()
        finally:
            self.working -= 1
        return b"here"


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("answer", "response"), [(b"there", "there"), (None, "here")])
async def test_a_call_has_the_answer_of_the_peer_or_else_of_the_servicer(
    metrics: Metrics, answer: bytes | None, response: str
) -> None:
    served = Served(metrics)
    served.gate.set()
    served.begin()
    served.answer.set_result(answer)
    await turns()

    assert served.front.ended == [(1, response)]


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


@pytest.mark.parametrize("turns_before", [0, 1, 5])
@pytest.mark.parametrize(("grace_s", "response"), [(0.0, "the instance is stopping"), (scaled(10), "here")])
async def test_a_stop_leaves_no_task_behind_when_the_peer_has_just_had_no_answer(
    metrics: Metrics, turns_before: int, grace_s: float, response: str
) -> None:
    served = Served(metrics)
    if grace_s:
        served.gate.set()
    served.begin()
    served.answer.set_result(None)
    for _ in range(turns_before):
        await asyncio.sleep(0)
    await served.calls.finish(grace_s)

    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert served.working == 0
    assert served.front.ended == [(1, response)]


@pytest.mark.parametrize("turns_before", [0, 1, 5])
async def test_a_client_that_goes_away_when_the_peer_has_no_answer_is_not_worked_for(
    metrics: Metrics, turns_before: int
) -> None:
    """Also when it goes in the turn of the event loop in which that is known."""
    served = Served(metrics)
    served.begin()
    served.answer.set_result(None)
    for _ in range(turns_before):
        await asyncio.sleep(0)
    served.cancel()
    await turns()
    working = served.working
    served.gate.set()
    await turns()

    assert working == 0
