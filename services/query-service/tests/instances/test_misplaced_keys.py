"""Plain topics that others spread, enlarge or make anew: a key is served as it is, or refused with the reason."""

import json
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial

import grpc
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AdminClient,
    NewPartitions,
    NewTopic,
)

from statecast.partitioning import fnv1a_hash, partition_of
from statecast.query.v1 import query_service_pb2 as query
from testkit.pytest_plugin import CreateTopic
from testkit.query_instances import MakeScene, Process, Scene
from testkit.topics import grow_topic
from testkit.waiting import wait_until

pytestmark = pytest.mark.timeout(240)

KEYS = [f"c-{number:03d}" for number in range(200)]
REFUSED = grpc.StatusCode.FAILED_PRECONDITION
ABSENT = grpc.StatusCode.NOT_FOUND


class Customers:
    """A plain topic, served as `rows`."""

    def __init__(self, kafka: str, topic: str, scene: Scene) -> None:
        self.kafka, self.topic, self.scene = kafka, topic, scene
        self.admin = AdminClient({"bootstrap.servers": kafka})

    def write(self, keys: Iterable[str], value: object, partitioner: str = "murmur2_random") -> None:
        producer = Producer({"bootstrap.servers": self.kafka, "partitioner": partitioner})
        for key in keys:
            producer.produce(self.topic, json.dumps(value).encode(), key.encode())
        producer.flush(30)


MakeCustomers = Callable[[int], Customers]


@pytest.fixture
async def customers(kafka: str, create_topic: CreateTopic, make_scene: MakeScene) -> AsyncIterator[MakeCustomers]:
    scenes: list[Scene] = []

    def make(partitions: int) -> Customers:
        topic = create_topic("customers", partitions=partitions)
        scenes.append(make_scene(topic, f"stores: [{{name: rows, topic: {topic}, message: json, format: plain}}]"))
        return Customers(kafka, topic, scenes[-1])

    yield make
    for scene in scenes:
        await scene.close()


def knows(process: Process, misplaced: int) -> bool:
    return process.metric("query_service_misplaced_keys") == misplaced


async def served(process: Process, keys: Iterable[str]) -> dict[str, object]:
    """Returns the value of each key at an instance, or the status of its refusal."""
    answers = {key: await process.served(key) for key in keys}
    return {key: json.loads(each) if isinstance(each, bytes) else each for key, each in answers.items()}


async def test_keys_that_another_partitioner_spread_are_refused_with_the_one_that_fits(
    customers: MakeCustomers,
) -> None:
    topic = customers(12)
    topic.write(KEYS, "row", "fnv1a_random")
    scene = topic.scene
    one, two = (scene.launch(name, replicas=1) for name in ("query-1", "query-2"))
    misplaced = {key for key in KEYS if partition_of(key, 12, fnv1a_hash) != partition_of(key, 12)}
    expected = {key: REFUSED if key in misplaced else "row" for key in KEYS} | {"c-none": ABSENT}
    for process in (one, two):
        await scene.until_applied(process, len(KEYS), 12)
        await scene.until(partial(knows, process, len(misplaced)), process)

        assert await served(process, expected) == expected

    batch = query.BatchGetStatesRequest(store="rows")
    for key in KEYS:
        batch.keys.add().key.group = key
    results = (await one.stub.BatchGetStates(batch)).results
    listed = (await one.stub.ListShards(query.ListShardsRequest())).stores[0].misplaced

    assert {KEYS[each.index] for each in results if each.error.code} == misplaced
    assert "where `fnv1a` puts them: set `partitioner: fnv1a` in its store" in listed
    assert f"{len(misplaced)} of its keys" in listed
    assert "lookups of misplaced keys are refused" in one.log

    one.stop()
    one = scene.launch("query-1", replicas=1)
    await scene.until_ready(one)

    assert await served(one, expected) == expected

    two.stop()
    one.stop()
    file = one.settings["stores"]
    file.write_text(file.read_text().replace("format: plain", "format: plain, partitioner: fnv1a"))  # type: ignore[attr-defined]
    again = scene.launch("query-1", replicas=1)
    await scene.until_applied(again, len(KEYS), 12)

    assert await served(again, expected) == dict.fromkeys(KEYS, "row") | {"c-none": ABSENT}


async def test_no_key_is_absent_or_old_when_its_topic_is_given_more_partitions(customers: MakeCustomers) -> None:
    topic, before, after = customers(2), KEYS[:40], KEYS[20:60]
    scene = topic.scene
    one = scene.launch("query-1", replicas=1)
    topic.write(before, "before")
    await scene.until_applied(one, len(before), 2)
    topic.admin.create_partitions([NewPartitions(topic.topic, 4)])[topic.topic].result()

    def is_known() -> bool:
        return len(topic.admin.list_topics(topic.topic, timeout=10).topics[topic.topic].partitions) == 4

    wait_until(is_known, "the topic has no more partitions")
    topic.write(after, "after")
    moved = {key for key in before if partition_of(key, 4) != partition_of(key, 2)}
    expected: dict[str, object] = {**dict.fromkeys(before, "before"), **dict.fromkeys(after, "after")}
    expected |= dict.fromkeys(moved, REFUSED)

    async def is_exact() -> bool:
        return await served(one, expected) == expected

    await scene.until(is_exact, one)

    assert "where 2 partitions put them: the topic was given more" in one.log

    one.stop()
    again = scene.launch("query-1", replicas=1)
    await scene.until_ready(again)

    assert await served(again, expected) == expected

    again.kill()
    again.wipe()
    anew = scene.launch("query-1", replicas=1)
    await scene.until_ready(anew)

    assert await served(anew, expected) == expected


async def test_a_keyed_topic_that_grew_while_nothing_ran_is_refused_with_the_way_out(kafka: str, scene: Scene) -> None:
    one = scene.launch("query-1", replicas=1)
    scene.write(dict.fromkeys(KEYS[:40], b'"row"'))
    await scene.until_applied(one, 40)
    one.stop()
    grow_topic(kafka, scene.topic, 8)
    again = scene.launch("query-1", replicas=1)
    await scene.until_ready(again)
    moved = {key for key in KEYS[:40] if partition_of(key, 8) != partition_of(key, 4)}
    expected = {key: REFUSED if key in moved else "row" for key in KEYS[:40]}
    await scene.until(partial(knows, again, len(moved)), again)

    assert await served(again, expected) == expected
    assert "where 4 partitions put them: the topic was given more; begin a new generation of its pipeline" in again.log


async def test_a_topic_that_is_made_anew_and_filled_at_once_is_read_from_its_beginning(
    customers: MakeCustomers,
) -> None:
    topic = customers(1)
    one = topic.scene.launch("query-1", replicas=1)
    topic.write(KEYS[:14], "old")
    await topic.scene.until_applied(one, 14, 1)
    topic.admin.delete_topics([topic.topic])[topic.topic].result()

    def is_made() -> bool:
        try:
            topic.admin.create_topics([NewTopic(topic.topic, 1, 1)])[topic.topic].result()
        except KafkaException:
            return False
        return True

    wait_until(is_made, "the topic is not made anew", interval_s=0.01)
    topic.write(KEYS[100:160], "new")
    expected = dict.fromkeys(KEYS[:14], ABSENT) | dict.fromkeys(KEYS[100:160], "new")

    async def is_exact() -> bool:
        return await served(one, expected) == expected

    await topic.scene.until(is_exact, one)

    assert "the topic was recreated; rebuilding the store" in one.log
