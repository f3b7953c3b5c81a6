"""A second order database: its changes are what the tests decide, on the same topic as the simulator's."""

import itertools
import time
from uuid import uuid4

from confluent_kafka import Producer
from google.protobuf.timestamp_pb2 import Timestamp

from statecast.change.v1.change_pb2 import Operation
from statecast.orders.v1.order_pb2 import Order, OrderChange, OrderItem, OrderStatus

PRICE_CENTS = 250


class OrderSource:
    """Makes changes of its own orders and returns when Kafka has acknowledged each. Not thread-safe."""

    def __init__(self, bootstrap: str, topic: str = "orders") -> None:
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "partitioner": "murmur2_random",
                "acks": "all",
                "linger.ms": 0,
                "log_level": 0,
            }
        )
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
        left = self._producer.flush(30)
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
