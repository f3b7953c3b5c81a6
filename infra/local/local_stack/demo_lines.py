"""Rows as the demo shows them: orders by columns of their own, and the rows of any other store in short."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rich.text import Text

from local_stack.demo_board import Kind, Line
from statecast.orders.v1.order_pb2 import OrderStatus
from statecast_client.push import Row

ORDERS = Kind("orders", ("order", "customer", "status", "delivery", "tracking"))
ROWS = Kind("rows", ("store", "group", "member", "row"))
STATUS_STYLES = dict(zip(OrderStatus.keys(), ("", "white", "cyan", "blue", "yellow", "green", "red"), strict=False))


def order_line(row: Row, seen_by: str) -> Line | None:
    """Returns an order as it came; None for one without the time of its commit."""
    if row.commit_time is None:
        return None
    order = row.value
    status = order["status"].removeprefix("ORDER_STATUS_").capitalize()
    styled = Text(status, STATUS_STYLES.get(order["status"], "magenta"))
    cells = (order["order_id"], order["customer_id"], styled, order["estimated_delivery"], order["tracking_number"])
    return Line(row.key, cells, f"{row.key} {status}", seen_by, _unix_s(row.commit_time))


def row_line(store: str, group: str, row: Row, seen_by: str) -> Line | None:
    """Returns a row of any store as it came; None where its source does not say when it was committed."""
    if row.commit_time is None:
        return None
    name = " ".join(filter(None, (store, group, row.key)))
    return Line(name, (store, group, row.key, text_of(row.value)), name, seen_by, _unix_s(row.commit_time))


def text_of(value: Any) -> str:
    """Returns a document in short: its fields with names, and nested values without."""
    if not isinstance(value, Mapping):
        return _values(value)
    return "  ".join(f"{name} {_values(each)}" for name, each in value.items())


def _values(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(map(_values, value.values()))
    if isinstance(value, list):
        return ", ".join(map(_values, value))
    return str(value)


def _unix_s(commit_time: str) -> float:
    return datetime.fromisoformat(commit_time).timestamp()
