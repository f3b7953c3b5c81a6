"""Stores are added to instances that run, and removed from them, while others of theirs are read."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import grpc
import pytest

from statecast.query.v1 import query_service_pb2 as query
from testkit.pytest_plugin import CreateTopic
from testkit.query_instances import Process, Scene

pytestmark = pytest.mark.timeout(120)


async def read_until(ended: asyncio.Event, process: Process, answers: set[object]) -> None:
    """Reads a key until `ended` is set, and collects the answers."""
    while not ended.is_set():
        answers.add(await process.served("a"))


def write(file: Path, stores: Iterable[tuple[str, str]]) -> None:
    """Replaces the file, as a mounted ConfigMap is."""
    lines = [f"  - {{name: {name}, topic: {topic}, message: statecast.orders.v1.Order}}" for name, topic in stores]
    new = file.with_suffix(".new")
    new.write_text("\n".join(["stores:", *lines, ""]))
    new.replace(file)


async def test_stores_come_and_go_while_another_is_read(
    scene: Scene, create_topic: CreateTopic, tmp_path: Path
) -> None:
    scene.write({"a": b"1"})
    quick = {"replicas": 1, "stores_interval_ms": 100}
    one, two = (scene.launch(name, **quick) for name in ("query-1", "query-2"))
    await scene.until_applied(one, 1)
    await scene.until_ready(two)
    ended, answers, file = asyncio.Event(), set[object](), tmp_path / "stores.yaml"
    readers = [asyncio.create_task(read_until(ended, process, answers)) for process in (one, two)]
    rows, added = ("rows", scene.topic), create_topic("added", partitions=4, cleanup_policy="compact")

    async def until_answered(process: Process, store: str, answer: grpc.StatusCode | bytes) -> None:
        async def answered() -> bool:
            return all([await process.served(group, store) == answer for group in "abcdefgh"])

        await scene.until(answered, process)

    async def both_own_some() -> bool:
        listing = await one.stub.ListShards(query.ListShardsRequest(store="extra"))
        return {each.replicas[0].instance for each in listing.shards} == {"query-1", "query-2"}

    # The store has not the name of its topic, so each must hear of it from the others.
    write(file, [rows, ("extra", added)])
    scene.topic = added
    scene.write(dict.fromkeys("abcdefgh", b"2"))
    for process in (one, two):
        await until_answered(process, "extra", b"2")
    await scene.until(both_own_some, one)

    write(file, [rows, ("extra", added), ("extra", "twice")])
    await scene.until(lambda: "there twice" in one.log, one)
    write(file, [rows])
    for process in (one, two):
        await until_answered(process, "extra", grpc.StatusCode.NOT_FOUND)
    ended.set()
    await asyncio.gather(*readers)

    assert answers == {b"1"}, "a read of the other store failed"
