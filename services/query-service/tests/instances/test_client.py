"""The Python client on real instances."""

import asyncio
from contextlib import aclosing

import pytest

from statecast_client import AbsentError, Change, StatecastClient
from testkit.query_instances import Scene

pytestmark = pytest.mark.timeout(180)

GROUPS = [f"order-{number:06d}" for number in range(1, 41)]


async def test_every_key_is_answered_by_its_owner_without_a_forward(scene: Scene) -> None:
    one, _ = await scene.serving(2, {group: group.encode() for group in GROUPS}, replicas=1)
    async with StatecastClient([one.address]) as client:
        answers = [await client.get("rows", group) for group in GROUPS]
        results = await client.batch_get("rows", GROUPS)
        rows = [state.key.group async for state in client.scan("rows", page_size=7)]
        with pytest.raises(AbsentError, match="has no value"):
            await client.get("rows", "nobody")

    assert [answer.state.payload.decode() for answer in answers] == GROUPS
    assert {answer.freshness.answered_by for answer in answers} == {"query-1", "query-2"}
    assert not any(answer.freshness.forwarded for answer in answers)
    assert [result.state.payload.decode() for result in results] == GROUPS
    assert rows == GROUPS


async def test_reads_and_watches_go_on_when_an_instance_is_killed(scene: Scene) -> None:
    one, other = await scene.serving(2, dict.fromkeys(GROUPS, b"before"))
    async with StatecastClient([one.address, other.address]) as client, asyncio.timeout(60):
        changes = client.watch("rows", GROUPS, wait_s=1)
        payloads: dict[str, list[bytes]] = {group: [] for group in GROUPS}

        def note(change: Change) -> None:
            assert change.state is not None
            payloads[change.key.group].append(change.state.payload)

        async with aclosing(changes):
            while not all(payloads.values()):
                note(await anext(changes))
            other.kill()
            for group in GROUPS:
                assert (await client.get("rows", group)).freshness.answered_by == "query-1"
            scene.write(dict.fromkeys(GROUPS, b"after"), sequence=2)
            while not all(values[-1] == b"after" for values in payloads.values()):
                note(await anext(changes))

    assert set(map(tuple, payloads.values())) == {(b"before", b"after")}
