"""Writes channels and revocations to Kafka: the only way in which an edge changes anything outside itself."""

import asyncio
import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Protocol

import structlog
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from google.protobuf.message import Message as Row
from typing_extensions import override

from statecast.partitioning import partition_of
from statecast_service.kafka import KafkaSettings, connect, reason
from ws_edge.errors import NotConfiguredError, UnavailableError
from ws_edge.model.states import StoreKey

MARGIN_S = 1.0
"""How much longer than Kafka's own time-out a caller waits for its report."""
FLUSH_S = 0.2

log = structlog.get_logger(__name__)


Rows = Mapping[StoreKey, Row | None]
"""The values to write by key, all of one group; None deletes the key."""


class Writer(Protocol):
    """Writes to the topics of the edge's own stores, which have the names of the stores after a prefix."""

    async def write(self, rows: Rows) -> int:
        """Appends the rows in order to the partition of their group; returns the offset of the last one.

        Returns when all in-sync replicas have them. Raises UnavailableError otherwise: some may have been written.
        """


def configured(writer: Writer | None, subject: str) -> Writer:
    """Returns the writer; raises NotConfiguredError, which says that the subject is off, when there is none."""
    if writer is None:
        raise NotConfiguredError(f"{subject} off at this edge: its operators must set WS_EDGE_KAFKA_BOOTSTRAP")
    return writer


class KafkaWriter(Writer):
    """Writes by an idempotent producer, which connects when it is first used."""

    def __init__(self, kafka: KafkaSettings, timeout: float, topic_prefix: str = "") -> None:
        """`timeout` is how long Kafka may take to acknowledge, in seconds."""
        self._timeout = timeout
        self._topic_prefix = topic_prefix
        self._partitions: dict[str, int] = {}
        options = {
            # In order and without duplicates, even when the partition's leader changes.
            "enable.idempotence": True,
            "acks": "all",
            "message.timeout.ms": round(timeout * 1000),
            "linger.ms": 0,
        }
        self._producer = connect(Producer, kafka, options, self._hear)

    @override
    async def write(self, rows: Rows) -> int:
        # A thread waits for Kafka, so that the event loop does not.
        return await asyncio.to_thread(self._write, rows)

    def _hear(self, error: KafkaError) -> None:
        log.warning("kafka_error", reason=error.str())

    def _write(self, rows: Rows) -> int:
        store, group = next(iter(rows))[:2]
        topic = f"{self._topic_prefix}{store}"
        try:
            number = partition_of(group, self._count(topic))
            deliveries = [self._produce(topic, number, key, row) for key, row in rows.items()]
            deadline = time.monotonic() + self._timeout + MARGIN_S
            # In slices, because a password that was changed is taken from its file between them.
            while self._producer.flush(FLUSH_S) and time.monotonic() < deadline:
                pass
            return [delivery.result(MARGIN_S) for delivery in deliveries][-1]
        except (KafkaException, BufferError, TimeoutError) as error:
            self._producer.poll(0)
            why = reason(error.args[0], "Write", topic) if isinstance(error, KafkaException) else str(error)
            log.warning("write_failed", topic=topic, reason=why)
            raise UnavailableError("Kafka has not acknowledged the change: try again in a moment") from error

    def _count(self, topic: str) -> int:
        """Returns the number of partitions of a topic; it never changes, so it is asked for once."""
        count = self._partitions.get(topic)
        if count is None:
            metadata = self._producer.list_topics(topic, self._timeout).topics[topic]
            if metadata.error is not None:
                raise KafkaException(metadata.error)
            count = self._partitions[topic] = len(metadata.partitions)
        return count

    def _produce(self, topic: str, number: int, key: StoreKey, row: Row | None) -> Future[int]:
        delivery: Future[int] = Future()

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                delivery.set_result(message.offset() or 0)
            else:
                delivery.set_exception(KafkaException(error))

        value = None if row is None else row.SerializeToString()
        self._producer.produce(topic, value, record_key(key), number, on_delivery=delivered)
        return delivery


def record_key(key: StoreKey) -> bytes:
    return "\0".join(part for part in key[1:] if part).encode()
