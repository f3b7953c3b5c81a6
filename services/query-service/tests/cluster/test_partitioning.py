"""The partitioner agrees with Kafka's own."""

import pytest

from query_service.cluster.partitioning import HASHES, indexes_by_partition, murmur2, partition_of


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
    assert murmur2(data) == expected & 0xFFFFFFFF


def test_the_partition_of_a_negative_hash_is_positive() -> None:
    assert partition_of("21", 4) == (-973932308 & 0x7FFFFFFF) % 4


def test_a_group_is_hashed_as_utf_8() -> None:
    assert partition_of("größe", 1000) == (murmur2("größe".encode()) & 0x7FFFFFFF) % 1000


def test_groups_are_split_by_partition_in_their_order() -> None:
    groups = [f"order-{number}" for number in range(50)]
    split = indexes_by_partition(groups, 4)

    assert sorted(index for indexes in split.values() for index in indexes) == list(range(50))
    for partition, indexes in split.items():
        assert list(indexes) == sorted(indexes)
        assert {partition_of(groups[index], 4) for index in indexes} == {partition}


def test_groups_of_one_partition_stay_together() -> None:
    assert {key: list(value) for key, value in indexes_by_partition(["a", "b"], 1).items()} == {0: [0, 1]}
    assert indexes_by_partition([], 4) == {}


def test_groups_may_be_spread_by_crc_32() -> None:
    hash_of = HASHES["crc32"]

    assert hash_of("123456789") == 0xCBF43926  # the check value of CRC-32
    assert partition_of("123456789", 9, hash_of) == 0xCBF43926 % 9
    assert indexes_by_partition(["123456789"], 9, hash_of) == {0xCBF43926 % 9: range(1)}
