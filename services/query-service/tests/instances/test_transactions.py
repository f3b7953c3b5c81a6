"""A topic of transactional producers: aborted records are never served, and records behind a transaction are told."""

import json
import time
from collections.abc import AsyncIterator
from uuid import uuid4

import grpc
import pytest
from confluent_kafka import Producer

from statecast.partitioning import partition_of
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from testkit.pytest_plugin import CreateTopic
from testkit.query_instances import MakeScene, Process, Scene

pytestmark = pytest.mark.timeout(240)

KEYS = [[f"p-{number}" for number in range(200) if partition_of(f"p-{number}", 2) == each] for each in (0, 1)]
"""Keys of each partition."""


class Payments:
    """A plain topic of two partitions, and its producers."""

    def __init__(self, kafka: str, topic: str, scene: Scene) -> None:
        self.scene, self._kafka, self._topic = scene, kafka, topic
        self._producer = Producer({"bootstrap.servers": kafka, "partitioner": "murmur2_random"})

    def write(self, *keys: str) -> None:
        for key in keys:
            self._producer.produce(self._topic, b'"paid"', key.encode())
        self._producer.flush(30)

    def begin(self, **rows: str) -> Producer:
        """Writes rows in a transaction that is left open."""
        producer = Producer(
            {"bootstrap.servers": self._kafka, "transactional.id": uuid4().hex, "partitioner": "murmur2_random"}
        )
        producer.init_transactions()
        producer.begin_transaction()
        for key, value in rows.items():
            producer.produce(self._topic, json.dumps(value).encode(), key.encode())
        producer.flush(30)
        return producer


@pytest.fixture
async def payments(kafka: str, create_topic: CreateTopic, make_scene: MakeScene) -> AsyncIterator[Payments]:
    topic = create_topic("payments", partitions=2)
    scene = make_scene(topic, f"stores: [{{name: payments, topic: {topic}, message: json, format: plain}}]")
    yield Payments(kafka, topic, scene)
    await scene.close()


async def served(process: Process, key: str, **bounds: int) -> object:
    """Returns the value that an instance serves, or the status of its refusal."""
    answer = await process.served(key, "payments", **bounds)
    return json.loads(answer) if isinstance(answer, bytes) else answer


async def replicas(process: Process) -> list[query_pb2.Replica]:
    return [each.replicas[0] for each in (await process.stub.ListShards(query.ListShardsRequest())).shards]


async def test_what_is_aborted_is_served_by_nobody_and_leaves_no_lag(payments: Payments) -> None:
    aborted, committed = KEYS[0][0], KEYS[1][0]
    payments.begin(**{committed: "paid", aborted: "kept"}).commit_transaction()
    payments.begin(**{committed: "never", aborted: "never"}).abort_transaction()
    one = payments.scene.launch("query-1", replicas=2)
    await payments.scene.until_ready(one)
    two = payments.scene.launch("query-2", replicas=2)
    await payments.scene.until_ready(two)
    for process in (one, two):
        assert [await served(process, key) for key in (committed, aborted)] == ["paid", "kept"]
        assert process.metric("query_service_lag_records") == 0
    assert two.metric("query_service_seeds_total", outcome="peer") == 2
    assert (
        one.metric("query_service_records_total", outcome="applied") == one.metric("query_service_records_total") == 2
    )

    payments.begin(**{committed: "never", aborted: "never"}).abort_transaction()
    payments.write(aborted, committed)

    async def is_current() -> bool:
        return [await served(one, key) for key in (committed, aborted)] == ["paid", "paid"] and all(
            each.lag_records == 0 and each.lag_ms < 2000 for each in await replicas(one)
        )

    await payments.scene.until(is_current, one)


async def test_records_behind_an_open_transaction_are_told_as_lag_and_hold_back_no_other_partition(
    payments: Payments,
) -> None:
    scene, waiting, other = payments.scene, KEYS[0][:40], KEYS[1][0]
    one = scene.launch("query-1", replicas=1)
    payments.write(KEYS[0][50], other)
    await scene.until_applied(one, 2, 2)
    opened = payments.begin(**{KEYS[0][51]: "open"})
    began = time.monotonic()
    payments.write(*waiting, other)
    await scene.until(lambda: "a transaction is open" in one.log, one)
    held_back, current = await replicas(one)
    told_ms = (time.monotonic() - began) * 1000

    assert (held_back.lag_records, current.lag_records) == (41, 0)
    assert held_back.lag_ms > told_ms - 2000 > 2000 > current.lag_ms
    assert await served(one, KEYS[0][50], max_lag_ms=2000) == grpc.StatusCode.FAILED_PRECONDITION
    assert await served(one, KEYS[0][50]) == await served(one, other, max_lag_ms=2000) == "paid"
    assert '"open_offset": 1,' in one.log

    one.stop()
    again = scene.launch("query-1", replicas=1)
    await scene.until_ready(again)
    waited_ms, held_back = (time.monotonic() - began) * 1000, (await replicas(again))[0]

    assert held_back.lag_records == 41
    assert held_back.lag_ms > waited_ms - 2000

    opened.commit_transaction()

    async def is_current() -> bool:
        return all(each.lag_records == 0 and each.lag_ms < 2000 for each in await replicas(again))

    await scene.until(is_current, again)

    assert [await served(again, key) for key in (waiting[0], KEYS[0][51])] == ["paid", "open"]
    assert "reading all partitions again" not in one.log + again.log
