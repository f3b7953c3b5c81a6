"""A topic of JSON bookings that a plain producer wrote, served as it is by several instances."""

import json
from collections.abc import AsyncIterator

import grpc
import pytest
from confluent_kafka import Producer

from statecast.partitioning import PARTITIONERS, partition_of
from statecast.query.v1 import query_service_pb2 as query
from testkit.pytest_plugin import CreateTopic
from testkit.query_instances import MakeScene, Process, Scene

pytestmark = pytest.mark.timeout(180)

CUSTOMERS = [f"customer-{number:04d}" for number in range(1, 91)]
PARTITIONS = 9


class Bookings:
    """The railway's topic, and the instances that read it."""

    def __init__(self, kafka: str, topic: str, scene: Scene) -> None:
        self.scene = scene
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": kafka})
        self.records = 0

    def book(self, customer: str, booked_at: str | None) -> None:
        """Writes the customer's latest booking, or deletes it."""
        value = None if booked_at is None else json.dumps({"customer": customer, "booked_at": booked_at}).encode()
        self._producer.produce(self._topic, value, customer.encode())
        self.records += 1

    def flush(self) -> None:
        self._producer.flush(30)

    async def until_applied(self, *processes: Process) -> None:
        self.flush()
        for process in processes:
            await self.scene.until_applied(process, self.records, PARTITIONS)


@pytest.fixture
async def bookings(kafka: str, create_topic: CreateTopic, make_scene: MakeScene) -> AsyncIterator[Bookings]:
    topic = create_topic("bookings", partitions=PARTITIONS)
    fields = "message: json, format: plain, partitioner: crc32, replicas: 2, history: {versions: 2}"
    scene = make_scene(topic, f"stores: [{{name: bookings, topic: {topic}, {fields}}}]")
    yield Bookings(kafka, topic, scene)
    await scene.close()


async def latest(process: Process, customer: str) -> object:
    """Returns the customer's latest booking as an instance answers it; None when there is none."""
    answer = await process.served(customer, "bookings")
    if answer == grpc.StatusCode.NOT_FOUND:
        return None
    assert isinstance(answer, bytes)
    return json.loads(answer)["booked_at"]


async def test_any_instance_answers_any_booking_and_goes_on_after_a_restart(bookings: Bookings) -> None:
    instances = [bookings.scene.launch(f"query-{number}") for number in (1, 2, 3)]
    for customer in CUSTOMERS:
        bookings.book(customer, "first")
        bookings.book(customer, "second")
    await bookings.until_applied(*instances)
    answerers = set()
    for process in instances:
        for customer in CUSTOMERS:
            answer = await process.read(customer, "bookings")

            assert json.loads(answer.state.payload) == {"customer": customer, "booked_at": "second"}
            assert answer.freshness.partition == partition_of(customer, PARTITIONS, PARTITIONERS["crc32"])
            answerers.add(answer.freshness.answered_by)
    assert answerers == {"query-1", "query-2", "query-3"}

    bookings.book(CUSTOMERS[0], None)
    bookings.book(CUSTOMERS[1], "third")
    await bookings.until_applied(*instances)
    for process in instances:
        assert [await latest(process, customer) for customer in CUSTOMERS[:3]] == [None, "third", "second"]
        assert process.metric("query_service_misplaced_records_total") == 0

    instances[0].kill()
    bookings.book(CUSTOMERS[2], "third")
    again = bookings.scene.launch("query-1")
    await bookings.until_applied(again)
    held = [json.loads(line) for line in again.log.splitlines() if '"holding"' in line]

    assert sum(each["from_offset"] for each in held) > 0
    assert [await latest(again, customer) for customer in CUSTOMERS[:4]] == [None, "third", "third", "second"]


async def test_the_shard_map_says_what_the_values_are_and_how_keys_are_spread(bookings: Bookings) -> None:
    one = bookings.scene.launch("query-1")
    await bookings.until_applied(one)
    (store,) = (await one.stub.ListShards(query.ListShardsRequest())).stores

    assert (store.message, store.partitions, store.history) == ("json", PARTITIONS, True)
