"""Following keys on fake instances."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

import grpc
import pytest

from statecast.query.v1 import query_pb2
from statecast.state.v1 import state_pb2
from statecast_client import Change, InvalidError, StatecastClient, UnavailableError
from statecast_client.client import merged
from testkit.waiting import scaled

if TYPE_CHECKING:
    from conftest import Cluster


def value(offset: int, index: int = 0, epoch: int = 1) -> query_pb2.KeyResult:
    position = state_pb2.Position(epoch=epoch, offset=offset)
    return query_pb2.KeyResult(index=index, state=query_pb2.State(position=position, payload=b"%d" % offset))


def gone(offset: int) -> query_pb2.KeyResult:
    absence = query_pb2.Absence(position=state_pb2.Position(epoch=1, offset=offset), deleted=True)
    return query_pb2.KeyResult(index=0, absence=absence)


def failed(code: grpc.StatusCode, index: int = 0) -> query_pb2.KeyResult:
    return query_pb2.KeyResult(index=index, error=query_pb2.KeyError(code=code.value[0], message="told to fail"))


async def watched(cluster: "Cluster", count: int, keys: list[str] | None = None) -> list[Change]:
    changes = cluster.client.watch("rows", keys or ["x"])
    received: list[Change] = []
    async with aclosing(changes), asyncio.timeout(20):
        async for change in changes:
            received.append(change)
            if len(received) == count:
                break
    return received


async def test_a_watch_yields_the_value_and_every_change(cluster: "Cluster") -> None:
    cluster.owner("x").results = [[value(1)], [value(5)], [gone(6)]]
    changes = await watched(cluster, 3)

    assert [change.position.offset for change in changes] == [1, 5, 6]
    assert [change.state is not None for change in changes] == [True, True, False]
    assert changes[2].absence is not None
    assert [each.keys[0].after.offset for each in cluster.owner("x").batches[:3]] == [0, 1, 5]


async def test_a_watch_leaves_out_an_older_value_of_the_same_epoch(cluster: "Cluster") -> None:
    cluster.owner("x").results = [[value(5)], [value(4)], [value(5)], [value(6)], [value(0, epoch=2)]]

    assert [change.position.offset for change in await watched(cluster, 3)] == [5, 6, 0]


async def test_a_watch_covers_keys_of_all_shards(cluster: "Cluster") -> None:
    mine = next(group for group in map(str, range(20)) if cluster.owner(group) is cluster.instances[0])
    others = next(group for group in map(str, range(20)) if cluster.owner(group) is cluster.instances[1])
    for instance in cluster.instances:
        instance.results = [[value(1)]]
    changes = await watched(cluster, 2, [mine, others])

    assert {change.key.group for change in changes} == {mine, others}


async def test_a_watch_follows_its_keys_to_other_instances(cluster: "Cluster") -> None:
    one, other = cluster.instances
    keys = [next(key for key in map(str, range(20)) if cluster.owner(key) is owner) for owner in (one, other)]
    one.peers = other.peers = [one]

    async def end_polls() -> None:
        while not other.batches:
            one.results = one.results or [[]]
            await asyncio.sleep(0.01)

    async with StatecastClient([one.address], refresh_s=0) as client:
        changes = client.watch("rows", keys)
        async with aclosing(changes), asyncio.timeout(scaled(20)):
            one.results = [[value(1), value(1, index=1)]]
            received = [await anext(changes) for _ in range(2)]
            one.peers = other.peers = cluster.instances
            other.results = [[value(1), value(2)]]
            change, _ = await asyncio.gather(anext(changes), end_polls())
            received.append(change)

    assert [each.key.group for each in other.batches[0].keys] == keys[1:]
    assert other.batches[0].keys[0].after.offset == 1
    assert [(keys.index(change.key.group), change.position.offset) for change in received] == [(0, 1), (1, 1), (1, 2)]


async def test_a_watch_goes_on_after_an_outage(cluster: "Cluster") -> None:
    for instance in cluster.instances:
        instance.results = [[failed(grpc.StatusCode.UNAVAILABLE)], [value(1)]]

    assert [change.position.offset for change in await watched(cluster, 1)] == [1]


async def test_a_key_that_cannot_be_read_silences_no_other(cluster: "Cluster") -> None:
    mine = [group for group in map(str, range(40)) if cluster.owner(group) is cluster.instances[0]][:3]
    lost = failed(grpc.StatusCode.UNAVAILABLE, 1)
    cluster.instances[0].results = [[value(1), lost, value(1, 2)], [lost, value(2, 2)], [value(3, 1)]]
    changes = await watched(cluster, 4, mine)

    assert [(mine.index(change.key.group), change.position.offset) for change in changes] == [
        (0, 1),
        (2, 1),
        (2, 2),
        (1, 3),
    ]


async def test_a_wrong_key_ends_a_watch_after_the_changes_of_the_others(cluster: "Cluster") -> None:
    mine = [group for group in map(str, range(40)) if cluster.owner(group) is cluster.instances[0]][:3]
    errors = [failed(grpc.StatusCode.UNAVAILABLE), failed(grpc.StatusCode.INVALID_ARGUMENT, 1)]
    cluster.instances[0].results = [[*errors, value(1, 2)]]
    changes = cluster.client.watch("rows", mine)
    async with aclosing(changes), asyncio.timeout(20):
        assert (await anext(changes)).key.group == mine[2]
        with pytest.raises(InvalidError, match="told to fail"):
            await anext(changes)


async def test_a_permanent_error_is_raised(cluster: "Cluster") -> None:
    cluster.owner("x").failure = grpc.StatusCode.INVALID_ARGUMENT

    with pytest.raises(InvalidError, match="told to fail"):
        await watched(cluster, 1)


async def test_a_watch_without_keys_or_time_to_wait_is_refused(cluster: "Cluster") -> None:
    with pytest.raises(InvalidError, match="keys"):
        cluster.client.watch("rows", [])
    with pytest.raises(InvalidError, match="wait_s"):
        cluster.client.watch("rows", ["x"], wait_s=0)


async def test_a_watch_ends_with_its_client(cluster: "Cluster") -> None:
    changes = cluster.client.watch("rows", ["x"])
    async with aclosing(changes), asyncio.timeout(scaled(20)):
        cluster.owner("x").results = [[value(1)]]
        await anext(changes)
        await cluster.client.close()
        cluster.owner("x").results = [[value(2)], [value(3)]]

        with pytest.raises(UnavailableError, match="closed"):
            [change async for change in changes]


async def test_an_unexpected_error_of_one_source_is_raised() -> None:
    async def fails() -> AsyncGenerator[int, None]:
        yield 1
        raise IndexError("a bug")

    async with asyncio.timeout(scaled(10)):
        with pytest.raises(IndexError, match="a bug"):
            [item async for item in merged([fails()])]


async def test_a_reader_that_stops_leaves_no_poll_behind(cluster: "Cluster") -> None:
    cluster.owner("x").results = [[value(1)]]
    before = len(asyncio.all_tasks())
    await watched(cluster, 1)
    async with asyncio.timeout(10):
        while len(asyncio.all_tasks()) > before + 1:  # noqa: ASYNC110  the fake's own call ends a moment later
            await asyncio.sleep(0.01)
