"""Reads the partitions that this instance holds, in one thread, and applies each batch to its replica."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import groupby
from queue import SimpleQueue
from threading import Event, Thread

import confluent_kafka
import structlog
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message
from typing_extensions import override

from query_service.errors import StoreFailedError, StoreUnusableError
from query_service.storage.replica import Replica, TopicPartition
from statecast_service.kafka import reason

_POLL_S = 0.05
_MAX_BATCH = 5000
_MAINTENANCE_INTERVAL_S = 5.0
_MAX_DUE = 5000
_RETRY_S = 1.0

_log = structlog.get_logger()


@dataclass(eq=False, repr=False)
class Changelog(Thread):
    """One consumer with a partition list of its own; it commits nothing, because each store keeps its own offset.

    Only this thread writes to the stores of the replicas that it follows. When a store is corrupt, or the topic no
    longer has the offset to resume from, the replica starts over from an empty store. When the disk refuses, the batch
    is retried every second; the replica still answers, with a growing lag. `reopen` is ReplicaFactory's. Deletion
    markers that arrived more than `deletions_ms` ago are purged.
    """

    new_consumer: Callable[[], Consumer]
    reopen: Callable[[Replica, str | None], None]
    wall_ms: Callable[[], int]
    deletions_ms: int
    stall_s: float = 10.0
    """How long a partition that had caught up may bring nothing while its topic grows; then all are read anew."""

    def __post_init__(self) -> None:
        self.consumer = self.new_consumer()
        self._commands: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._replicas: dict[TopicPartition, Replica] = {}
        self._retries: dict[TopicPartition, tuple[float, Callable[[], None]]] = {}
        self._waiting: dict[TopicPartition, tuple[int, int | None, float]] = {}  # next offset, end then, since when
        self._next_maintenance = 0.0
        self._stopping = Event()
        super().__init__(name="changelog", daemon=True)

    def stop(self, timeout_s: float) -> None:
        """Ends the thread and closes the stores of all replicas."""
        self._stopping.set()
        self.join(timeout_s)

    def follow(self, replica: Replica) -> None:
        """Reads the replica's partition from its store's offset on. From any thread; does not block."""
        self._commands.put(lambda: self._add(replica))

    def unfollow(self, replica: Replica) -> "Future[None]":
        """Stops reading the replica's partition and closes its store; done when the future is. From any thread."""
        done: Future[None] = Future()
        self._commands.put(lambda: self._remove(replica, done))
        return done

    @override
    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._step()
        except Exception:
            _log.exception("the changelog has ended; nothing is applied any more")
            raise
        finally:
            self.consumer.close()
            for replica in self._replicas.values():
                replica.store.close()

    def _step(self) -> None:
        while not self._commands.empty():  # only this thread takes from it
            self._commands.get()()
        first = self.consumer.poll(_POLL_S)
        if first is not None:
            messages = [first, *self.consumer.consume(_MAX_BATCH, 0)]
            if len(messages) > _MAX_BATCH:
                self._waiting.clear()  # more is queued: a partition may only be waiting for its turn
            for key, batch in _by_partition(messages).items():
                self._handle_batch(key, batch)
        now = time.monotonic()
        for key in [key for key, (due_at, _) in self._retries.items() if due_at <= now]:
            self._retries.pop(key)[1]()
        if now >= self._next_maintenance:
            self._next_maintenance = now + _MAINTENANCE_INTERVAL_S
            self._run_maintenance()

    def _add(self, replica: Replica) -> None:
        self._replicas[replica.topic_partition] = replica
        self.consumer.incremental_assign([_start_of(replica)])

    def _remove(self, replica: Replica, done: "Future[None]") -> None:
        del self._replicas[replica.topic_partition]
        for remembered in (self._retries, self._waiting):
            remembered.pop(replica.topic_partition, None)
        self.consumer.incremental_unassign([confluent_kafka.TopicPartition(*replica.topic_partition)])
        replica.store.close()
        done.set_result(None)

    def _seek(self, replica: Replica) -> None:
        self.consumer.incremental_unassign([confluent_kafka.TopicPartition(*replica.topic_partition)])
        self.consumer.incremental_assign([_start_of(replica)])

    def _handle_batch(self, key: TopicPartition, messages: list[Message]) -> None:
        replica = self._replicas.get(key)
        if replica is None or key in self._retries:
            return
        try:
            errors = [message for message in messages if message.error() is not None]
            _apply(replica, [message for message in messages if message.error() is None] if errors else messages)
            for message in errors:
                self._handle_error(replica, message)
        except StoreUnusableError as error:
            self._start_over(replica, str(error))
        except StoreFailedError as error:
            _log.error("a batch could not be stored; it is tried again", reason=str(error), topic=key[0])
            self._retry_later(replica, lambda: self._seek(replica))

    def _handle_error(self, replica: Replica, message: Message) -> None:
        error, store = message.error(), replica.definition.name
        if error is None or error.code() == KafkaError._PARTITION_EOF:
            replica.advance_to(message.offset() or 0)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            _log.warning("the topic no longer has the next record", store=store, reason=str(error))
            self._start_over(replica, None)
        else:
            why = reason(error, "Read", replica.topic_partition[0])
            _log.warning("the partition cannot be read now", store=store, reason=why)

    def _start_over(self, replica: Replica, set_aside_for: str | None) -> None:
        try:
            self.reopen(replica, set_aside_for)
            self._seek(replica)
        except StoreFailedError as error:
            store = replica.definition.name
            _log.error("no empty store can be made; it is tried again", reason=str(error), store=store)
            self._retry_later(replica, lambda: self._start_over(replica, set_aside_for))

    def _retry_later(self, replica: Replica, action: Callable[[], None]) -> None:
        self._retries[replica.topic_partition] = (time.monotonic() + _RETRY_S, action)

    def _resume_if_stalled(self, replica: Replica) -> None:
        """A broker that restarts can leave a consumer with a partition that it takes for unknown for ever."""
        key, next_offset, end_offset = replica.topic_partition, replica.store.next_offset, replica.progress.end_offset
        offset, end_before, since = self._waiting.get(key, (-1, None, 0.0))
        is_behind = replica.progress.serving and replica.progress.lag_records  # a restore may bring others for long
        if offset != next_offset or not is_behind or key in self._retries:
            self._waiting[key] = next_offset, end_offset, time.monotonic()
        elif end_offset != end_before and time.monotonic() - since >= self.stall_s:
            _log.warning("a partition brings nothing; all are read anew", topic=key[0], partition=key[1])
            self._waiting.clear()
            self.consumer.close()
            self.consumer = self.new_consumer()
            self.consumer.incremental_assign([_start_of(each) for each in self._replicas.values()])

    def _run_maintenance(self) -> None:
        for replica in self._replicas.values():
            self._resume_if_stalled(replica)
            try:
                if replica.run_maintenance(self.wall_ms() - self.deletions_ms, _MAX_DUE):
                    self._next_maintenance = 0.0
            except (StoreFailedError, StoreUnusableError) as error:
                _log.error("maintenance of a store failed", reason=str(error), store=replica.definition.name)


def _by_partition(messages: Iterable[Message]) -> dict[TopicPartition, list[Message]]:
    batches: dict[TopicPartition, list[Message]] = {}
    for topic, of_topic in groupby(messages, Message.topic):  # they come in long runs of one partition
        for partition, run in groupby(of_topic, Message.partition):
            batches.setdefault((topic or "", partition or 0), []).extend(run)
    return batches


def _apply(replica: Replica, records: list[Message]) -> None:
    next_offset = replica.store.next_offset
    if records and (records[0].offset() or 0) < next_offset:
        records = [record for record in records if (record.offset() or 0) >= next_offset]
    if records:
        replica.apply(records, (records[-1].offset() or 0) + 1)


def _start_of(replica: Replica) -> confluent_kafka.TopicPartition:
    return confluent_kafka.TopicPartition(*replica.topic_partition, replica.store.next_offset or OFFSET_BEGINNING)
