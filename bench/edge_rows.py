"""The rows of the edge benchmark: orders, written to a keyed topic at a steady rate, committed when they are sent."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event

from drivers.meanwhile import act_at_rate, meanwhile

from bench.query_rows import producer
from statecast.orders.v1.order_pb2 import Order, OrderStatus
from statecast.state.v1.state_pb2 import StateRecord

TICK_S = 0.005
FLUSH_S = 120.0


def key_of(number: int) -> str:
    """The key of an order, from 0."""
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

        with meanwhile(write):
            yield

    def _send(self, key: str, padding: int) -> None:
        self._sequence += 1
        order = Order(order_id=key, customer_id="customer-0001", status=OrderStatus.ORDER_STATUS_PAID)
        order.tracking_number = f"{self._sequence}".ljust(padding, "x")
        record = StateRecord(epoch=1, sequence=self._sequence, payload=order.SerializeToString())
        record.source.commit_time.FromNanoseconds(time.time_ns())
        self.newest[key] = self._sequence
        self._producer.produce(self._topic, record.SerializeToString(), key.encode())
