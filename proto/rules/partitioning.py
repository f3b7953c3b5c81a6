"""Which partition of a keyed topic a group is in: a hash over the group, so that any client can route by itself.

Kafka's own partitioner (murmur2) is the default; librdkafka's (crc32) is for topics that its producers write. Where the
package murmurhash2 is installed, it hashes, in a fifth of the time that Python takes.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from struct import unpack_from
from zlib import crc32

_compiled: Callable[[bytes, int], int] | None = None
with suppress(ImportError):  # it has no wheel for every platform
    from murmurhash2 import murmurhash2 as _compiled

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_MASK = 0xFFFFFFFF
_SEPARATOR = b"\0"
_MAX_CACHED_SIZE = 128
_CACHED_GROUPS = 4096

GroupHash = Callable[[str], int]
"""The hash of a group; its remainder by the number of partitions is the partition."""


def murmur2(data: bytes) -> int:
    """Returns the 32-bit hash as org.apache.kafka.common.utils.Utils.murmur2 does, as an unsigned number."""
    return interpreted_murmur2(data) if _compiled is None else _compiled(data, _SEED)


def interpreted_murmur2(data: bytes) -> int:
    """Returns the same hash, in Python alone."""
    length = len(data)
    words = length >> 2
    state = _SEED ^ length
    for word in unpack_from(f"<{words}I", data):
        mixed = word * _MULTIPLIER & _MASK
        mixed = (mixed ^ mixed >> 24) * _MULTIPLIER & _MASK
        state = state * _MULTIPLIER & _MASK ^ mixed
    if length & 3:
        state = (state ^ int.from_bytes(data[words << 2 :], "little")) * _MULTIPLIER & _MASK
    state = (state ^ state >> 13) * _MULTIPLIER & _MASK
    return state ^ state >> 15


def murmur2_hash(group: str) -> int:
    """Returns Kafka's toPositive(murmur2(group))."""
    if _compiled is not None:
        return _compiled(group.encode(), _SEED) & 0x7FFFFFFF
    return interpreted_hash(group)


def interpreted_hash(group: str) -> int:
    """Returns the same, in Python alone: cached, because readers poll the same groups again and again.

    Long groups are not: whoever asks for one after the other must not fill the memory with them.
    """
    return _cached_hash(group) if len(group) <= _MAX_CACHED_SIZE else _cached_hash.__wrapped__(group)


@lru_cache(maxsize=_CACHED_GROUPS)
def _cached_hash(group: str) -> int:
    return interpreted_murmur2(group.encode()) & 0x7FFFFFFF


def crc32_hash(group: str) -> int:
    """Returns the CRC-32 of a group, by which producers of librdkafka choose a partition by default."""
    return crc32(group.encode())


PARTITIONERS: Mapping[str, GroupHash] = {"murmur2": murmur2_hash, "crc32": crc32_hash}
"""The hash of each partitioner, by the name that Kafka and librdkafka have for it."""


def partition_of(group: str, partitions: int, hash_group: GroupHash = murmur2_hash) -> int:
    """Returns the partition of a group among `partitions`, as Kafka's BuiltInPartitioner.partitionForKey does."""
    return hash_group(group) % partitions


def indexes_by_partition(
    groups: Iterable[str], partitions: int, hash_group: GroupHash = murmur2_hash
) -> dict[int, Sequence[int]]:
    """Returns, for each partition that has any, the indexes of its groups, from 0 and rising."""
    numbers = [hash_group(group) % partitions for group in groups]
    if numbers and numbers.count(numbers[0]) == len(numbers):
        return {numbers[0]: range(len(numbers))}
    indexes: defaultdict[int, list[int]] = defaultdict(list)
    for index, number in enumerate(numbers):
        indexes[number].append(index)
    return dict(indexes)


def group_of(key: bytes) -> bytes:
    """Returns the group of a record's key, which is `group`, or `group NUL sort NUL member`."""
    return key.partition(_SEPARATOR)[0]
