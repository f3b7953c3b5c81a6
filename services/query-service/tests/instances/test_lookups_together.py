"""Many lookups at once on real instances, through the client and by way of a peer, while one of them is killed."""

import asyncio
from collections.abc import Awaitable, Callable

import grpc
import pytest

from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.query.v1 import query_service_pb2_grpc as query_grpc
from statecast.state.v1 import state_pb2
from statecast_client import AbsentError, StatecastClient, UnknownStoreError
from statecast_client.errors import ABSENCE
from testkit.query_instances import Scene

pytestmark = pytest.mark.timeout(600)

PRESENT = [f"order-{number:06d}" for number in range(1, 31)]
DELETED = [f"deleted-{number}" for number in range(6)]
ABSENT = [f"absent-{number}" for number in range(6)]
LARGE = [f"large-{number}" for number in range(6)]
GROUPS = [*PRESENT, *DELETED, *ABSENT, *LARGE]
SIZE = 3_000  # the answer of a batch may hold one such row, and not two
CALLERS = 24

Outcome = tuple[str, object]
Get = Callable[[str, str], Awaitable[Outcome]]


def expected(store: str, group: str) -> Outcome:
    if store != "rows":
        return "unknown store", None
    if group in LARGE:
        return "value", group.encode() * (SIZE // len(group))
    if group in PRESENT:
        return "value", group.encode()
    return "absent", group in DELETED


async def by_client(client: StatecastClient, store: str, group: str) -> Outcome:
    try:
        return "value", (await client.get(store, group)).state.payload
    except AbsentError as absent:
        return "absent", absent.absence.deleted
    except UnknownStoreError:
        return "unknown store", None


async def by_stub(stub: "query_grpc.QueryServiceAsyncStub", store: str, group: str) -> Outcome:
    request = query.GetStateRequest(store=store, key=state_pb2.StateKey(group=group))
    try:
        return "value", (await stub.GetState(request, timeout=20)).state.payload
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.NOT_FOUND:
            raise
        trailing = dict(error.trailing_metadata() or ())
        if ABSENCE not in trailing:
            return "unknown store", None
        absence = trailing[ABSENCE]
        assert isinstance(absence, bytes)
        return "absent", query_pb2.Absence.FromString(absence).deleted


async def test_each_caller_has_its_own_answer_while_an_instance_is_killed(scene: Scene) -> None:
    settings = {"max_answer_bytes": 5_000}
    one, other = scene.launch("query-1", **settings), scene.launch("query-2", **settings)
    scene.write({group: group.encode() for group in (*PRESENT, *DELETED)})
    scene.write({group: group.encode() * (SIZE // len(group)) for group in LARGE})
    scene.write(dict.fromkeys(DELETED), sequence=2)
    records = len(PRESENT) + 2 * len(DELETED) + len(LARGE)
    await scene.until_ready(one, other)
    await scene.until_applied(one, records)
    await scene.until_applied(other, records)
    mix = [("rows", group) for group in GROUPS] + [("nowhere", "order-1")]
    wrong: list[tuple[str, str, Outcome]] = []
    rounds = [0] * CALLERS

    async def call(number: int, get: Get) -> None:
        while not done.is_set() or rounds[number] < 2:
            for store, group in mix[number % 7 :: 7]:
                if (answer := await get(store, group)) != expected(store, group):
                    wrong.append((store, group, answer))
            rounds[number] += 1

    done = asyncio.Event()
    async with StatecastClient([one.address, other.address], timeout_s=20) as client:

        async def get(store: str, group: str) -> Outcome:
            return await by_client(client, store, group)

        async def get_by_one(store: str, group: str) -> Outcome:
            return await by_stub(one.stub, store, group)

        callers = [asyncio.create_task(call(number, get_by_one if number % 2 else get)) for number in range(CALLERS)]
        await scene.until(lambda: min(rounds) >= 1, one)
        forwards = one.metric("query_service_forwards_total", outcome="answered")
        other.kill()
        before = list(rounds)
        await scene.until(lambda: all(new > old for new, old in zip(rounds, before, strict=True)), one)
        done.set()
        await asyncio.gather(*callers)

    assert wrong == []
    assert forwards > 0
