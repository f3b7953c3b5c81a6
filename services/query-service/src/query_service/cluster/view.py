"""The present knowledge of this instance: the stores, their topics, who holds which partition, and its own replicas."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import structlog

from query_service.cluster.misplaced import Misplaced
from query_service.cluster.shard_map import Member, MemberTracker, ShardMap, StorePartition
from query_service.errors import MisplacedKeyError, NotServedError, UnknownStoreError
from query_service.storage.progress import EndOffset
from query_service.storage.replica import Replica, TopicPartition
from query_service.storage.spread import PARTITION_OF
from query_service.storage.store_directory import Topic
from query_service.storage.stores_file import StoreDefinition
from statecast_service.settings import suggest

_RANKED_AT_ONCE = 100

_log = structlog.get_logger()


class View:
    """Owned by the event loop: ClusterEvents and placement change it there, lookups read it there."""

    def __init__(self, me: Member, stores: Iterable[StoreDefinition], replicas: int) -> None:
        self.me = me
        self.stores = {store.name: store for store in stores}
        """Replaced as a whole when the stores file has changed, never changed: any thread may read it."""
        self.shard_map = ShardMap(frozenset(), replicas, of_store=self.replicas_of_stores)
        self.topics: dict[str, Topic] = {}
        self.end_offsets: dict[TopicPartition, EndOffset] = {}
        self.replicas: dict[StorePartition, Replica] = {}
        self.misplaced: Mapping[str, Misplaced] = {}
        """The stores with keys that are known to stand in other partitions than theirs; replaced as a whole."""
        self.wanted: tuple[TopicPartition, ...] = ()
        """The partitions for which end offsets are wanted: any thread may read it."""
        self._assigned: tuple[tuple[object, ...], frozenset[StorePartition]] | None = None

    @property
    def topic_names(self) -> frozenset[str]:
        return frozenset(store.topic for store in self.stores.values())

    @property
    def replicas_of_stores(self) -> dict[str, int]:
        """How many instances hold each partition of a store, for those that say it."""
        return {store.name: store.replicas for store in self.stores.values() if store.replicas is not None}

    def store(self, name: str) -> StoreDefinition:
        """Returns a store. Raises UnknownStoreError, with the nearest name."""
        definition = self.stores.get(name)
        if definition is None:
            raise UnknownStoreError(f"store: there is no store `{name}`: {suggest(name, self.stores)}")
        return definition

    def topic(self, store: str) -> Topic:
        """Returns the topic of a store. Raises NotServedError while the broker has not described it."""
        definition = self.store(store)
        topic = self.topics.get(definition.topic)
        if topic is None:
            raise NotServedError(f"the topic `{definition.topic}` of store `{store}` is not known yet: try again")
        return topic

    def partitioner_of(self, store: str) -> Callable[[bytes], int]:
        """Returns a function from a group's bytes to its partition. Raises as `topic` does."""
        partitions, partition_of = self.topic(store).partitions, PARTITION_OF[self.stores[store].partitioner]
        return lambda group: partition_of(group, partitions)

    def misplacement(self, store: str, group: str) -> MisplacedKeyError | None:
        """Returns the failure of lookups of a group with a key that is, or may be, in another partition; else None."""
        misplaced = self.misplaced.get(store)
        if misplaced is None or not misplaced.concerns(group):
            return None
        return MisplacedKeyError(f"key: `{group}` of `{store}` is not looked up: {misplaced.reason}")

    def shard_of(self, store: str, group: str) -> StorePartition:
        """Returns where a group is looked up. Raises MisplacedKeyError, and as `topic` does. Each get calls it."""
        definition = self.stores.get(store)
        topic = None if definition is None else self.topics.get(definition.topic)
        if definition is None or topic is None or self.misplaced:
            if (misplacement := self.misplacement(store, group)) is not None:
                raise misplacement
            return store, self.partitioner_of(store)(group.encode())
        return store, PARTITION_OF[definition.partitioner](group.encode(), topic.partitions)

    def replica(self, store: str, partition: int) -> Replica:
        """Returns this instance's replica. Raises NotServedError if there is none, or if it has not caught up."""
        replica = self.replicas.get((store, partition))
        if replica is None:
            raise NotServedError(f"{self.me.instance} does not hold partition {partition} of `{store}`: try again")
        if not replica.progress.serving:
            raise NotServedError(f"{self.me.instance} is still reading partition {partition} of `{store}`: try again")
        return replica

    def check_joined(self) -> None:
        """Raises NotServedError outside of the group."""
        if not self.shard_map.members:
            raise NotServedError(f"{self.me.instance} has not joined the group yet: try again")

    def owned(self, store: str) -> frozenset[int]:
        """Returns the partitions of a store that this instance owns. Raises NotServedError outside of the group."""
        self.check_joined()
        partitions = range(self.topic(store).partitions)
        return frozenset(each for each in partitions if self.shard_map.ranked(store, each)[0] == self.me)

    @property
    def parts(self) -> tuple[object, ...]:
        """The members, topics and stores: each is replaced as a whole, and never changed."""
        return self.shard_map, self.topics, self.stores

    def has_other(self, parts: tuple[object, ...]) -> bool:
        """Returns whether a part has been replaced since these were the `parts`."""
        return any(one is not other for one, other in zip(parts, self.parts, strict=True))

    async def rank(self) -> None:
        """Ranks the members for all partitions, some at a time, so that `assigned` holds the event loop for no long."""
        if self._assigned is not None and self._assigned[0][0] is self.shard_map:
            return
        names = [each.name for each in self.stores.values() if each.topic in self.topics]
        partitions = [(name, number) for name in names for number in range(self.topic(name).partitions)]
        for at in range(0, len(partitions), _RANKED_AT_ONCE):
            for key in partitions[at : at + _RANKED_AT_ONCE]:
                self.shard_map.holders(*key)
            await asyncio.sleep(0)

    def assigned(self) -> frozenset[StorePartition]:
        """Returns the partitions that this instance should hold by the shard map."""
        if self._assigned is not None and not self.has_other(self._assigned[0]):
            return self._assigned[1]
        assigned = frozenset(
            (store, partition)
            for store, definition in self.stores.items()
            if definition.topic in self.topics
            for partition in range(self.topics[definition.topic].partitions)
            if self.me in self.shard_map.holders(store, partition)
        )
        self._assigned = self.parts, assigned
        return assigned


