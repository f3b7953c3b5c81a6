"""The partitions are those of Kafka's Java client."""

import json
from pathlib import Path
from typing import Any

import pytest

from statecast.query.v1 import query_pb2
from statecast_client.partitioning import murmur2, partition_of

# Made by BuiltInPartitioner.partitionForKey and Utils.murmur2 of kafka-clients 4.3.1, over the group part of each key.
VECTORS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("partition_vectors.json").read_text())


@pytest.mark.parametrize("vector", VECTORS, ids=range(len(VECTORS)))
def test_hash_and_partition_of_a_group_are_kafkas(vector: dict[str, Any]) -> None:
    assert murmur2(vector["group"].encode()) == vector["murmur2"]
    for partitions, expected in vector["partitions"].items():
        store = query_pb2.Store(partitions=int(partitions), partitioner=query_pb2.PARTITIONER_MURMUR2)
        assert partition_of(store, vector["group"]) == expected


def test_all_members_of_a_group_are_in_its_partition() -> None:
    members = [vector for vector in VECTORS if vector.get("member") and vector["group"] == "customer-0001"]
    alone = next(vector for vector in VECTORS if vector["group"] == "customer-0001" and "member" not in vector)

    assert len(members) == 2
    assert all(member["partitions"] == alone["partitions"] for member in members)


def test_a_store_that_does_not_say_is_spread_by_murmur2() -> None:
    assert partition_of(query_pb2.Store(partitions=4), "customer-0001") == 3


def test_a_store_of_librdkafkas_default_is_spread_by_crc32() -> None:
    store = query_pb2.Store(partitions=1000, partitioner=query_pb2.PARTITIONER_CRC32)

    assert partition_of(store, "123456789") == 0xCBF43926 % 1000


def test_a_partitioner_of_tomorrow_is_not_guessed() -> None:
    store = query_pb2.Store(partitions=4)
    store.partitioner = 99  # type: ignore[assignment]

    assert partition_of(store, "a") is None
