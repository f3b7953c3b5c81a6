"""The models of the orders' pipelines, on histories made by hand."""

from drivers.model_history import History
from drivers.model_orders import orders_by_customer, orders_by_item, orders_by_key
from google.protobuf.timestamp_pb2 import Timestamp

from statecast.orders.v1.order_pb2 import Order, OrderChange, OrderItem


def order(order_id: str, *items: str) -> Order:
    return Order(
        order_id=order_id,
        customer_id="c1",
        items=[OrderItem(item_id=item, quantity=1) for item in items],
        placed_at=Timestamp(seconds=1_724_848_496, nanos=123_456_000),
        updated_at=Timestamp(seconds=1_724_848_496),
    )


def history() -> History:
    history = History(OrderChange, "orders")
    history.snapshot(order("o1", "tea"))
    history.create(order("o2", "tea", "milk"))
    history.create(order("o3", "milk"))
    history.update("o1", updated_at=Timestamp(seconds=1_724_848_500), items=[OrderItem(item_id="honey", quantity=2)])
    history.delete("o3")
    return history


def test_orders_stand_by_their_id() -> None:
    assert set(orders_by_key(history().changes)) == {"o1", "o2"}


def test_a_customers_orders_stand_by_the_time_of_their_last_change() -> None:
    assert set(orders_by_customer(history().changes)) == {
        "c1\0" + "2024-08-28T12:35:00.000000Z\0o1",
        "c1\0" + "2024-08-28T12:34:56.000000Z\0o2",
    }


def test_an_order_stands_at_each_of_its_items() -> None:
    assert set(orders_by_item(history().changes)) == {
        "tea\0" + "2024-08-28T12:34:56.123456Z\0o1",
        "honey\0" + "2024-08-28T12:34:56.123456Z\0o1",
        "tea\0" + "2024-08-28T12:34:56.123456Z\0o2",
        "milk\0" + "2024-08-28T12:34:56.123456Z\0o2",
    }
