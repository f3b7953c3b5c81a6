"""A second order database: the tests decide its changes, which go to the same topic as the simulator's."""

import itertools
import random
import time
from typing import Protocol
from uuid import uuid4

from confluent_kafka import Producer
from google.protobuf.timestamp_pb2 import Timestamp

from statecast.change.v1.change_pb2 import Operation
from statecast.orders.v1.order_pb2 import Order, OrderChange, OrderItem, OrderStatus
from testkit.waiting import scaled

PRICE_CENTS = 250
FLUSH_S = 60
CUSTOMERS = 12
BUSY_ORDERS = 200
PLACED_ONCE_SHARE = 0.5
DELETED_SHARE = 0.05
HANDED_OVER_SHARE = 0.1
STATUSES = [status for status in OrderStatus.values() if status != OrderStatus.ORDER_STATUS_UNSPECIFIED]


PRODUCER_SETTINGS = {
    "partitioner": "murmur2_random",
    "enable.idempotence": True,  # once each, also when a partition's leader dies
    "linger.ms": 0,
    "socket.timeout.ms": 5000,
    "topic.metadata.refresh.interval.ms": 1000,
    "log_level": 0,
}


class RecordProducer(Protocol):
    """The part of a producer that the source uses; confluent_kafka's has it."""

    def produce(self, topic: str, value: bytes, key: bytes) -> None:
        """Takes a record to send."""

    def flush(self, timeout: float) -> int:
        """Returns how many records Kafka has not acknowledged after `timeout` seconds."""


class OrderSource:
    """Makes changes of its own orders and returns when Kafka has acknowledged each. Not thread-safe."""

    def __init__(self, bootstrap: str, topic: str = "orders", producer: RecordProducer | None = None) -> None:
        """Changes go to the broker at `bootstrap`, or through another producer."""
        self._topic = topic
        self._producer: RecordProducer = producer or Producer({"bootstrap.servers": bootstrap, **PRODUCER_SETTINGS})
        self._sequence = itertools.count(1)
        self._orders: dict[str, Order] = {}

    def place(self, customer_id: str, items: dict[str, int], order_id: str | None = None) -> Order:
        """Inserts an order with the given quantities by item."""
        now = _now()
        order = Order(
            order_id=order_id or f"test-{uuid4().hex[:12]}",
            customer_id=customer_id,
            status=OrderStatus.ORDER_STATUS_PLACED,
            currency="EUR",
            placed_at=now,
            updated_at=now,
        )
        _set_items(order, items)
        self._commit(Operation.OPERATION_CREATE, None, order)
        return order

    def advance(self, order_id: str, status: "OrderStatus.ValueType", tracking_number: str = "") -> Order:
        """Moves the order to another station of its life."""
        after = self._next_version(order_id)
        after.status = status
        after.tracking_number = tracking_number or after.tracking_number
        self._commit(Operation.OPERATION_UPDATE, self._orders[order_id], after)
        return after

    def change_items(self, order_id: str, items: dict[str, int]) -> Order:
        """Replaces the order's lines."""
        after = self._next_version(order_id)
        _set_items(after, items)
        self._commit(Operation.OPERATION_UPDATE, self._orders[order_id], after)
        return after

    def hand_over(self, order_id: str, customer_id: str) -> Order:
        """Makes the order another customer's."""
        after = self._next_version(order_id)
        after.customer_id = customer_id
        self._commit(Operation.OPERATION_UPDATE, self._orders[order_id], after)
        return after

    def delete(self, order_id: str) -> None:
        """Deletes the row."""
        self._commit(Operation.OPERATION_DELETE, self._orders[order_id], None)

    def send_raw(self, value: bytes, key: bytes = b"poison") -> None:
        """Sends bytes that need not be a change."""
        self._producer.produce(self._topic, key=key, value=value)
        self._flush()

    def _next_version(self, order_id: str) -> Order:
        after = Order()
        after.CopyFrom(self._orders[order_id])
        after.updated_at.CopyFrom(_now())
        return after

    def _commit(self, operation: "Operation.ValueType", before: Order | None, after: Order | None) -> None:
        row = after or before
        assert row is not None
        change = OrderChange(operation=operation, before=before, after=after, captured_at=_now())
        change.source.epoch = 1
        change.source.log_sequence_number = next(self._sequence)
        change.source.commit_time.CopyFrom(_now())
        change.source.table = "orders"
        self._producer.produce(self._topic, key=row.order_id.encode(), value=change.SerializeToString())
        self._flush()
        if after is None:
            del self._orders[row.order_id]
        else:
            self._orders[row.order_id] = after

    def _flush(self) -> None:
        left = self._producer.flush(scaled(FLUSH_S))
        assert left == 0, "Kafka did not acknowledge the change"


def _set_items(order: Order, items: dict[str, int]) -> None:
    del order.items[:]
    for item_id, quantity in items.items():
        order.items.append(OrderItem(item_id=item_id, quantity=quantity, unit_price_cents=PRICE_CENTS))
    order.total_cents = sum(line.quantity * line.unit_price_cents for line in order.items)


def _now() -> Timestamp:
    stamp = Timestamp()
    stamp.FromNanoseconds(time.time_ns() // 1000 * 1000)
    return stamp


class OrderChanges:
    """Makes `count` changes one by one; one thread makes them, any may read how many there are.

    A busy order is advanced, handed over to another customer, deleted, and placed again.
    """

    def __init__(self, source: OrderSource, seed: int, count: int) -> None:
        """Makes none yet. Orders and customers bear the seed in their names."""
        self._source = source
        self._chance = random.Random(f"changes {seed}")
        self._living: set[str] = set()
        self.prefix = f"kills-{seed}-"
        """The beginning of the ids of all these orders."""
        self.customers = [f"{self.prefix}customer-{number:02}" for number in range(CUSTOMERS)]
        self.busy = [f"{self.prefix}busy-{number:03}" for number in range(BUSY_ORDERS)]
        self.placed_once = [f"{self.prefix}once-{number:05}" for number in range(int(count * PLACED_ONCE_SHARE))]
        again = self._chance.choices(self.busy, k=count - len(self.busy) - len(self.placed_once))
        later = self.placed_once + again
        self._chance.shuffle(later)
        self._script = self.busy + later
        self.made_count = 0

    def __len__(self) -> int:
        return len(self._script)

    def make_next(self) -> None:
        """Makes the next change; it is acknowledged by Kafka on return."""
        order_id, chance = self._script[self.made_count], self._chance
        if order_id not in self._living:
            self._living.add(order_id)
            self._source.place(chance.choice(self.customers), {f"item-{chance.randrange(50)}": 1}, order_id)
        elif (dice := chance.random()) < DELETED_SHARE:
            self._living.discard(order_id)
            self._source.delete(order_id)
        elif dice < DELETED_SHARE + HANDED_OVER_SHARE:
            self._source.hand_over(order_id, chance.choice(self.customers))
        else:
            self._source.advance(order_id, chance.choice(STATUSES))
        self.made_count += 1
