"""Who serves what, as an instance told it: whom to ask for a group, in which order."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast_client.partitioning import partition_of


@dataclass(frozen=True)
class ShardMap:
    """An empty map knows nothing: any instance must do."""

    stores: Mapping[str, query_pb2.Store] = field(default_factory=dict)
    addresses: Mapping[tuple[str, int], tuple[str, ...]] = field(default_factory=dict)

    @staticmethod
    def of(listing: query.ListShardsResponse) -> "ShardMap":
        """Returns the map of a listing."""
        return ShardMap(
            {store.store: store for store in listing.stores},
            {(shard.store, shard.partition): _in_order(shard) for shard in listing.shards},
        )

    def candidates(self, store: str, group: str) -> tuple[str, ...]:
        """Returns the addresses that hold a group, the best first; none when the map does not say."""
        known = self.stores.get(store)
        partition = partition_of(known, group) if known and group else None
        return () if partition is None else self.addresses.get((store, partition), ())

    def instances(self) -> tuple[str, ...]:
        """Returns every address of the map, in a fixed order."""
        return tuple(sorted({address for addresses in self.addresses.values() for address in addresses}))


def _in_order(shard: query_pb2.Shard) -> tuple[str, ...]:
    replicas = sorted(shard.replicas, key=lambda replica: (not replica.serving, replica.rank))
    return tuple(replica.address for replica in replicas)
