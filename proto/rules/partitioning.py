"""Which partition of a keyed topic a group is in: a hash over the group, so that any client can route by itself.

Kafka's own partitioner (murmur2) is the default; librdkafka's (crc32) and those of Go's clients (fnv1a,
fnv1a_reference) are for topics that their producers write. Where the package murmurhash2 is installed, it hashes, in a
fifth of the time that Python takes.
"""

from collections.abc import Callable, Iterable, Mapping
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
_FNV_BASIS = 0x811C9DC5
_FNV_PRIME = 0x01000193
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

    Long groups are not cached: a reader that asks for one after the other must not fill the memory with them.
    """
    return _cached_hash(group) if len(group) <= _MAX_CACHED_SIZE else _cached_hash.__wrapped__(group)


@lru_cache(maxsize=_CACHED_GROUPS)
def _cached_hash(group: str) -> int:
    return interpreted_murmur2(group.encode()) & 0x7FFFFFFF


def crc32_hash(group: str) -> int:
    """Returns the CRC-32 of a group, by which producers of librdkafka choose a partition by default."""
    return crc32(group.encode())


def fnv1a(group: str) -> int:
    """Returns the 32-bit FNV-1a hash of a group, as an unsigned number; cached as `interpreted_hash` is."""
    return _cached_fnv1a(group) if len(group) <= _MAX_CACHED_SIZE else _cached_fnv1a.__wrapped__(group)


@lru_cache(maxsize=_CACHED_GROUPS)
def _cached_fnv1a(group: str) -> int:
    state = _FNV_BASIS
    for byte in group.encode():
        state = (state ^ byte) * _FNV_PRIME & _MASK
    return state


def fnv1a_hash(group: str) -> int:
    """Returns the magnitude of FNV-1a as a signed number.

    Sarama's NewHashPartitioner (its default), kafka-go's Hash and librdkafka's fnv1a return the same.
    """
    unsigned = fnv1a(group)
    return min(unsigned, (1 << 32) - unsigned)


def fnv1a_reference_hash(group: str) -> int:
    """Returns FNV-1a without its sign bit, as Sarama's NewReferenceHashPartitioner and kafka-go's ReferenceHash do."""
    return fnv1a(group) & 0x7FFFFFFF


PARTITIONERS: Mapping[str, GroupHash] = {
    "murmur2": murmur2_hash,
    "crc32": crc32_hash,
    "fnv1a": fnv1a_hash,
    "fnv1a_reference": fnv1a_reference_hash,
}
"""The hash of each partitioner, by the name that Kafka, librdkafka and Sarama have for it."""


def partition_of(group: str, partitions: int, hash_group: GroupHash = murmur2_hash) -> int:
    """Returns the partition of a group among `partitions`, as Kafka's BuiltInPartitioner.partitionForKey does."""
    return hash_group(group) % partitions


def count_matches(places: Iterable[tuple[str, int]], partitions: int) -> dict[str, int]:
    """Returns, by partitioner, how many of these groups stand in the partition that it puts them in.

    `places` has groups and the partition in which each of them was seen.
    """
    counts = dict.fromkeys(PARTITIONERS, 0)
    for group, partition in places:
        for name, hash_group in PARTITIONERS.items():
            counts[name] += hash_group(group) % partitions == partition
    return counts


def group_of(key: bytes) -> bytes:
    """Returns the group of a record's key, which is `group`, or `group NUL sort NUL member`."""
    return key.partition(_SEPARATOR)[0]
