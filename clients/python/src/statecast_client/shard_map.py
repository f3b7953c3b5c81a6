"""The shard map, as an instance reported it, and the choice of the instance to ask."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from statecast.partitioning import PARTITIONERS
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query

GroupHashes = tuple[int, ...]
"""The hash of a group by each of PARTITIONERS, in their order. Keep it beside a key that is asked for often."""

_HASH_INDEXES: dict[int, int] = {
    query_pb2.PARTITIONER_UNSPECIFIED: [*PARTITIONERS].index("murmur2"),
    **{query_pb2.Partitioner.Value(f"PARTITIONER_{name.upper()}"): index for index, name in enumerate(PARTITIONERS)},
}
_HASHES = tuple(PARTITIONERS.values())


def hash_group(group: str) -> GroupHashes:
    return tuple(hash_of(group) for hash_of in PARTITIONERS.values())


@dataclass(frozen=True, slots=True)
class StoreShards:
    """The partitions of one store. `hash_index` is None when the store's partitioner is newer than this client."""

    partitions: int
    hash_index: int | None
    replicas: Mapping[int, tuple[str, ...]]
    """The addresses by partition: those that serve by rank, then those that do not serve yet."""


@dataclass(frozen=True, slots=True)
class ShardMap:
    """The stores and their replicas. An empty map knows nothing: any instance must do."""

    stores: Mapping[str, StoreShards] = field(default_factory=dict)
    addresses: tuple[str, ...] = ()
    """Every address of the map, sorted."""
    version: bytes = b""
    """The service's identifier of this map."""

    @staticmethod
    def of(listing: query.ListShardsResponse) -> "ShardMap":
        replicas: dict[str, dict[int, tuple[str, ...]]] = {}
        for shard in listing.shards:
            by_rank = sorted(shard.replicas, key=lambda replica: (not replica.serving, replica.rank))
            replicas.setdefault(shard.store, {})[shard.partition] = tuple(replica.address for replica in by_rank)
        stores = {
            store.store: StoreShards(
                store.partitions, _HASH_INDEXES.get(store.partitioner), replicas.get(store.store, {})
            )
            for store in listing.stores
            if store.partitions
        }
        addresses = {replica.address for shard in listing.shards for replica in shard.replicas}
        return ShardMap(stores, tuple(sorted(addresses)), listing.version)

    def partition(self, store: str, group: GroupHashes) -> int | None:
        """Returns the partition of a group; None when the map does not know."""
        shards = self.stores.get(store)
        if shards is None or shards.hash_index is None:
            return None
        return group[shards.hash_index] % shards.partitions

    def partition_of(self, store: str, group: str) -> int | None:
        """Returns the partition of a group as `partition` does, without the hashes that its store does not use."""
        shards = self.stores.get(store)
        if shards is None or shards.hash_index is None:
            return None
        return _HASHES[shards.hash_index](group) % shards.partitions

    def replicas(self, store: str, group: GroupHashes | None) -> tuple[str, ...]:
        """Returns the addresses that hold a group, the best first; none when the map does not know."""
        partition = None if group is None else self.partition(store, group)
        return () if partition is None else self.stores[store].replicas.get(partition, ())


class FailedAddresses:
    """Remembers for a while which addresses have failed, and chooses others first."""

    def __init__(self, backoff_s: float, monotonic: Callable[[], float]) -> None:
        self._backoff_s = backoff_s
        self._monotonic = monotonic
        self._failed_until: dict[str, float] = {}

    def __contains__(self, address: str) -> bool:
        """Returns whether an address has failed and not answered since."""
        return address in self._failed_until

    def choose(self, candidates: Iterable[str], tried: str = "") -> str:
        """Returns the first candidate that has neither been tried nor failed lately, else the first not tried."""
        now = self._monotonic()
        untried = [address for address in candidates if address != tried]
        fresh = (address for address in untried if self._failed_until.get(address, 0.0) <= now)
        return next(fresh, untried[0] if untried else tried)

    def add(self, address: str) -> bool:
        """Notes that an address has failed; returns whether it is the first failure since it last answered."""
        is_first = address not in self._failed_until
        self._failed_until[address] = self._monotonic() + self._backoff_s
        return is_first

    def discard(self, address: str) -> None:
        """Notes that an address has answered."""
        self._failed_until.pop(address, None)


def group_by_owner(owners: Iterable[Hashable], limit: int) -> list[list[int]]:
    """Returns the indices of each owner's items, in batches of at most `limit`."""
    indices: dict[Hashable, list[int]] = {}
    for index, owner in enumerate(owners):
        indices.setdefault(owner, []).append(index)
    return [owned[start : start + limit] for owned in indices.values() for start in range(0, len(owned), limit)]
