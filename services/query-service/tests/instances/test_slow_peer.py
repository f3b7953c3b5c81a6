"""A peer that stands still, between real instances."""

import asyncio
from typing import TYPE_CHECKING

import pytest

from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1 import state_pb2

if TYPE_CHECKING:
    from instances.conftest import Scene

pytestmark = pytest.mark.timeout(180)

GROUPS = [f"order-{number:06d}" for number in range(1, 41)]


def get(group: str) -> query.GetStateRequest:
    return query.GetStateRequest(store="rows", key=state_pb2.StateKey(group=group))


async def test_reads_do_not_wait_for_a_peer_that_stands_still_and_come_back_to_it(scene: "Scene") -> None:
    one = scene.launch("query-1", peer_timeout_ms=60_000, call_timeout_ms=60_000, max_call_ms=60_000)
    other = scene.launch("query-2")
    scene.write(dict.fromkeys(GROUPS, b"row"))
    await scene.until_ready(one, other)
    await scene.until_applied(one, len(GROUPS))
    await scene.until_applied(other, len(GROUPS))
    assert {(await one.stub.GetState(get(group))).freshness.answered_by for group in GROUPS} == {"query-1", "query-2"}
    won_before = one.metric("query_service_hedges_total", outcome="won")

    other.pause()
    answers = await asyncio.gather(*(one.stub.GetState(get(group)) for group in GROUPS * 3))
    answers += [await one.stub.GetState(get(group)) for group in GROUPS]

    assert {answer.freshness.answered_by for answer in answers} == {"query-1"}
    assert one.metric("query_service_hedges_total", outcome="won") > won_before
    assert one.metric("query_service_forwards_total", outcome="unreachable") == 0

    async def both_answer() -> bool:
        return {(await one.stub.GetState(get(group))).freshness.answered_by for group in GROUPS} == {
            one.name,
            other.name,
        }

    other.resume()
    await scene.until(both_answer, one)
