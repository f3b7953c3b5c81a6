"""What the keyed topics must hold, computed in plain Python from the change log alone."""

from collections.abc import Callable, Iterable
from datetime import UTC

from statecast.change.v1.change_pb2 import Source
from statecast.orders.v1.order_pb2 import Order, OrderChange

Key = tuple[str, str, str]
State = dict[Key, Order]


def by_key(order: Order) -> set[Key]:
    """The keys of an order in `orders-by-key`."""
    return {(order.order_id, "", "")}


def by_customer(order: Order) -> set[Key]:
    """The keys of an order in `orders-by-customer`."""
    return {(order.customer_id, _rfc3339(order.updated_at), order.order_id)}


def by_item(order: Order) -> set[Key]:
    """The keys of an order in `orders-by-item`."""
    return {(line.item_id, _rfc3339(order.placed_at), order.order_id) for line in order.items}


STORES: dict[str, Callable[[Order], set[Key]]] = {
    "orders-by-key": by_key,
    "orders-by-customer": by_customer,
    "orders-by-item": by_item,
}


def current_orders(changes: Iterable[OrderChange]) -> list[Order]:
    """The rows of the source table after all changes, whatever their order and however often each comes."""
    newest: dict[str, tuple[tuple[int, int], Order | None]] = {}
    for change in changes:
        fence = _fence(change.source)
        order_id = change.after.order_id or change.before.order_id
        if order_id not in newest or fence > newest[order_id][0]:
            newest[order_id] = (fence, change.after if change.HasField("after") else None)
    return [order for _, order in newest.values() if order is not None]


def expected(orders: Iterable[Order], keys: Callable[[Order], set[Key]]) -> State:
    """The whole content of the store that keeps `keys` of each order."""
    return {key: order for order in orders for key in keys(order)}


def _fence(source: Source) -> tuple[int, int]:
    return (source.epoch, source.log_sequence_number)


def _rfc3339(stamp: object) -> str:
    moment = stamp.ToDatetime(tzinfo=UTC)  # type: ignore[attr-defined]
    return str(moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
