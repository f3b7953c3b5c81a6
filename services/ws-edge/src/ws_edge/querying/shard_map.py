"""Which instances of the query service to ask for which partition, in which order."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ShardMap:
    """The shard map as one instance told it. An empty one knows nothing, so that any instance must do."""

    partitions: Mapping[str, int] = field(default_factory=dict)
    """The number of partitions by store."""
    addresses: Mapping[tuple[str, int], tuple[str, ...]] = field(default_factory=dict)
    """The public addresses by store and partition: those that serve by rank, then those that do not yet."""

    def candidates(self, store: str, group_hash: int) -> tuple[str, ...]:
        """The addresses that hold the group's partition, the best first; none when the map does not say."""
        count = self.partitions.get(store)
        return self.addresses.get((store, group_hash % count), ()) if count else ()

    def all_addresses(self) -> frozenset[str]:
        """Every address of the map."""
        return frozenset(address for addresses in self.addresses.values() for address in addresses)


def order(replicas: list[tuple[int, bool, str]]) -> tuple[str, ...]:
    """The addresses of (rank, serving, address) in the order in which to ask them."""
    return tuple(address for _, _, address in sorted(replicas, key=lambda each: (not each[1], each[0])))
