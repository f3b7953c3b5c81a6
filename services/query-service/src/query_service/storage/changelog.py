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
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message
from typing_extensions import override

from query_service.errors import StoreError, StoreFailedError, StoreUnusableError
from query_service.logged import Logged
from query_service.storage.replica import Replica, TopicPartition
from query_service.storage.steady_clock import SteadyClock
from query_service.storage.topic_facts import TopicFacts
from statecast_service.kafka import reason

_POLL_S = 0.05
_MAX_BATCH = 5000
_MAINTENANCE_INTERVAL_S = 5.0
_REFRESH_INTERVAL_S = 10.0
_MAX_DUE = 5000
_AWAY_MS = 10_000  # while the broker is away for longer, a corrupt store keeps its other rows
_RETRY_S = 1.0
_TIMEOUT_S = 1.0
_HELD_BACK = (
    "a transaction is open: it and what comes after it in the partition cannot be read until its producer ends it; "
    "`kafka-transactions.sh find-hanging` finds one that nobody ends, and `abort` ends it"
)

_log = structlog.get_logger()


@dataclass(eq=False, repr=False)
class Changelog(Thread):
    """One consumer with a partition list of its own; it commits nothing, because each store keeps its own offset.

    Only this thread writes to the stores of the replicas that it follows. When a store is corrupt, or the topic no
    longer has the offset to resume from, the replica starts over from an empty store. When the disk refuses, the batch
    is retried every second; the replica still answers, with a growing lag. `reopen` is ReplicaFactory's. Deletion
    markers that arrived more than `deletions_ms` ago are purged, those of keyed topics once they are checkpointed too.
    Nothing is purged until the clock is proven.
    """

    new_consumer: Callable[[], Consumer]
    reopen: Callable[[Replica, str | None], None]
    facts: TopicFacts
    clock: SteadyClock
    deletions_ms: int
    stall_s: float = 10.0
    """How long a partition that had caught up may bring nothing while its topic grows; then all are read anew."""

    def __post_init__(self) -> None:
        self.consumer = self.new_consumer()
        self._commands: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._replicas: dict[TopicPartition, Replica] = {}
        self._retries: dict[TopicPartition, tuple[float, Callable[[], None]]] = {}
        self._waiting: dict[TopicPartition, tuple[int, int | None, float]] = {}  # next offset, end then, since when
        self._held_back = Logged()  # at which offset
        self._failing = Logged()  # why the last batch was not stored
        self._unmaintained = Logged()  # and why the last maintenance failed
        self._may_ask = True
        self._next_maintenance = self._next_refresh = 0.0
        self._stopping = Event()
        super().__init__(name="changelog", daemon=True)

    def stop(self) -> None:
        """Ends the thread, and blocks until it has closed the stores of all replicas, some 13 ms each.

        A process that ends before is aborted in the middle of RocksDB.
        """
        self._stopping.set()
        self.join()

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
            _log.exception("the changelog thread failed; no records are applied any more")
            raise
        finally:
            self.consumer.close()
            for replica in self._replicas.values():
                replica.store.close()  # without a word to the event loop, which may be closed

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
        for remembered in (self._retries, self._waiting, self._held_back, self._failing, self._unmaintained):
            remembered.pop(replica.topic_partition, None)
        self.consumer.incremental_unassign([confluent_kafka.TopicPartition(*replica.topic_partition)])
        replica.close()
        done.set_result(None)

    def _seek(self, replica: Replica) -> None:
        self.consumer.incremental_unassign([confluent_kafka.TopicPartition(*replica.topic_partition)])
        self.consumer.incremental_assign([_start_of(replica)])

    def _handle_batch(self, key: TopicPartition, messages: list[Message]) -> None:
        replica = self._replicas.get(key)
        if replica is None or key in self._retries:
            return
        try:
            store = replica.store
            errors = [message for message in messages if message.error() is not None]
            self._apply(replica, [message for message in messages if message.error() is None] if errors else messages)
            self._failing.pop(key, None)
            for message in errors:
                if replica.store is store and key not in self._retries:  # a store that starts over knows of no end
                    self._handle_error(replica, message)
        except StoreUnusableError as error:
            self._start_over(replica, str(error))
        except StoreFailedError as error:
            self._log_failure("cannot store a batch; retrying", replica, error)
            self._retry_later(replica, lambda: self._seek(replica))

    def _handle_error(self, replica: Replica, message: Message) -> None:
        error, store = message.error(), replica.definition.name
        if error is None or error.code() == KafkaError._PARTITION_EOF:
            if not self._started_over(replica, message.offset() or 0, 0):
                replica.advance_to(message.offset() or 0)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            _log.warning("the topic no longer has the next record", store=store, reason=str(error))
            self._reset(replica, str(error))
        else:
            why = reason(error, "Read", replica.topic_partition[0])
            _log.warning("cannot read the partition", store=store, reason=why)

    def _apply(self, replica: Replica, records: list[Message]) -> None:
        next_offset = replica.store.next_offset
        if records and (records[0].offset() or 0) < next_offset:
            records = [record for record in records if (record.offset() or 0) >= next_offset]
        if records:
            offset_after = (records[-1].offset() or 0) + 1
            if not self._started_over(replica, offset_after, len(records)):
                replica.apply(records, offset_after)

    def _started_over(self, replica: Replica, offset_after: int, records: int) -> bool:
        """Starts over when compaction may have removed a deletion before the replica came to read it."""
        topic, behind_ms = replica.topic.name, replica.behind_ms
        if offset_after - replica.store.next_offset <= records or behind_ms <= self.facts.limit_ms(topic):
            return False
        event = "the replica lags longer than the topic keeps deletions, so it is read anew"
        _log.warning(event, topic=topic, partition=replica.partition, behind_s=behind_ms // 1000)
        self._start_over(replica, None)
        return True

    def _reset(self, replica: Replica, reason: str) -> None:
        """Starts over if the topic is the one that the store was read from; keeps the rows if the topic was made anew.

        In that case the replica waits, and still answers, until placement closes it. A row of a keyed topic is nowhere
        else if the topic has lost it.
        """
        try:
            if self.facts.topic_id(replica.topic.name) == replica.topic.topic_id:
                self._start_over(replica, None if replica.definition.plain else reason)
                return
        except KafkaException as error:
            self._log_failure("the broker does not know the topic; retrying", replica, error)
        self._retry_later(replica, lambda: self._reset(replica, reason))

    def _start_over(self, replica: Replica, set_aside_for: str | None) -> None:
        try:
            self.reopen(replica, set_aside_for)
            self._seek(replica)
        except StoreFailedError as error:
            self._log_failure("cannot create an empty store; retrying", replica, error)
            self._retry_later(replica, lambda: self._start_over(replica, set_aside_for))

    def _log_failure(self, event: str, replica: Replica, error: Exception) -> None:
        """Logs the first of the same failures in a row: each is met every second, a full disk by all partitions."""
        if self._failing.is_new(replica.topic_partition, why := str(error)):
            _log.error(event, reason=why, store=replica.definition.name, partition=replica.partition)

    def _retry_later(self, replica: Replica, action: Callable[[], None]) -> None:
        self._retries[replica.topic_partition] = (time.monotonic() + _RETRY_S, action)

    def _resume_if_stalled(self, replica: Replica) -> None:
        """Reassigns a stalled partition: after a restart of the broker a consumer may take it for unknown for ever."""
        key, next_offset, end_offset = replica.topic_partition, replica.store.next_offset, replica.progress.end_offset
        offset, end_before, since = self._waiting.get(key, (-1, None, 0.0))
        if offset != next_offset or not replica.progress.lag_records or key in self._retries:
            self._waiting[key] = next_offset, end_offset, time.monotonic()
        elif time.monotonic() - since < self.stall_s or not self._may_ask:
            return
        elif self._is_held_back(replica):
            self._waiting[key] = next_offset, end_offset, time.monotonic()
            replica.note_held_back()
        elif replica.progress.serving and end_offset != end_before:  # a restore may read others for long
            _log.warning(
                "a partition delivers no records; reading all partitions again", topic=key[0], partition=key[1]
            )
            self._waiting.clear()
            self.consumer.close()
            self.consumer = self.new_consumer()
            self.consumer.incremental_assign([_start_of(each) for each in self._replicas.values()])

    def _is_held_back(self, replica: Replica) -> bool:
        """Returns whether an open transaction leaves the partition without more to read; blocks for up to 1 s."""
        topic, number = replica.topic_partition
        place = confluent_kafka.TopicPartition(topic, number)
        try:
            readable_end = self.consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S)[1]
        except KafkaException as error:
            _log.warning("cannot read the end of a partition", topic=topic, partition=number, reason=str(error))
            self._may_ask = False  # one a round, and another one in the next: the thread reads nothing meanwhile
            self._replicas[topic, number] = self._replicas.pop((topic, number))
            return False
        next_offset = replica.store.next_offset
        if readable_end > next_offset:
            return False
        if self._held_back.is_new((topic, number), next_offset):
            waiting = replica.progress.lag_records
            _log.warning(_HELD_BACK, topic=topic, partition=number, open_offset=next_offset, records=waiting)
        return True

    def _run_maintenance(self) -> None:
        if time.monotonic() >= self._next_refresh:
            self._next_refresh = time.monotonic() + _REFRESH_INTERVAL_S
            self.facts.refresh()
        self._may_ask = True
        limit = _MAX_DUE if self.clock.is_proven else 0
        for replica in list(self._replicas.values()):
            self._resume_if_stalled(replica)
            try:
                checkpointed_offset = self.facts.checkpointed_offset(*replica.topic_partition)
                if replica.run_maintenance(self.clock() - self.deletions_ms, checkpointed_offset, limit):
                    self._next_maintenance = 0.0
                self._unmaintained.pop(replica.topic_partition, None)
            except StoreError as error:  # also of one that is closed until an empty one can be made
                if isinstance(error, StoreUnusableError) and replica.progress.unread_ms < _AWAY_MS:
                    self._start_over(replica, str(error))
                elif self._unmaintained.is_new(replica.topic_partition, why := str(error)):
                    _log.error("maintenance of a store failed", reason=why, store=replica.definition.name)


def _by_partition(messages: Iterable[Message]) -> dict[TopicPartition, list[Message]]:
    batches: dict[TopicPartition, list[Message]] = {}
    for topic, of_topic in groupby(messages, Message.topic):  # they come in long runs of one partition
        for partition, run in groupby(of_topic, Message.partition):
            batches.setdefault((topic or "", partition or 0), []).extend(run)
    return batches


def _start_of(replica: Replica) -> confluent_kafka.TopicPartition:
    return confluent_kafka.TopicPartition(*replica.topic_partition, replica.store.next_offset or OFFSET_BEGINNING)
