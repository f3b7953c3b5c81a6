"""Turns logged changes into OrderChange; pure, and the only module that knows the contract."""

from functools import lru_cache

from google.protobuf.timestamp_pb2 import Timestamp

from cdc_simulator.logged_change import LoggedChange
from cdc_simulator.order_row import Item, OrderRow, Status
from statecast.change.v1.change_pb2 import Operation, Source
from statecast.orders.v1.order_pb2 import Order, OrderChange, OrderItem, OrderStatus

TABLE = "orders"
US = 1_000_000

OPERATIONS = {
    "snapshot": Operation.OPERATION_SNAPSHOT,
    "create": Operation.OPERATION_CREATE,
    "update": Operation.OPERATION_UPDATE,
    "delete": Operation.OPERATION_DELETE,
}
STATUSES = {
    Status.PLACED: OrderStatus.ORDER_STATUS_PLACED,
    Status.PAID: OrderStatus.ORDER_STATUS_PAID,
    Status.PACKED: OrderStatus.ORDER_STATUS_PACKED,
    Status.SHIPPED: OrderStatus.ORDER_STATUS_SHIPPED,
    Status.DELIVERED: OrderStatus.ORDER_STATUS_DELIVERED,
    Status.CANCELLED: OrderStatus.ORDER_STATUS_CANCELLED,
}


def order_change(change: LoggedChange, epoch: int, captured_at_us: int) -> OrderChange:
    """Returns the change as the contract has it; `captured_at_us` is when it was read from the log."""
    return OrderChange(
        operation=OPERATIONS[change.operation],
        source=Source(
            epoch=epoch,
            log_sequence_number=change.lsn,
            transaction_id=change.transaction_id,
            commit_time=_timestamp(change.commit_time_us),
            snapshot=change.snapshot,
            table=TABLE,
        ),
        before=_order(change.before),
        after=_order(change.after),
        captured_at=_timestamp(captured_at_us),
    )


def _order(row: OrderRow | None) -> Order | None:
    if row is None:
        return None
    return Order(
        order_id=row.order_id,
        customer_id=row.customer_id,
        status=STATUSES[row.status],
        items=map(_item, row.items),
        total_cents=row.total_cents,
        currency=row.currency,
        placed_at=_timestamp(row.placed_at_us),
        updated_at=_timestamp(row.updated_at_us),
        estimated_delivery=row.estimated_delivery,
        tracking_number=row.tracking_number,
    )


# Both are remembered because the same few stand in most changes, and making them is a fifth of the work of a change;
# the caller copies them, so that sharing them is safe.
@lru_cache(maxsize=16_384)
def _item(item: Item) -> OrderItem:
    return OrderItem(item_id=item.item_id, quantity=item.quantity, unit_price_cents=item.unit_price_cents)


@lru_cache(maxsize=1024)
def _timestamp(us: int) -> Timestamp:
    return Timestamp(seconds=us // US, nanos=us % US * 1000)
