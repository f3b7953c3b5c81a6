"""Groups lie where Kafka's own partitioner puts them; the vectors come from kafka-clients' Utils.murmur2."""

import pytest

from ws_edge.querying.partitioning import group_hash, murmur2, partition

VECTORS = [
    ("order-000001", 596492369, 1),
    ("customer-0001", 4267899403, 3),
    ("item-0042", 3784429688, 0),
    ("a", 2731586172, 0),
    ("ab", 316155434, 2),
    ("abc", 479470107, 3),
    ("abcd", 2971317748, 0),
    ("Grüße-ß", 4065416886, 2),
]


@pytest.mark.parametrize(("group", "hashed", "place"), VECTORS)
def test_hash_and_partition_are_kafkas(group: str, hashed: int, place: int) -> None:
    assert murmur2(group.encode()) == hashed
    assert partition(group, 4) == place
    assert group_hash(group) % 4 == place
