"""Waits for the broker and the topics before anything is published, and says so."""

from collections.abc import Callable, Collection

import structlog
from confluent_kafka import KafkaException

from cdc_simulator.clock import Clock
from cdc_simulator.publisher import Producer
from cdc_simulator.readiness import Readiness

ATTEMPT_S = 1.0
PAUSE_S = 0.2
REMIND_S = 10.0

log = structlog.get_logger()


def wait_for_topics(
    producer: Producer,
    topics: Collection[str],
    bootstrap: str,
    readiness: Readiness,
    clock: Clock,
    stopping: Callable[[], bool],
) -> bool:
    """Returns True once all topics exist, False when `stopping` came first; blocks until then."""
    said, said_at_s = "", 0.0
    while not stopping():
        reason = _reason_to_wait(producer, topics, bootstrap)
        if reason is None:
            return True
        readiness.reason = reason
        if reason != said or clock.monotonic_s() - said_at_s >= REMIND_S:
            log.warning("waiting", reason=reason)
            said, said_at_s = reason, clock.monotonic_s()
        clock.sleep(PAUSE_S)
    return False


def _reason_to_wait(producer: Producer, topics: Collection[str], bootstrap: str) -> str | None:
    try:
        found = producer.list_topics(timeout=ATTEMPT_S).topics
    except KafkaException:
        return f"no broker answers at {bootstrap}"
    missing = [topic for topic in topics if topic not in found]
    if not missing:
        return None
    return f"topic {missing[0]} does not exist at {bootstrap}: run kafka-topics infra/kafka/topics.yaml"
