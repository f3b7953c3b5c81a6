"""Which partition a group is in: Kafka's murmur2, so that the edge can call the owner by itself."""

_M = 0x5BD1E995
_SEED = 0x9747B28C
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The 32-bit murmur2 of `data` as org.apache.kafka.common.utils.Utils.murmur2 has it, as an unsigned number."""
    length = len(data)
    h = _SEED ^ length
    whole = length & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        h = (h * _M & _MASK) ^ ((k ^ k >> 24) * _M & _MASK)
    if length > whole:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def group_hash(group: str) -> int:
    """Kafka's toPositive(murmur2(group)): its remainder by the number of partitions is the partition."""
    return murmur2(group.encode()) & 0x7FFFFFFF


def partition(group: str, partitions: int) -> int:
    """The partition of a group, as BuiltInPartitioner.partitionForKey has it."""
    return group_hash(group) % partitions
