"""Where the keys of a store belong: in the partition that its partitioner gives to their group."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from zlib import crc32

import confluent_kafka

from statecast.partitioning import fnv1a_reference_hash, group_of

PARTITION_OF: Mapping[str, Callable[[bytes, int], int]] = {
    "murmur2": confluent_kafka.murmur2,
    "crc32": lambda group, partitions: crc32(group) % partitions,
    "fnv1a": confluent_kafka.fnv1a,
    "fnv1a_reference": lambda group, partitions: fnv1a_reference_hash(group.decode()) % partitions,
}
"""The partitioners of the contract over bytes: every record that is applied and every key of a batch is hashed once."""


@dataclass(frozen=True)
class Spread:
    """One partition among those of a topic."""

    partitioner: str
    partitions: int
    partition: int

    @property
    def note(self) -> bytes:
        """Returns a store's note of the spread by which its keys were checked."""
        return f"{self.partitioner}/{self.partitions}".encode()

    def misplaced(self, keys: Sequence[bytes]) -> list[bytes]:
        """Returns the row keys with a group that belongs into another partition."""
        if self.partitions == 1:
            return []
        groups = [group_of(key) for key in keys] if 0 in b"".join(keys) else keys
        numbers = list(map(PARTITION_OF[self.partitioner], groups, repeat(self.partitions)))
        if numbers.count(self.partition) == len(numbers):
            return []
        return [key for key, number in zip(keys, numbers, strict=True) if number != self.partition]
