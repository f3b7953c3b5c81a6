"""Kafka's default partitioners: a hash over the group, so that any client can route by itself."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from struct import unpack_from
from zlib import crc32

SEED = 0x9747B28C
MULTIPLIER = 0x5BD1E995
MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Returns the 32-bit hash as org.apache.kafka.common.utils.Utils.murmur2 does, as an unsigned number."""
    length = len(data)
    words = length >> 2
    state = SEED ^ length
    for word in unpack_from(f"<{words}I", data):
        mixed = word * MULTIPLIER & MASK
        mixed = (mixed ^ mixed >> 24) * MULTIPLIER & MASK
        state = state * MULTIPLIER & MASK ^ mixed
    if length & 3:
        state = (state ^ int.from_bytes(data[words << 2 :], "little")) * MULTIPLIER & MASK
    state = (state ^ state >> 13) * MULTIPLIER & MASK
    return state ^ state >> 15


@lru_cache(maxsize=1 << 16)
def group_hash(group: str) -> int:
    """Returns the non-negative hash of a group. Cached: the same groups are polled again and again."""
    return murmur2(group.encode()) & 0x7FFFFFFF


def crc32_hash(group: str) -> int:
    """Returns the CRC-32 of a group, by which producers of librdkafka choose a partition by default."""
    return crc32(group.encode())


HASHES: Mapping[str, Callable[[str], int]] = {"murmur2": group_hash, "crc32": crc32_hash}


def partition_of(group: str, partitions: int, hash_of: Callable[[str], int] = group_hash) -> int:
    """Returns the partition of a group, as Kafka's BuiltInPartitioner.partitionForKey has it, or by another hash."""
    return hash_of(group) % partitions


def indexes_by_partition(
    groups: Iterable[str], partitions: int, hash_of: Callable[[str], int] = group_hash
) -> dict[int, Sequence[int]]:
    """Returns, for each partition that has any, the places of its groups, from 0 and rising."""
    places = [hash_of(group) % partitions for group in groups]
    if places and places.count(places[0]) == len(places):
        return {places[0]: range(len(places))}
    split: defaultdict[int, list[int]] = defaultdict(list)
    for index, partition in enumerate(places):
        split[partition].append(index)
    return dict(split)
