"""Groups are exact: rows are where they belong, in time order, and leave when they move or are deleted."""

from uuid import uuid4

from drivers.gateway_client import GatewayClient
from drivers.lookups import Lookups
from drivers.order_source import OrderSource

from statecast.orders.v1.order_pb2 import OrderStatus
from testkit.waiting import eventually


def members(lookups: Lookups, store: str, group: str) -> list[str]:
    """Returns the members of a group, in the store's order."""
    return [key.member for key, _ in lookups.scan(store, group)]


def test_a_customers_orders_are_a_range_in_time_order(source: OrderSource, lookups: Lookups) -> None:
    customer = f"customer-{uuid4().hex[:8]}"
    first, second, third = (source.place(customer, {"item-a": 1}).order_id for _ in range(3))
    source.advance(first, OrderStatus.ORDER_STATUS_PAID)

    def the_changed_order_is_last() -> None:
        assert members(lookups, "orders-by-customer", customer) == [second, third, first]

    eventually(the_changed_order_is_last)


def test_a_customer_reads_their_range_through_the_gateway(source: OrderSource, bob: GatewayClient) -> None:
    order_id = source.place("customer-0002", {"item-a": 1}).order_id

    def the_newest_member_is_the_order() -> None:
        answer = bob.rows("orders-by-customer", "customer-0002", limit=5, reverse="true")
        assert answer.status_code == 200
        rows = answer.json()["rows"]
        sorts = [row["sort"] for row in rows]
        assert sorts == sorted(sorts, reverse=True)
        assert order_id in [row["row"]["order_id"] for row in rows]

    eventually(the_newest_member_is_the_order)


def test_a_row_that_moves_between_groups_leaves_the_old_one(source: OrderSource, lookups: Lookups) -> None:
    tea, milk, honey = (f"{name}-{uuid4().hex[:8]}" for name in ("tea", "milk", "honey"))
    order_id = source.place("customer-0001", {tea: 1, milk: 2}).order_id

    def order_is_in(*groups: str) -> None:
        holding = {group for group in (tea, milk, honey) if members(lookups, "orders-by-item", group) == [order_id]}
        assert holding == set(groups)

    eventually(lambda: order_is_in(tea, milk))
    source.change_items(order_id, {milk: 1, honey: 1})

    eventually(lambda: order_is_in(milk, honey))


def test_a_delete_removes_the_row_from_every_group(source: OrderSource, lookups: Lookups) -> None:
    item, customer = f"item-{uuid4().hex[:8]}", f"customer-{uuid4().hex[:8]}"
    order_id = source.place(customer, {item: 1}).order_id

    def order_is_a_member(*expected: str) -> None:
        assert members(lookups, "orders-by-item", item) == list(expected)
        assert members(lookups, "orders-by-customer", customer) == list(expected)

    eventually(lambda: order_is_a_member(order_id))
    source.delete(order_id)

    eventually(order_is_a_member)