@dataclass(eq=False)
class ClusterEvents:
    """Changes the view on the event loop, when other threads learn about the group and the topics.

    `members`, `topics` and `end_offsets` may be called from any thread and return at once. `topics` takes all topics,
    `end_offsets` those of some partitions. `on_change` is called on the loop after members or topics have changed.
    """

    loop: asyncio.AbstractEventLoop
    view: View
    tracker: MemberTracker
    on_change: Callable[[], None]
    _leaving: bool = field(default=False, init=False)

    def set_stores(self, stores: Mapping[str, StoreDefinition]) -> None:
        """Serves these stores from now on. On the event loop only."""
        self.view.stores = dict(stores)
        topics = {store.name: store.topic for store in stores.values() if store.topic != store.name}
        shard_map = self.tracker.set_stores(self.view.replicas_of_stores, topics, time.monotonic())
        if not self._leaving:
            self.view.shard_map = shard_map
            self.on_change()

    def leave(self) -> None:
        """Makes the view as the others see it once this instance is gone, and keeps it so. On the event loop only."""
        self._leaving = True
        self.view.shard_map = self.tracker.leave(time.monotonic())

    def members(self, members: frozenset[Member]) -> None:
        self.loop.call_soon_threadsafe(self._set_members, members)

    def topics(self, topics: dict[str, Topic]) -> None:
        self.loop.call_soon_threadsafe(self._set_topics, topics)

    def end_offsets(self, end_offsets: Mapping[TopicPartition, EndOffset]) -> None:
        self.loop.call_soon_threadsafe(self._set_end_offsets, end_offsets)

    def _set_members(self, members: frozenset[Member]) -> None:
        if not self._leaving:
            self._take(self.tracker.update(members, time.monotonic()))

    def update(self) -> None:
        """Gives up those who left long enough ago. On the event loop only."""
        if not self._leaving:
            self._take(self.tracker.at(time.monotonic()))

    def _take(self, shard_map: ShardMap) -> None:
        if shard_map != self.view.shard_map:
            if shard_map.members != self.view.shard_map.members:
                _log.info("members", instances=sorted(member.instance for member in shard_map.members))
            self.view.shard_map = shard_map
            self.on_change()

    def _set_topics(self, topics: dict[str, Topic]) -> None:
        before = self.view.topics
        for name, partition in list(self.view.end_offsets):
            if name in before and name in topics and before[name].topic_id != topics[name].topic_id:
                del self.view.end_offsets[name, partition]  # else its replica would wait for the old topic's end
        self.view.topics = topics
        self.on_change()

    def _set_end_offsets(self, end_offsets: Mapping[TopicPartition, EndOffset]) -> None:
        self.view.end_offsets.update(end_offsets)
        for replica in self.view.replicas.values():
            end = end_offsets.get(replica.topic_partition)
            if end is not None:
                replica.note_end_offset(*end)
