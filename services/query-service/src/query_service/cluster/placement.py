"""Opens the replicas that the shard map assigns to this instance; closes and later deletes those that others serve."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import structlog

from query_service.cluster.disk_watch import DiskWatch
from query_service.cluster.shard_map import Member, StorePartition
from query_service.cluster.view import View
from query_service.errors import StoreFailedError, StoreUnusableError
from query_service.logged import Logged
from query_service.metrics import Metrics
from query_service.storage.changes import Changes
from query_service.storage.progress import EndOffset, Progress
from query_service.storage.replica import Replica
from query_service.storage.spread import Spread
from query_service.storage.store import PartitionStore
from query_service.storage.store_directory import StoreDirectory, Topic
from query_service.storage.stores_file import StoreDefinition

_RECONCILE_S = 0.5
_RESTORE_RECORDS = 10_000  # a replica further behind reads without a log of its own writes until it has caught up

_log = structlog.get_logger()


@dataclass(eq=False)
class Placement:
    """One task on the event loop.

    A partition that moves away is kept, and still answers, until all its new holders serve it: at any time it is served
    by an instance that was already serving it. A partition that is not on disk is first seeded, in a task of its own
    that ends sooner or later, seeded or not; then it is opened. A partition that has moved away is deleted once `disk`
    says so. `serving_partitions` asks a peer which partitions it serves, none if it does not answer; for the other
    functions see ReplicaFactory, Seeding and Changelog.
    """

    view: View
    open_replica: Callable[[StoreDefinition, Topic, int, EndOffset], Replica]
    follow: Callable[[Replica], None]
    unfollow: Callable[[Replica], "Future[None]"]
    serving_partitions: Callable[[Member], Awaitable[frozenset[StorePartition]]]
    resume_replica: Callable[[StoreDefinition, Topic, int, EndOffset], Replica | None]
    seed: Callable[[StoreDefinition, Topic, int], Coroutine[Any, Any, None]]
    disk: DiskWatch
    changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _seeds: "dict[StorePartition, asyncio.Task[None]]" = field(default_factory=dict, init=False)
    _failing: Logged = field(default_factory=Logged, init=False)
    """Why each partition could not be opened last."""
    _complete_in: tuple[object, ...] | None = field(default=None, init=False)
    """The parts of the view at the last reconciliation, if all was open then that they assign to this instance."""

    @property
    def is_complete(self) -> bool:
        """Returns whether all is open that the present members, topics and stores assign to this instance."""
        return self._complete_in is not None and not self.view.has_other(self._complete_in)

    async def run(self) -> None:
        """Reconciles at once when `changed` is set, and every half second, until it is cancelled."""
        try:
            while True:
                await self.reconcile()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.changed.wait(), _RECONCILE_S)
                self.changed.clear()
        finally:
            for key in list(self._seeds):
                self._seeds.pop(key).cancel()

    async def handed_over(self) -> bool:
        """Returns whether every partition that this instance holds beyond its share is served by all its holders.

        The last instance of a store's generation has nobody to hand it over to.
        """
        return not await self._not_handed_over({key for key in self._surplus() if self.view.shard_map.holders(*key)})

    async def reconcile(self) -> None:
        """Opens and closes replicas as the view asks for now; impossible changes wait for the next time."""
        view = self.view
        for key in [key for key in view.replicas if key[0] not in view.stores]:
            await self._close(key)
        await view.rank()
        assigned, parts = view.assigned(), view.parts
        wanted = {(view.stores[store].topic, partition) for store, partition in assigned}
        view.wanted = tuple(sorted(wanted | {each.topic_partition for each in view.replicas.values()}))
        for key, replica in list(view.replicas.items()):
            topic = view.topics[replica.topic.name]
            if topic.topic_id != replica.topic.topic_id:
                _log.warning("the topic was recreated; rebuilding the store", store=key[0], partition=key[1])
                await self._close(key)
            elif topic != replica.topic:  # it has more partitions: some keys may belong elsewhere now
                await self._close(key)
        for key in self._seeds.keys() - assigned:
            self._seeds.pop(key).cancel()
        for key in sorted(assigned - view.replicas.keys()):
            await self._open(key)
        self._complete_in = parts if assigned <= view.replicas.keys() else None
        surplus = self._surplus()
        for key in surplus - await self._not_handed_over(surplus):
            await self._close(key)
        await self._give_back()

    async def _open(self, key: StorePartition) -> None:
        store, partition = key
        if store not in self.view.stores:  # it was removed while others were opened
            return
        topic = self.view.topic(store)
        end = self.view.end_offsets.get((topic.name, partition))
        if end is None:
            return
        seed, definition = self._seeds.get(key), self.view.store(store)
        if seed is not None:
            if not seed.done():
                return
            seed.result()  # a defect ends this task, too
        open_replica = self.resume_replica if seed is None else self.open_replica
        try:
            replica = await asyncio.to_thread(open_replica, definition, topic, partition, end)
        except StoreFailedError as error:
            if self._failing.is_new(key, why := str(error)):  # else a full disk fills the log, twice a second each
                _log.error("cannot open the partition; retrying", reason=why, store=store, partition=partition)
            return
        self._failing.pop(key, None)
        if replica is None:
            self._seeds[key] = asyncio.create_task(self.seed(definition, topic, partition))
            self._seeds[key].add_done_callback(lambda _: self.changed.set())
            return
        self._seeds.pop(key, None)
        self.view.replicas[key] = replica
        self.follow(replica)
        from_offset = replica.store.next_offset
        _log.info("holding", store=store, partition=partition, from_offset=from_offset, end_offset=end.offset)

    async def _close(self, key: StorePartition) -> None:
        replica = self.view.replicas.pop(key)
        await asyncio.wrap_future(self.unfollow(replica))
        _log.info("released", store=key[0], partition=key[1])

    async def _give_back(self) -> None:
        """Deletes the partitions that moved away long ago, except those that a new holder does not serve now."""
        try:
            due = await self.disk.due()
            for store, partition in due - await self._not_handed_over(due):
                if (definition := self.view.stores.get(store)) is not None:  # else it was removed meanwhile
                    await asyncio.to_thread(self.disk.directory.discard, definition, partition, None)
                    _log.info("deleted from disk; others serve it", store=store, partition=partition)
        except StoreFailedError as error:
            _log.error("cannot free disk space; retrying", reason=str(error))

    def _surplus(self) -> set[StorePartition]:
        return self.view.replicas.keys() - self.view.assigned()

    async def _not_handed_over(self, surplus: set[StorePartition]) -> set[StorePartition]:
        holders = {key: self.view.shard_map.holders(*key) for key in surplus}
        peers = sorted({member for members in holders.values() for member in members} - {self.view.me})
        serving = dict(zip(peers, await asyncio.gather(*map(self.serving_partitions, peers)), strict=True))
        return {
            key
            for key, members in holders.items()
            if not members or any(key not in serving.get(member, ()) for member in members)
        }


@dataclass(frozen=True)
class ReplicaFactory:
    """Opens replicas with all that they share; each serves once its lag has been below `caught_up_s`.

    `max_recent_rows` says how many changed rows each may remember now, and `wall_ms` is the clock of their age.
    """

    directory: StoreDirectory
    wall_ms: Callable[[], int]
    loop: asyncio.AbstractEventLoop
    metrics: Metrics
    caught_up_s: float
    max_recent_rows: Callable[[], int]
    logged: Logged = field(default_factory=Logged)

    def open(self, definition: StoreDefinition, topic: Topic, partition: int, end: EndOffset) -> Replica:
        """Returns a replica that resumes from the data on disk, or begins anew; blocks, and raises StoreFailedError."""
        return self._replica(
            self.directory.open(definition, topic.topic_id, partition, end.offset), definition, topic, partition, end
        )

    def resume(self, definition: StoreDefinition, topic: Topic, partition: int, end: EndOffset) -> Replica | None:
        """Returns a replica that resumes from the data on disk, None when there are none; as `open` does."""
        opened = self.directory.resume(definition, topic.topic_id, partition, end.offset)
        return None if opened is None else self._replica(opened, definition, topic, partition, end)

    def reopen(self, replica: Replica, set_aside_for: str | None) -> None:
        """Gives the replica an empty store: the old one is set aside for a reason, or deleted without one."""
        definition, partition = replica.definition, replica.partition
        replica.store.close()
        self.directory.discard(definition, partition, set_aside_for)
        store = self.directory.open(definition, replica.topic.topic_id, partition, replica.progress.end_offset or 0)
        self._prepare(store, definition, replica.topic, partition, replica.progress.end_offset or 0)
        replica.start_over(store, Progress(0, self.caught_up_s, time.monotonic))

    def _replica(
        self, opened: PartitionStore, definition: StoreDefinition, topic: Topic, partition: int, end: EndOffset
    ) -> Replica:
        self._prepare(opened, definition, topic, partition, end.offset)
        progress = Progress(opened.next_offset, self.caught_up_s, time.monotonic)
        progress.note_end_offset(*end)
        changes = Changes(self.loop, self.max_recent_rows, opened.next_offset - 1)
        clock, metrics, logged = self.wall_ms, self.metrics, self.logged
        return Replica(definition, topic, partition, opened, progress, changes, metrics, clock, logged)

    def _prepare(
        self, store: PartitionStore, definition: StoreDefinition, topic: Topic, partition: int, end_offset: int
    ) -> None:
        """Checks where the rows belong. Closes a store that fails, so that it can be opened again."""
        try:
            store.check_spread(Spread(definition.partitioner, topic.partitions, partition))
            if (records := end_offset - store.next_offset) > _RESTORE_RECORDS:
                store.begin_restore(records)
        except StoreFailedError:
            store.close()
            raise
        except StoreUnusableError as error:
            store.close()
            self.directory.discard(definition, partition, str(error))
            raise StoreFailedError(f"{definition.name}/{partition} is begun anew: {error}") from error
