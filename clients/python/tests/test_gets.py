"""Lookups that are in flight together are answered as they are alone."""

import asyncio
import random
import time
from typing import TYPE_CHECKING

import grpc
import pytest

from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1 import state_pb2
from statecast_client import (
    AbsentError,
    InvalidError,
    OverloadedError,
    StatecastClient,
    StatecastError,
    UnavailableError,
)
from statecast_client.keys import KeyParts

if TYPE_CHECKING:
    from conftest import Cluster

GROUPS = [f"order-{number}" for number in range(12)]
KINDS = ("present", "present", "present", "absent", "deleted", "large")


async def outcome(client: StatecastClient, store: str, key: KeyParts, bounds: query_pb2.Bounds | None = None) -> object:
    """Returns the outcome of one lookup as a caller sees it, in a form that can be compared."""
    try:
        return await client.get(store, key, bounds=bounds)
    except AbsentError as absent:
        return str(absent), absent.absence, absent.freshness
    except UnavailableError:
        return UnavailableError  # its text names the instance that was asked last
    except StatecastError as error:
        return type(error), str(error)


@pytest.mark.parametrize("seed", range(5))
async def test_many_at_once_are_answered_as_one_after_the_other(cluster: "Cluster", seed: int) -> None:
    chance = random.Random(seed)
    bounds = [None, None, query_pb2.Bounds(max_lag_ms=1), query_pb2.Bounds(max_lag_ms=2)]
    calls: list[tuple[str, KeyParts, query_pb2.Bounds | None]] = [
        (
            chance.choice(("rows", "rows", "rows", "nowhere")),
            chance.choice((f"{chance.choice(KINDS)}-{chance.randrange(40)}", ("g", "1", "m"), "x" * 200, "", "a\0b")),
            chance.choice(bounds),
        )
        for _ in range(150)
    ]
    alone = [await outcome(cluster.client, *call) for call in calls]
    singles = sum(len(instance.gets) for instance in cluster.instances)
    together = await asyncio.gather(*(outcome(cluster.client, *call) for call in calls))

    assert together == alone
    assert sum(len(instance.batches) for instance in cluster.instances) > 0
    assert sum(len(instance.gets) for instance in cluster.instances) < 1.7 * singles


async def test_those_in_flight_together_are_one_batch_for_each_owner(cluster: "Cluster") -> None:
    await cluster.client.shards()
    answers = await asyncio.gather(*(cluster.client.get("rows", group) for group in GROUPS))

    assert [answer.state.key.group for answer in answers] == GROUPS
    assert [answer.freshness.answered_by for answer in answers] == [cluster.owner(group).address for group in GROUPS]
    assert not any(answer.freshness.keys for answer in answers)
    assert [len(instance.batches) for instance in cluster.instances] == [1, 1]
    assert not any(instance.gets for instance in cluster.instances)


async def test_one_key_of_which_no_instance_has_a_replica_fails_alone(cluster: "Cluster") -> None:
    keys: list[KeyParts] = ["lost-1", *GROUPS]
    answers = await asyncio.gather(*(outcome(cluster.client, "rows", key) for key in keys))

    assert answers[0] is UnavailableError
    assert all(isinstance(answer, query.GetStateResponse) for answer in answers[1:])


async def test_a_key_that_is_wrong_spoils_no_other(cluster: "Cluster") -> None:
    keys: list[KeyParts] = [*GROUPS, ("order-0", "sort without a member", "")]
    answers = await asyncio.gather(*(outcome(cluster.client, "rows", key) for key in keys))

    assert [answer.state.key.group for answer in answers if isinstance(answer, query.GetStateResponse)][:12] == GROUPS


async def test_bounds_are_kept_apart_by_their_value_and_partition(cluster: "Cluster") -> None:
    bounds = query_pb2.Bounds(at_least=state_pb2.Position(epoch=1, offset=7))
    await asyncio.gather(
        *(cluster.client.get("rows", group, bounds=bounds) for group in GROUPS),
        *(cluster.client.get("rows", group) for group in GROUPS),
    )
    batches = [batch for instance in cluster.instances for batch in instance.batches]
    bounded = [batch for batch in batches if batch.HasField("bounds")]

    assert all(batch.bounds == bounds for batch in bounded)
    assert len(batches) - len(bounded) == 2
    assert len(bounded) + sum(len(instance.gets) for instance in cluster.instances) == 4


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED])
async def test_a_batch_that_its_owner_fails_is_answered_by_another(cluster: "Cluster", code: grpc.StatusCode) -> None:
    await cluster.client.shards()
    cluster.instances[0].failure = code
    answers = await asyncio.gather(*(cluster.client.get("rows", group) for group in GROUPS))

    assert {answer.freshness.answered_by for answer in answers} == {cluster.instances[1].address}


