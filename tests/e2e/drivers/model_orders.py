"""What the topics of the orders' pipelines must hold, computed from the change log alone."""

from collections.abc import Iterable

from drivers.model import STORES, State, current_orders, expected
from drivers.model_keys import Keyed, member_key
from statecast.orders.v1.order_pb2 import OrderChange


def orders_by_key(changes: Iterable[OrderChange]) -> Keyed:
    """The newest row of each order."""
    return {group: order for (group, _, _), order in _state("orders-by-key", changes).items()}


def orders_by_customer(changes: Iterable[OrderChange]) -> Keyed:
    """The orders of each customer, by the time of their last change."""
    return {member_key(*key): order for key, order in _state("orders-by-customer", changes).items()}


def orders_by_item(changes: Iterable[OrderChange]) -> Keyed:
    """The orders that hold each item, by the time of their placing."""
    return {member_key(*key): order for key, order in _state("orders-by-item", changes).items()}


def _state(store: str, changes: Iterable[OrderChange]) -> State:
    return expected(current_orders(changes), STORES[store])
