"""Writes what edges keep to Kafka: the one way in which an edge changes anything outside itself."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from typing import NamedTuple, Protocol

import structlog
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from ws_edge.errors import UnavailableError
from ws_edge.querying.partitioning import partition

MARGIN_S = 1.0
"""How much longer than Kafka's own time-out a caller waits to be told of it."""

log = structlog.get_logger(__name__)


class Record(NamedTuple):
    """One record; without a value it deletes its key."""

    key: bytes
    value: bytes | None


class Writer(Protocol):
    """Whoever writes records of one group; the real one, or a test's."""

    async def write(self, topic: str, group: str, records: Sequence[Record]) -> int:
        """Appends the records in their order to the group's partition; returns the offset of the last one.

        It returns when all in-sync replicas have them. Raises UnavailableError otherwise: some may have been written.
        """


class KafkaWriter:
    """The real one. It connects when it is first used."""

    def __init__(self, bootstrap: str, timeout: float) -> None:
        """`timeout` is how long Kafka may take to acknowledge, in seconds."""
        self._timeout = timeout
        self._partitions: dict[str, int] = {}
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                # In order, and once each, through a change of the partition's leader.
                "enable.idempotence": True,
                "acks": "all",
                "message.timeout.ms": round(timeout * 1000),
                "linger.ms": 0,
                "error_cb": _log_error,
                "log_level": 0,  # what the client has to say comes as errors
            }
        )

    async def write(self, topic: str, group: str, records: Sequence[Record]) -> int:
        """See Writer. A thread waits, so that the event loop need not."""
        return await asyncio.to_thread(self._write, topic, group, records)

    def _write(self, topic: str, group: str, records: Sequence[Record]) -> int:
        try:
            number = partition(group, self._count(topic))
            deliveries = [self._produce(topic, number, record) for record in records]
            self._producer.flush(self._timeout + MARGIN_S)
            return [delivery.result(MARGIN_S) for delivery in deliveries][-1]
        except (KafkaException, BufferError, TimeoutError) as error:
            log.warning("write_failed", topic=topic, reason=str(error))
            raise UnavailableError("Kafka has not taken what was asked to be kept; try again in a moment") from error

    def _count(self, topic: str) -> int:
        """The number of partitions of a topic, which never changes."""
        count = self._partitions.get(topic)
        if count is None:
            metadata = self._producer.list_topics(topic, self._timeout).topics[topic]
            if metadata.error is not None:
                raise KafkaException(metadata.error)
            count = self._partitions[topic] = len(metadata.partitions)
        return count

    def _produce(self, topic: str, number: int, record: Record) -> Future[int]:
        delivery: Future[int] = Future()

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                delivery.set_result(message.offset() or 0)
            else:
                delivery.set_exception(KafkaException(error))

        self._producer.produce(topic, record.value, record.key, number, on_delivery=delivered)
        return delivery


def _log_error(error: KafkaError) -> None:
    log.warning("kafka_error", reason=error.str())