async def test_callers_of_a_batch_that_nobody_answers_have_their_error_in_time(cluster: "Cluster") -> None:
    async with StatecastClient([each.address for each in cluster.instances], timeout_s=1) as client:
        await client.shards()
        for instance in cluster.instances:
            instance.gate.clear()
        began = time.monotonic()
        answers = await asyncio.gather(*(outcome(client, "rows", group) for group in GROUPS))

    assert answers == [UnavailableError] * len(GROUPS)
    assert time.monotonic() - began < 5
    for instance in cluster.instances:
        instance.gate.set()


async def test_a_caller_that_gives_up_leaves_the_others_their_answers(cluster: "Cluster") -> None:
    await cluster.client.shards()
    for instance in cluster.instances:
        instance.gate.clear()

    async def impatient() -> None:
        async with asyncio.timeout(0.05):
            await cluster.client.get("rows", GROUPS[0])

    patient = [asyncio.create_task(cluster.client.get("rows", group)) for group in GROUPS]
    with pytest.raises(TimeoutError):
        await impatient()
    for instance in cluster.instances:
        instance.gate.set()

    assert [(await task).state.key.group for task in patient] == GROUPS


async def test_a_refusal_of_all_together_is_asked_for_by_halves(cluster: "Cluster") -> None:
    await cluster.client.shards()
    for instance in cluster.instances:
        instance.max_batch = 3
    answers = await asyncio.gather(*(cluster.client.get("rows", group) for group in GROUPS))

    assert [answer.state.key.group for answer in answers] == GROUPS
    assert not any(instance.gets for instance in cluster.instances)


@pytest.mark.parametrize("free_keys", [0, 40])
async def test_an_instance_that_refuses_a_batch_gets_a_few_smaller_ones(cluster: "Cluster", free_keys: int) -> None:
    await cluster.client.shards()
    for instance in cluster.instances:
        instance.free_keys = free_keys
    groups = [f"order-{number}" for number in range(400)]
    answers = await asyncio.gather(*(outcome(cluster.client, "rows", group) for group in groups))

    calls = sum(len(instance.batches) + len(instance.gets) for instance in cluster.instances)
    assert calls <= 40
    if free_keys:
        assert [answer.state.key.group for answer in answers if isinstance(answer, query.GetStateResponse)] == groups
    else:
        assert answers == [(OverloadedError, "too much to do")] * len(groups)


async def test_one_wrong_key_among_many_costs_a_few_smaller_batches(cluster: "Cluster") -> None:
    await cluster.client.shards()
    keys: list[KeyParts] = [f"order-{number}" for number in range(400)]
    keys[123] = ("order-123", "sort without a member", "")
    answers = await asyncio.gather(*(outcome(cluster.client, "rows", key) for key in keys))

    assert sum(isinstance(answer, query.GetStateResponse) for answer in answers) >= len(keys) - 1
    assert sum(len(instance.batches) + len(instance.gets) for instance in cluster.instances) <= 40


async def test_partitions_that_the_owner_has_passed_on_delay_no_others(cluster: "Cluster") -> None:
    await cluster.client.shards()
    for instance in cluster.instances:
        instance.forwards = {1}
    for _ in range(2):
        await asyncio.gather(*(cluster.client.get("rows", f"order-{number}") for number in range(60)))
    batches = [batch for instance in cluster.instances for batch in instance.batches]

    assert len(batches) == 2 + 3


async def test_a_malformed_key_is_refused_without_a_batch(cluster: "Cluster") -> None:
    with pytest.raises(InvalidError):
        await asyncio.gather(cluster.client.get("rows", ""), cluster.client.get("rows", "\0"))

    assert not any(instance.batches for instance in cluster.instances)
