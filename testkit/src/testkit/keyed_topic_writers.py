"""Fills keyed topics as the processor does, as fast as the broker takes records or at a steady rate."""

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event

from confluent_kafka import Producer

from statecast.orders.v1.order_pb2 import Order, OrderStatus
from statecast.state.v1.state_pb2 import StateRecord
from testkit.background import act_at_rate, in_background

PAYLOAD_BYTES = 180
"""About an order with two items."""
POLL_EVERY = 1_000
FLUSH_S = 120.0
TICK_S = 0.005


def row_key(number: int) -> str:
    """Returns the key of a row, from 0."""
    return f"row-{number:08d}"


def producer(bootstrap: str, linger_ms: float = 50) -> Producer:
    """Returns a producer that spreads keys as the processor does."""
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "partitioner": "murmur2_random",
            "linger.ms": linger_ms,
            "batch.size": 1 << 20,
            "queue.buffering.max.messages": 200_000,
        }
    )


def write_rows(bootstrap: str, topic: str, count: int, sequence: int) -> None:
    """Writes one record for each of the first `count` rows. Raises TimeoutError when the broker does not take them."""
    sender = producer(bootstrap)
    for number in range(count):
        _produce(sender, topic, row_key(number).encode(), row_record(number, sequence))
        if not number % POLL_EVERY:
            sender.poll(0)
    left = sender.flush(FLUSH_S)
    if left:
        raise TimeoutError(f"{topic}: {left} records were not written within {FLUSH_S:g} s")


def row_record(number: int, sequence: int) -> bytes:
    """Returns a StateRecord with a payload that differs from row to row and from sequence to sequence.

    LZ4 cannot compress the payload: a store takes no less space for rows of this size that are real.
    """
    text = f"{number:08d} {sequence} "
    payload = (text + hashlib.shake_128(text.encode()).hexdigest(PAYLOAD_BYTES // 2))[:PAYLOAD_BYTES]
    record = StateRecord(epoch=1, sequence=sequence, payload=payload.encode())
    record.source.commit_time.seconds = 1_700_000_000 + sequence
    return record.SerializeToString()


def _produce(sender: Producer, topic: str, key: bytes, value: bytes) -> None:
    try:
        sender.produce(topic, value, key)
    except BufferError:  # the broker is behind
        sender.flush(FLUSH_S)
        sender.produce(topic, value, key)


def order_key(number: int) -> str:
    """Returns the key of an order, from 0."""
    return f"order-{number:06d}"


class OrderWriter:
    """Writes orders to one topic; every record of a key has a higher sequence than the one before."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.newest: dict[str, int] = {}
        """The sequence of the last record of each key; it stands in the row as well."""
        self._topic = topic
        self._sequence = 0
        self._producer = producer(bootstrap, linger_ms=1)

    def write(self, keys: Sequence[str], padding: int = 0) -> None:
        """Writes each order once, `padding` bytes larger than it need be, and waits until all are acknowledged."""
        for key in keys:
            self._send(key, padding)
        left = self._producer.flush(FLUSH_S)
        if left:
            raise TimeoutError(f"{left} orders were not written within {FLUSH_S:g} s")

    @contextmanager
    def writing(self, keys: Sequence[str], rate: float) -> Iterator[None]:
        """Writes `rate` orders a second, one key after the other, on a thread of its own while the context is open."""

        def write(done: Event) -> None:
            act_at_rate(
                done, rate, TICK_S, lambda n: self._send(keys[n % len(keys)], 0), lambda: self._producer.poll(0)
            )
            self._producer.flush(FLUSH_S)

        with in_background(write):
            yield

    def _send(self, key: str, padding: int) -> None:
        self._sequence += 1
        order = Order(order_id=key, customer_id="customer-0001", status=OrderStatus.ORDER_STATUS_PAID)
        order.tracking_number = f"{self._sequence}".ljust(padding, "x")
        record = StateRecord(epoch=1, sequence=self._sequence, payload=order.SerializeToString())
        record.source.commit_time.FromNanoseconds(time.time_ns())
        self.newest[key] = self._sequence
        self._producer.produce(self._topic, record.SerializeToString(), key.encode())
