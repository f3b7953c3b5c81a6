"""Which partition a group is in, as the producers of the topic have it."""

from collections.abc import Callable, Mapping
from zlib import crc32

from statecast.query.v1 import query_pb2

_MASK = 0xFFFFFFFF
_MIX = 0x5BD1E995
_SEED = 0x9747B28C


def murmur2(data: bytes) -> int:
    """Returns the 32-bit murmur2 of Kafka's Java client, as an unsigned number."""
    tail = len(data) & 3
    body = memoryview(data)[: len(data) - tail]
    state = _SEED ^ len(data)
    for place in range(0, len(body), 4):
        word = int.from_bytes(body[place : place + 4], "little") * _MIX & _MASK
        state = state * _MIX & _MASK ^ (word ^ word >> 24) * _MIX & _MASK
    if tail:
        state = (state ^ int.from_bytes(data[-tail:], "little")) * _MIX & _MASK
    state = (state ^ state >> 13) * _MIX & _MASK
    return state ^ state >> 15


_HASHES: Mapping[int, Callable[[bytes], int]] = {
    query_pb2.PARTITIONER_UNSPECIFIED: lambda group: murmur2(group) & 0x7FFFFFFF,
    query_pb2.PARTITIONER_MURMUR2: lambda group: murmur2(group) & 0x7FFFFFFF,
    query_pb2.PARTITIONER_CRC32: crc32,
}


def partition_of(store: query_pb2.Store, group: str) -> int | None:
    """Returns the partition of a group; None when the store's partitioner is newer than this client."""
    hash_of = _HASHES.get(store.partitioner)
    return hash_of(group.encode()) % store.partitions if hash_of and store.partitions else None
