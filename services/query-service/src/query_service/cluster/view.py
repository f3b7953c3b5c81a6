"""What this instance knows now: the stores, their topics, who serves what, and what it holds itself."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from query_service.cluster.partitioning import HASHES, partition_of
from query_service.cluster.shard_map import Member, ShardMap
from query_service.errors import NotServedError, UnknownStoreError
from query_service.storage.partition_host import PartitionHost
from query_service.storage.store_definition import StoreDefinition
from query_service.storage.stores_file import nearest


def replicas_of(stores: Iterable[StoreDefinition]) -> dict[str, int]:
    """Returns the number of replicas of the stores that say one."""
    return {store.name: store.replicas for store in stores if store.replicas is not None}


def topics_of(stores: Iterable[StoreDefinition]) -> tuple[tuple[str, str], ...]:
    """Returns the stores whose topic has another name, with that name, as Member has them."""
    return tuple(sorted((store.name, store.topic) for store in stores if store.topic != store.name))


@dataclass(frozen=True)
class Topic:
    """One incarnation of a topic, as the broker describes it."""

    name: str
    topic_id: str
    epoch: int
    partitions: int


class View:
    """Owned by the event loop: membership, topic watch and placement change it there, lookups read it there."""

    def __init__(self, me: Member, stores: Iterable[StoreDefinition], replicas: int) -> None:
        """Starts with no members and no topics known."""
        self.me = me
        self.stores = {store.name: store for store in stores}
        self.shard_map = ShardMap(frozenset(), replicas, of_store=replicas_of(self.stores.values()))
        self.topics: dict[str, Topic] = {}
        self.hosts: dict[tuple[str, int], PartitionHost] = {}

    @property
    def topic_names(self) -> frozenset[str]:
        """The topics that the stores are made from."""
        return frozenset(store.topic for store in self.stores.values())

    def store(self, name: str) -> StoreDefinition:
        """Returns a store. Raises UnknownStoreError, with the nearest name."""
        definition = self.stores.get(name)
        if definition is None:
            raise UnknownStoreError(f"store: there is no store `{name}`: {nearest(name, self.stores)}")
        return definition

    def topic(self, store: str) -> Topic:
        """Returns the topic of a store. Raises NotServedError while the broker has not described it."""
        definition = self.store(store)
        topic = self.topics.get(definition.topic)
        if topic is None:
            raise NotServedError(f"the topic `{definition.topic}` of store `{store}` is not known yet: try again")
        return topic

    def hash_of(self, store: str) -> Callable[[str], int]:
        """Returns the hash that spreads the groups of a store over its partitions. Raises UnknownStoreError."""
        return HASHES[self.store(store).partitioner]

    def partition_of(self, store: str, group: str) -> int:
        """Returns the partition of a group. Raises as `topic` does."""
        return partition_of(group, self.topic(store).partitions, self.hash_of(store))

    def host(self, store: str, partition: int) -> PartitionHost:
        """Returns what this instance holds of a partition. Raises NotServedError when it has not caught up, too."""
        host = self.hosts.get((store, partition))
        if host is None:
            raise NotServedError(f"{self.me.instance} does not hold partition {partition} of `{store}`: try again")
        if not host.progress.serving:
            raise NotServedError(f"{self.me.instance} is still reading partition {partition} of `{store}`: try again")
        return host

    def owned(self, store: str) -> frozenset[int]:
        """Returns the partitions of a store that this instance owns. Raises NotServedError outside of the group."""
        if not self.shard_map.members:
            raise NotServedError(f"{self.me.instance} has not joined the group yet: try again")
        partitions = range(self.topic(store).partitions)
        return frozenset(each for each in partitions if self.shard_map.ranked(store, each)[0] == self.me)

    def wanted(self) -> frozenset[tuple[str, int]]:
        """Returns the partitions that this instance should hold by the shard map."""
        return frozenset(
            (store, partition)
            for store, definition in self.stores.items()
            if definition.topic in self.topics
            for partition in range(self.topics[definition.topic].partitions)
            if self.me in self.shard_map.holders(store, partition)
        )
