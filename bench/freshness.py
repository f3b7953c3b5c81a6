"""How long a change takes: to its keyed topic, to a lookup, and to a client behind the gateway."""

import time

from confluent_kafka import Consumer, TopicPartition
from drivers.audience import Audience
from drivers.lookups import Lookups
from drivers.source import OrderSource
from google.protobuf.timestamp_pb2 import Timestamp

from bench.results import percentiles
from statecast.state.v1.state_pb2 import StateKey, StateRecord

MEASURE_S = 20.0
PROBES = 300
SETTLED_PROBES = 20
SETTLE_S = 180.0


def settle(source: OrderSource, lookups: Lookups) -> None:
    """Returns when new orders are looked up within a second of their commit, which is when no backlog is left.

    Raises TimeoutError when that takes longer than SETTLE_S.
    """
    deadline = time.monotonic() + SETTLE_S
    quick = 0
    while quick < SETTLED_PROBES:
        if time.monotonic() > deadline:
            raise TimeoutError(f"changes still take longer than a second after {SETTLE_S:g} s: is the machine busy?")
        quick = quick + 1 if _probe_ms(source, lookups) < 1_000 else 0


def to_topic(bootstrap: str, topic: str = "orders-by-key") -> dict[str, float]:
    """From the commit at the source until a consumer of the keyed topic has the record, in milliseconds."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "fetch.wait.max.ms": 10})
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        ends = [(p, consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=10)[1]) for p in partitions]
        consumer.assign([TopicPartition(topic, partition, end) for partition, end in ends])
        ages: list[float] = []
        deadline = time.monotonic() + MEASURE_S
        while time.monotonic() < deadline:
            record = consumer.poll(1)
            value = record.value() if record is not None else None
            if value is not None:
                ages.append(_age_ms(StateRecord.FromString(value).source.commit_time))
    finally:
        consumer.close()
    return percentiles("change_to_topic_ms", ages)


def to_lookup(source: OrderSource, lookups: Lookups) -> dict[str, float]:
    """From the commit of a new order until a waiting lookup of it is answered, in milliseconds."""
    return percentiles("change_to_lookup_ms", [_probe_ms(source, lookups) for _ in range(PROBES)])


def to_client(audience: Audience) -> dict[str, float]:
    """From the commit at the source until a client behind the gateway has the frame, in milliseconds."""
    audience.ages_ms.clear()
    time.sleep(MEASURE_S)
    return percentiles("change_to_client_ms", list(audience.ages_ms), f".interval_{audience.interval_ms}")


def _probe_ms(source: OrderSource, lookups: Lookups) -> float:
    order = source.place("customer-bench", {"item-bench": 1})
    lookups.wait_for("orders-by-key", StateKey(group=order.order_id))
    return _age_ms(order.updated_at)


def _age_ms(stamp: Timestamp) -> float:
    return (time.time_ns() - stamp.ToNanoseconds()) / 1e6
