"""The rows that both systems hold: orders of 178 bytes, as records of a keyed topic and as changes of the source."""

import time

from confluent_kafka import Producer

from statecast.change.v1.change_pb2 import OPERATION_CREATE, OPERATION_UPDATE
from statecast.orders.v1.order_pb2 import Order, OrderChange, OrderStatus
from statecast.state.v1.state_pb2 import StateRecord
from testkit.keyed_topic_writers import FLUSH_S, POLL_EVERY, order_key, producer

STAMP_S = 1_700_000_000
ITEMS = 4


def order(number: int, version: int) -> Order:
    """Returns the row of an order; `version` stands in its tracking number, which `version_of` reads."""
    row = Order(
        order_id=order_key(number),
        customer_id=f"customer-{number % 20_000:05d}",
        status=OrderStatus.ORDER_STATUS_SHIPPED,
        total_cents=ITEMS * (500 + number % 5_000),
        currency="EUR",
        estimated_delivery="2026-11-28",
        tracking_number=f"parcel-{number:08d}-{version:020d}",
    )
    for item in range(number, number + ITEMS):
        row.items.add(item_id=f"item-{item % 500:04d}", quantity=1, unit_price_cents=500 + number % 5_000)
    row.placed_at.seconds, row.updated_at.seconds = STAMP_S, STAMP_S + version
    return row


def version_of(payload: bytes) -> int:
    return int(Order.FromString(payload).tracking_number.rpartition("-")[2])


def keyed_record(number: int, version: int) -> bytes:
    """Returns a StateRecord of the order, as the processor writes it."""
    record = StateRecord(epoch=1, sequence=version, payload=order(number, version).SerializeToString())
    record.source.epoch, record.source.log_sequence_number = 1, version
    record.source.commit_time.FromNanoseconds(time.time_ns())
    return record.SerializeToString()


def change(number: int, version: int) -> bytes:
    """Returns an OrderChange that creates the order (version 1) or changes the version before; versions rise by row."""
    made = OrderChange(operation=OPERATION_UPDATE if version > 1 else OPERATION_CREATE)
    made.after.CopyFrom(order(number, version))
    if version > 1:
        made.before.CopyFrom(order(number, version - 1))
    made.source.epoch, made.source.log_sequence_number, made.source.table = 1, version, "orders"
    made.source.commit_time.FromNanoseconds(time.time_ns())
    return made.SerializeToString()


def write_keyed(bootstrap: str, topic: str, count: int, version: int) -> None:
    """Writes this version of the first `count` orders. Raises TimeoutError when the broker does not take them."""
    sender = producer(bootstrap)
    for number in range(count):
        send(sender, topic, number, keyed_record(number, version))
    flush(sender)


def write_changes(bootstrap: str, topic: str, count: int, version: int) -> None:
    """Writes the change to this version of the first `count` orders. Raises TimeoutError as `write_keyed`."""
    sender = producer(bootstrap)
    for number in range(count):
        send(sender, topic, number, change(number, version))
    flush(sender)


def send(sender: Producer, topic: str, number: int, value: bytes) -> None:
    """Hands the record to the producer under the order's key; waits while its queue is full."""
    try:
        sender.produce(topic, value, order_key(number).encode())
    except BufferError:
        flush(sender)
        sender.produce(topic, value, order_key(number).encode())
    if not number % POLL_EVERY:
        sender.poll(0)


def flush(sender: Producer) -> None:
    """Waits until Kafka has everything. Raises TimeoutError when it does not take it."""
    left = sender.flush(FLUSH_S)
    if left:
        raise TimeoutError(f"{left} records were not written within {FLUSH_S:g} s")
