"""Sends changes to Kafka and keeps account of the changes that Kafka has."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import structlog
from confluent_kafka import KafkaError, KafkaException, Message

from cdc_simulator.change_events import LoggedChange, change_event
from cdc_simulator.errors import PublishError
from cdc_simulator.metrics import Metrics, Readiness
from cdc_simulator.pacing import Clock
from statecast_service.kafka import is_refusal, reason

MAX_IN_FLIGHT = 10_000  # a tenth of the client's own queue, so that it is never full
DELIVERY = {
    # Idempotent, without a time-out: each change arrives once and in its partition's order, however long it takes.
    "enable.idempotence": True,
    "acks": "all",
    "message.timeout.ms": 0,
    "linger.ms": 2,
    "compression.type": "lz4",
    "allow.auto.create.topics": False,  # asking for a topic by name would make it
    "partitioner": "murmur2_random",  # Kafka's own, so that any client finds a key's partition
}
METADATA_TIMEOUT_S = 1.0
TOPIC_CHECK_INTERVAL_S = 0.2
REMINDER_INTERVAL_S = 10.0

log = structlog.get_logger()


class Producer(Protocol):
    """The methods of confluent-kafka's Producer that the publisher needs."""

    def produce(self, topic: str, value: bytes, key: bytes, *, on_delivery: Callable[..., None]) -> None: ...
    def poll(self, timeout: float) -> int: ...
    def list_topics(self, topic: str, *, timeout: float) -> Any: ...


class Acknowledgements:
    """Finds how far the log is acknowledged without a gap, while partitions acknowledge in any order."""

    def __init__(self, acknowledged_lsn: int) -> None:
        self.lsn = acknowledged_lsn
        """The highest log sequence number up to which every change is acknowledged."""
        self._after_a_gap: set[int] = set()

    def add(self, lsn: int) -> None:
        self._after_a_gap.add(lsn)
        while self.lsn + 1 in self._after_a_gap:
            self.lsn += 1
            self._after_a_gap.remove(self.lsn)


class Publisher:
    """Publishes the changes of one database incarnation, in order; used from one thread."""

    def __init__(
        self,
        bootstrap: str,
        topics: Mapping[str, str],
        epoch: int,
        acknowledged_lsn: int,
        metrics: Metrics,
        connect: Callable[[dict[str, Any], Callable[[KafkaError], None]], Producer],
    ) -> None:
        """`topics` are those of the tables, `acknowledged_lsn` the last change that Kafka is known to have.

        Waits for nothing.
        """
        self._producer = connect(DELIVERY, self._note_error)
        self.sent_lsn = acknowledged_lsn
        """The last change that was handed to the client."""
        self._bootstrap = bootstrap
        self._topics = topics
        self._epoch = epoch
        self._acknowledgements = Acknowledgements(acknowledged_lsn)
        self._in_flight = 0
        self._published: Counter[str] = Counter()
        self._failure: str | None = None
        self._refused: str | None = None
        self._metrics = metrics

    @property
    def acknowledged_lsn(self) -> int:
        """Kafka has every change up to here."""
        return self._acknowledgements.lsn

    @property
    def room(self) -> int:
        """How many changes may be sent now."""
        return MAX_IN_FLIGHT - self._in_flight

    def wait_for_topics(self, readiness: Readiness, clock: Clock, stopping: Callable[[], bool]) -> bool:
        """Returns True once all topics exist, False when `stopping` came first; blocks until then, and says why."""
        logged, logged_at_s = "", 0.0
        while not stopping():
            reason = self._reason_to_wait()
            if reason is None:
                return True
            readiness.reason = reason
            if reason != logged or clock.monotonic_s() - logged_at_s >= REMINDER_INTERVAL_S:
                log.warning("waiting", reason=reason)
                logged, logged_at_s = reason, clock.monotonic_s()
            clock.sleep(TOPIC_CHECK_INTERVAL_S)
        return False

    def send(self, changes: Sequence[LoggedChange], captured_at_us: int) -> None:
        """Queues the changes that follow `sent_lsn`, `room` at most. Success does not promise that they arrived.

        A change that Kafka gets no record of, a deleted event, is acknowledged at once.
        Raises PublishError when a change can never be sent.
        """
        for change in changes:
            event = change_event(change, self._epoch, captured_at_us)
            if event is None:
                self._acknowledgements.add(change.lsn)
            else:
                self._produce(change, event.SerializeToString())
            self.sent_lsn = change.lsn

    def poll(self) -> None:
        """Takes note of the delivered changes; does not wait. Raises PublishError when one failed for good."""
        self._producer.poll(0)
        for operation, count in self._published.items():
            self._metrics.published.labels(operation).inc(count)
        self._published.clear()
        if self._failure:
            raise PublishError(self._failure)

    def _produce(self, change: LoggedChange, value: bytes) -> None:
        topic, key = self._topics[change.table.name], change.table.key(change.row).encode()
        on_delivery = partial(self._note_delivery, change)
        try:
            self._producer.produce(topic, value, key, on_delivery=on_delivery)
        except KafkaException as error:
            raise PublishError(self._refusal(change, error.args[0])) from error
        self._in_flight += 1

    def _reason_to_wait(self) -> str | None:
        try:
            for topic in self._topics.values():
                # By name, because a list of all topics leaves out those that the ACLs hide.
                error = self._producer.list_topics(topic, timeout=METADATA_TIMEOUT_S).topics[topic].error
                if error is not None and error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    absent = f"topic {topic} does not exist at {self._bootstrap}"
                    return f"{absent}: run kafka-topics infra/kafka/topics.yaml"
                if error is not None:
                    return reason(error, "Write", topic)
        except KafkaException:
            self._producer.poll(0)
            return self._refused or f"no broker answers at {self._bootstrap}"
        return None

    def _note_delivery(self, change: LoggedChange, error: KafkaError | None, _: Message) -> None:
        self._in_flight -= 1
        if error is None:
            self._acknowledgements.add(change.lsn)
            self._published[change.operation] += 1
        else:
            self._failure = self._failure or self._refusal(change, error)

    def _note_error(self, error: KafkaError) -> None:
        self._metrics.broker_errors.inc()
        if error.fatal():
            self._failure = self._failure or f"the Kafka client cannot go on: {error.str()}; start the simulator again"
        else:
            self._refused = error.str() if is_refusal(error) else None
            log.warning("cannot reach the broker", reason=error.str())

    def _refusal(self, change: LoggedChange, error: KafkaError) -> str:
        return (
            f"Kafka refuses change {change.lsn} of {change.table.row_id(change.row)} "
            f"for topic {self._topics[change.table.name]}: {reason(error, 'Write', self._topics[change.table.name])}; "
            "fix the topic (kafka-topics checks it) and start again: it continues with the first change not in Kafka"
        )
