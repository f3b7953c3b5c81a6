"""Everybody puts a group where Kafka's own partitioner puts it, so that any client can route by itself."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message, Producer

from query_service.cluster import partitioning as query_partitioning
from statecast.query.v1 import query_pb2
from statecast_client import partitioning as client_partitioning
from ws_edge.querying import partitioning as edge_partitioning

HERE = Path(__file__).parent
JARS = HERE.parents[1] / "infra" / "local" / "kafka" / "target" / "libs"
VECTORS: list[dict[str, Any]] = json.loads((HERE / "partition_vectors.json").read_text())

PartitionOf = Callable[[str, int], int | None]
ROUTERS: dict[str, PartitionOf] = {
    "query-service": query_partitioning.partition_of,
    "ws-edge": edge_partitioning.partition,
    "statecast-client": lambda group, partitions: client_partitioning.partition_of(
        query_pb2.Store(partitions=partitions), group
    ),
}


def test_the_vectors_are_what_kafkas_own_partitioner_says() -> None:
    command = ["java", "-cp", f"{JARS}/*", str(HERE / "PartitionVectors.java")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert json.loads(printed) == VECTORS


def test_the_vectors_tell_right_from_wrong() -> None:
    assert {vector["partitions"]["4"] for vector in VECTORS} == {0, 1, 2, 3}
    assert any(vector["murmur2"] >= 2**31 for vector in VECTORS)


@pytest.mark.parametrize("service", ROUTERS)
def test_a_service_routes_a_group_as_kafka_does(service: str) -> None:
    for vector in VECTORS:
        for partitions, expected in vector["partitions"].items():
            assert ROUTERS[service](vector["group"], int(partitions)) == expected, vector["group"]


@pytest.mark.parametrize("module", [query_partitioning, edge_partitioning, client_partitioning], ids=[*ROUTERS])
def test_a_service_hashes_as_kafka_does(module: Any) -> None:
    for vector in VECTORS:
        assert module.murmur2(vector["group"].encode()) == vector["murmur2"], vector["group"]


@pytest.mark.kafka
def test_a_producer_with_murmur2_puts_a_key_where_kafka_does(kafka: str, create_topic: Callable[..., str]) -> None:
    topic = create_topic("vectors", partitions=4)
    producer = Producer({"bootstrap.servers": kafka, "partitioner": "murmur2_random", "enable.idempotence": True})
    put: dict[str, int] = {}

    def note(_error: object, message: Message) -> None:
        key, partition = message.key(), message.partition()
        assert isinstance(key, bytes)
        assert partition is not None
        put[key.decode()] = partition

    # librdkafka spreads empty keys; a group is never empty.
    expected = {vector["group"]: vector["partitions"]["4"] for vector in VECTORS if vector["group"]}
    for group in expected:
        producer.produce(topic, key=group.encode(), value=b"", on_delivery=note)
    producer.flush(30)

    assert put == expected
