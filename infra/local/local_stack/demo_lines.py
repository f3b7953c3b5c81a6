"""Rows as the demo shows them: orders by columns of their own, and the rows of any other store in short."""

from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format
from google.protobuf.any_pb2 import Any as PackedRow
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Value
from rich.text import Text

from local_stack.demo_board import Kind, Line
from statecast.descriptors import MessageTypes
from statecast.orders.v1.order_pb2 import Order, OrderStatus
from statecast.push.v1.range_pb2 import RangeChanged
from statecast.push.v1.subscription_pb2 import Changed

ORDERS = Kind("orders", ("order", "customer", "status", "delivery", "tracking"))
ROWS = Kind("rows", ("store", "group", "member", "row"))
STATUS_STYLES = dict(zip(OrderStatus.values(), ("", "white", "cyan", "blue", "yellow", "green", "red"), strict=False))


def order_line(change: RangeChanged, seen_by: str) -> Line | None:
    """An order as it came; None for one that has gone."""
    order = Order()
    if not change.row.Unpack(order):
        return None
    status = OrderStatus.Name(order.status).removeprefix("ORDER_STATUS_").capitalize()
    styled = Text(status, STATUS_STYLES.get(order.status, "magenta"))
    cells = (order.order_id, order.customer_id, styled, order.estimated_delivery, order.tracking_number)
    return Line(order.order_id, cells, f"{order.order_id} {status}", seen_by, _committed_s(change))


class RowLines:
    """Makes lines of the rows of any store."""

    def __init__(self, types: MessageTypes) -> None:
        self._types = types

    def line(self, store: str, change: RangeChanged | Changed, seen_by: str) -> Line | None:
        """A row as it came; None for one that has gone, or whose source does not say when it was committed."""
        if not (change.HasField("row") and change.HasField("commit_time")):
            return None
        group, member = change.key.group, change.key.member
        name = " ".join(filter(None, (store, group, member)))
        return Line(name, (store, group, member, self._text(change.row)), name, seen_by, _committed_s(change))

    def _text(self, packed: PackedRow) -> str:
        row = self._message(packed.TypeName())
        if row is None or not packed.Unpack(row):
            return packed.TypeName()
        return text_of(json_format.MessageToDict(row, preserving_proto_field_name=True))

    def _message(self, name: str) -> Message | None:
        if name == Value.DESCRIPTOR.full_name:
            return Value()
        try:
            return self._types.message_class(name)()
        except KeyError:
            return None


def text_of(value: Any) -> str:
    """A document in short: values with their names, and of what stands below them the values alone."""
    if not isinstance(value, Mapping):
        return _values(value)
    return "  ".join(f"{name} {_values(each)}" for name, each in value.items())


def _values(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(map(_values, value.values()))
    if isinstance(value, list):
        return ", ".join(map(_values, value))
    return str(value)


def _committed_s(change: RangeChanged | Changed) -> float:
    return change.commit_time.ToNanoseconds() / 1e9
