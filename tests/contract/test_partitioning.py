"""A group is where Kafka's own partitioners put it, so that any client can route by itself."""

import gc
import json
import subprocess
import tracemalloc
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message, Producer
from hypothesis import given
from hypothesis import strategies as st

from statecast.partitioning import (
    PARTITIONERS,
    count_matches,
    crc32_hash,
    fnv1a,
    fnv1a_hash,
    fnv1a_reference_hash,
    group_of,
    interpreted_hash,
    interpreted_murmur2,
    murmur2,
    murmur2_hash,
    partition_of,
)

HERE = Path(__file__).parent
JARS = HERE.parents[1] / "infra" / "local" / "kafka" / "target" / "libs"
VECTORS: list[dict[str, Any]] = json.loads((HERE / "partition_vectors.json").read_text())


def test_the_vectors_are_what_kafkas_own_partitioner_says() -> None:
    command = ["java", "-cp", f"{JARS}/*", str(HERE / "PartitionVectors.java")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert json.loads(printed) == VECTORS


def test_the_vectors_tell_right_from_wrong() -> None:
    assert {vector["partitions"]["4"] for vector in VECTORS} == {0, 1, 2, 3}
    assert any(vector["murmur2"] >= 2**31 for vector in VECTORS)


def test_a_group_is_routed_as_kafka_does() -> None:
    for vector in VECTORS:
        for partitions, expected in vector["partitions"].items():
            assert partition_of(vector["group"], int(partitions)) == expected, vector["group"]


def test_a_group_is_hashed_as_kafka_does() -> None:
    for vector in VECTORS:
        assert murmur2(vector["group"].encode()) == vector["murmur2"], vector["group"]
        assert interpreted_murmur2(vector["group"].encode()) == vector["murmur2"], vector["group"]
        assert murmur2_hash(vector["group"]) == vector["murmur2"] & 0x7FFFFFFF, vector["group"]
        assert interpreted_hash(vector["group"]) == vector["murmur2"] & 0x7FFFFFFF, vector["group"]


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_the_compiled_hash_is_the_interpreted_one(group: str) -> None:
    assert murmur2(group.encode()) == interpreted_murmur2(group.encode())
    assert murmur2_hash(group) == interpreted_hash(group)


def test_the_tests_have_the_compiled_hash() -> None:
    assert find_spec("murmurhash2") is not None


@pytest.mark.parametrize(
    ("data", "expected"),
    [  # as in Kafka's own UtilsTest, by signed 32-bit numbers
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_that_of_kafka(data: bytes, expected: int) -> None:
    assert murmur2(data) == interpreted_murmur2(data) == expected & 0xFFFFFFFF


def test_the_partition_of_a_negative_hash_is_positive() -> None:
    assert partition_of("21", 4) == (-973932308 & 0x7FFFFFFF) % 4


def test_a_group_is_hashed_as_utf_8() -> None:
    assert partition_of("größe", 1000) == (murmur2("größe".encode()) & 0x7FFFFFFF) % 1000


def test_groups_may_be_spread_by_crc_32() -> None:
    assert PARTITIONERS["crc32"] is crc32_hash
    assert crc32_hash("123456789") == 0xCBF43926  # the check value of CRC-32
    assert partition_of("123456789", 9, crc32_hash) == 0xCBF43926 % 9


def test_groups_may_be_spread_by_fnv_1a() -> None:
    assert (fnv1a(""), fnv1a("a"), fnv1a("foobar")) == (0x811C9DC5, 0xE40C292C, 0xBF9CF968)  # the authors' vectors
    for vector in VECTORS:
        group, signed = vector["group"], vector["fnv1a"]
        assert partition_of(group, 12, PARTITIONERS["fnv1a"]) == fnv1a_hash(group) % 12 == abs(signed) % 12, group
        assert fnv1a_reference_hash(group) == signed & 0x7FFFFFFF, group
    assert any(
        partition_of(each["group"], 12, fnv1a_hash) != fnv1a_reference_hash(each["group"]) % 12 for each in VECTORS
    )


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_the_partitioner_that_fits_is_told_from_where_groups_stand(partitioner: str) -> None:
    groups = [vector["group"] for vector in VECTORS]
    counts = count_matches([(group, partition_of(group, 12, PARTITIONERS[partitioner])) for group in groups], 12)

    assert counts[partitioner] == len(groups)
    assert [name for name, matches in counts.items() if matches == len(groups)] == [partitioner]


def test_the_group_is_the_first_part_of_a_key() -> None:
    assert group_of(b"customer-1\x002024\x00order-1") == group_of(b"customer-1") == b"customer-1"


def test_long_groups_are_not_kept() -> None:
    """The hash of a group is cached; who asks for one long group after the other must not fill the memory."""
    gc.collect()
    groups = [f"{number}{'x' * 20_000}" for number in range(60)]
    tracemalloc.start()
    for group in groups:
        partition_of(f"{group}!", 4)
        partition_of(f"{group}!", 4, interpreted_hash)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert kept < 1_000_000


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("setting", "partitioner"),
    [("murmur2_random", "murmur2"), ("consistent_random", "crc32"), ("fnv1a_random", "fnv1a")],
)
def test_a_producer_puts_a_group_where_the_partitioner_says(
    kafka: str, create_topic: Callable[..., str], setting: str, partitioner: str
) -> None:
    topic = create_topic(f"vectors-{partitioner}", partitions=4)
    producer = Producer({"bootstrap.servers": kafka, "partitioner": setting, "enable.idempotence": True})
    put: dict[str, int] = {}

    def note(_error: object, message: Message) -> None:
        key, partition = message.key(), message.partition()
        assert isinstance(key, bytes)
        assert partition is not None
        put[key.decode()] = partition

    # librdkafka spreads empty keys; a group is never empty.
    groups = [vector["group"] for vector in VECTORS if vector["group"]]
    for group in groups:
        producer.produce(topic, key=group.encode(), value=b"", on_delivery=note)
    producer.flush(30)

    assert put == {group: partition_of(group, 4, PARTITIONERS[partitioner]) for group in groups}
