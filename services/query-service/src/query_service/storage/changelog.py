"""Reads the partitions that this instance holds, in one thread, and has each batch applied."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from itertools import groupby
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Protocol

import structlog
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from query_service.errors import StoreFailedError, StoreUnusableError
from query_service.storage.partition_host import PartitionHost

_POLL_S = 0.05
_BATCH = 5000
_TEND_EVERY_S = 5.0
_MOST_DUE = 5000
_RETRY_S = 1.0

_log = structlog.get_logger()

Where = tuple[str, int]


class Reopen(Protocol):
    """Closes a host's store and gives the host an empty one; raises StoreFailedError when the disk refuses."""

    def __call__(self, host: PartitionHost, set_aside_for: str | None) -> None:
        """Sets the old store aside for this reason, or deletes it when there is none."""


class Changelog:
    """One consumer with a partition list of its own; it commits nothing, because each store keeps its own offset.

    The thread is the only one that writes to the stores of the hosts it follows. When a host's store is corrupt, or
    the topic no longer has the offset to go on from, the host starts over from an empty store. When the disk refuses,
    the batch is tried again every second; the host goes on answering, with a growing lag.
    """

    def __init__(self, consumer: Consumer, reopen: Reopen, wall_ms: Callable[[], int], deletions_ms: int) -> None:
        """Forgets deletions that arrived more than `deletions_ms` ago."""
        self._consumer = consumer
        self._reopen = reopen
        self._wall_ms = wall_ms
        self._deletions_ms = deletions_ms
        self._orders: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._hosts: dict[Where, PartitionHost] = {}
        self._retries: dict[Where, tuple[float, Callable[[], None]]] = {}
        self._next_tend = 0.0
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="changelog", daemon=True)

    def start(self) -> None:
        """Starts to read."""
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def stop(self, timeout_s: float) -> None:
        """Ends the thread and closes the stores of all hosts."""
        self._stopping.set()
        self._thread.join(timeout_s)

    def follow(self, host: PartitionHost) -> None:
        """Reads the host's partition from its store's offset on. From any thread; does not block."""
        self._orders.put(lambda: self._add(host))

    def unfollow(self, host: PartitionHost) -> "Future[None]":
        """Stops reading the host's partition and closes its store; done when the future is."""
        done: Future[None] = Future()
        self._orders.put(lambda: self._remove(host, done))
        return done

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._step()
        except Exception:
            _log.exception("the changelog has ended; nothing is applied any more")
            raise
        finally:
            self._consumer.close()
            for host in self._hosts.values():
                host.store.close()

    def _step(self) -> None:
        self._take_orders()
        first = self._consumer.poll(_POLL_S)
        if first is not None:
            for where, messages in _by_place([first, *self._consumer.consume(_BATCH, 0)]).items():
                self._hand_over(where, messages)
        now = time.monotonic()
        for where in [where for where, (at, _) in self._retries.items() if at <= now]:
            self._retries.pop(where)[1]()
        if now >= self._next_tend:
            self._next_tend = now + _TEND_EVERY_S
            self._tend()

    def _take_orders(self) -> None:
        while True:
            try:
                self._orders.get_nowait()()
            except Empty:
                return

    def _add(self, host: PartitionHost) -> None:
        where = (host.place.topic, host.place.partition)
        self._hosts[where] = host
        self._consumer.incremental_assign([_start_of(host)])

    def _remove(self, host: PartitionHost, done: "Future[None]") -> None:
        where = (host.place.topic, host.place.partition)
        del self._hosts[where]
        self._retries.pop(where, None)
        self._consumer.incremental_unassign([TopicPartition(*where)])
        host.store.close()
        done.set_result(None)

    def _read_again(self, host: PartitionHost) -> None:
        self._consumer.incremental_unassign([TopicPartition(host.place.topic, host.place.partition)])
        self._consumer.incremental_assign([_start_of(host)])

    def _hand_over(self, where: Where, messages: list[Message]) -> None:
        host = self._hosts.get(where)
        if host is None or where in self._retries:
            return
        try:
            notices = [message for message in messages if message.error() is not None]
            records = [message for message in messages if message.error() is None] if notices else messages
            _apply(host, records)
            for notice in notices:
                self._heed(host, notice)
        except StoreUnusableError as error:
            self._start_over(host, str(error))
        except StoreFailedError as error:
            _log.error("a batch could not be stored; it is tried again", reason=str(error), topic=where[0])
            self._later(host, lambda: self._read_again(host))

    def _heed(self, host: PartitionHost, message: Message) -> None:
        error = message.error()
        offset = message.offset()
        if error is None or error.code() == KafkaError._PARTITION_EOF:
            host.reached(offset if offset is not None else 0)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            _log.warning("the topic no longer has the next record", store=host.place.store, reason=str(error))
            self._start_over(host, None)
        else:
            _log.warning("the partition cannot be read now", store=host.place.store, reason=str(error))

    def _start_over(self, host: PartitionHost, set_aside_for: str | None) -> None:
        try:
            self._reopen(host, set_aside_for)
        except StoreFailedError as error:
            _log.error("no empty store can be made; it is tried again", reason=str(error), store=host.place.store)
            self._later(host, lambda: self._start_over(host, set_aside_for))
        else:
            self._read_again(host)

    def _later(self, host: PartitionHost, action: Callable[[], None]) -> None:
        self._retries[host.place.topic, host.place.partition] = (time.monotonic() + _RETRY_S, action)

    def _tend(self) -> None:
        for host in self._hosts.values():
            try:
                if host.tend(self._wall_ms() - self._deletions_ms, _MOST_DUE):
                    self._next_tend = 0.0
            except (StoreFailedError, StoreUnusableError) as error:
                _log.error("a store cannot be tended", reason=str(error), store=host.place.store)


def _by_place(messages: Iterable[Message]) -> dict[Where, list[Message]]:
    places: dict[Where, list[Message]] = {}
    for topic, of_topic in groupby(messages, Message.topic):  # they come in long runs of one partition
        for partition, run in groupby(of_topic, Message.partition):
            places.setdefault((topic or "", partition or 0), []).extend(run)
    return places


def _apply(host: PartitionHost, records: list[Message]) -> None:
    next_offset = host.store.next_offset
    if records and (records[0].offset() or 0) < next_offset:
        records = [record for record in records if (record.offset() or 0) >= next_offset]
    if records:
        host.apply(records, (records[-1].offset() or 0) + 1)


def _start_of(host: PartitionHost) -> TopicPartition:
    return TopicPartition(host.place.topic, host.place.partition, host.store.next_offset or OFFSET_BEGINNING)
