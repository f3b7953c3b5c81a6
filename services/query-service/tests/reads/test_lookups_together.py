"""Lookups that are in flight together are answered as they are alone, wherever the key lies."""

import asyncio
import random
import time

import pytest

from query_service.cluster.view import View
from query_service.errors import AbsentError, LookupFailedError
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1 import state_pb2
from testkit.query_service import MessageReads, apply_row

STORE = "orders-by-key"
GROUPS = [f"order-{number}" for number in range(40)]


def get(group: str, *, bounded: bool = False) -> query.GetStateRequest:
    bounds = query_pb2.Bounds(at_least=state_pb2.Position(epoch=1, offset=0)) if bounded else None
    return query.GetStateRequest(store=STORE, key=state_pb2.StateKey(group=group), bounds=bounds)


async def outcome(lookup: MessageReads, request: query.GetStateRequest) -> object:
    """Returns an answer or error in a comparable form: without how long ago the replica was current."""
    try:
        answer = await lookup.get(request, time.monotonic() + 10)
    except AbsentError as absent:
        absent.freshness.ClearField("lag_ms")
        return str(absent), absent.absence, absent.freshness
    except LookupFailedError as failure:
        return type(failure), str(failure)
    answer.freshness.ClearField("lag_ms")
    return answer


@pytest.fixture
def rows(serving_view: View) -> None:
    """A third of the groups has a row, and a third is deleted."""
    for number, group in enumerate(GROUPS):
        if number % 3:
            apply_row(serving_view, STORE, group, 1, 2 * number, b"row of " + group.encode())
        if number % 3 == 2:
            apply_row(serving_view, STORE, group, 2, 2 * number + 1, None)


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize("seed", range(3))
async def test_many_at_once_are_answered_as_one_after_the_other(lookup: MessageReads, seed: int) -> None:
    chance = random.Random(seed)
    requests = [get(chance.choice(GROUPS), bounded=chance.random() < 0.1) for _ in range(60)]
    alone = [await outcome(lookup, request) for request in requests]
    together = await asyncio.gather(*(outcome(lookup, request) for request in requests))

    assert together == alone
    assert {type(answer) for answer in alone} == {query.GetStateResponse, tuple}


@pytest.mark.usefixtures("rows")
async def test_a_partition_that_is_not_served_fails_its_own_keys_alone(
    lookup: MessageReads, serving_view: View
) -> None:
    serving_view.replicas[STORE, 2].progress.serving = False
    alone = [await outcome(lookup, get(group)) for group in GROUPS]
    together = await asyncio.gather(*(outcome(lookup, get(group)) for group in GROUPS))

    assert [type(answer) for answer in together] == [type(answer) for answer in alone]
    for group, one, other in zip(GROUPS, together, alone, strict=True):
        if serving_view.shard_of(STORE, group)[1] != 2:
            assert one == other


@pytest.mark.usefixtures("rows")
async def test_callers_that_go_away_or_give_up_leave_the_others_their_answers(lookup: MessageReads) -> None:
    alone = [await outcome(lookup, get(group)) for group in GROUPS]
    tasks = [asyncio.create_task(outcome(lookup, get(group))) for group in GROUPS]
    hasty = [asyncio.create_task(lookup.get(get(group), time.monotonic() - 1)) for group in GROUPS[1::3]]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    answers = await asyncio.gather(*tasks, *hasty, return_exceptions=True)

    assert answers[1 : len(tasks) : 2] == alone[1::2]
