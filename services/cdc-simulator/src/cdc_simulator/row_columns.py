"""Turns rows into the columns of the table `orders` and back; pure. Lines of an order stand in one column, as JSON."""

import json
from collections.abc import Sequence
from typing import Any

from cdc_simulator.order_row import Item, OrderRow, Status

COLUMNS = ", ".join(OrderRow._fields)
MARKS = ", ".join("?" * len(OrderRow._fields))
INSERT = f"INSERT INTO orders ({COLUMNS}) VALUES ({MARKS})"  # noqa: S608  built from the constants above
SELECT = f"SELECT {COLUMNS} FROM orders WHERE number = ?"  # noqa: S608  as above
UPDATE = (
    "UPDATE orders SET status = ?, items = ?, total_cents = ?, updated_at_us = ?, estimated_delivery = ?,"
    " tracking_number = ? WHERE number = ?"
)
DELETE = "DELETE FROM orders WHERE number = ?"


def insert_values(row: OrderRow) -> tuple[Any, ...]:
    """Returns the values for INSERT."""
    return (*row[:3], json.dumps(row.items), *row[4:])


def update_values(row: OrderRow) -> tuple[Any, ...]:
    """Returns the values for UPDATE; the columns that never change are not among them."""
    return (
        row.status,
        json.dumps(row.items),
        row.total_cents,
        row.updated_at_us,
        row.estimated_delivery,
        row.tracking_number,
        row.number,
    )


def row_of_columns(columns: Sequence[Any]) -> OrderRow:
    """Returns the row of what SELECT answered."""
    return _row(columns, json.loads(columns[3]))


def row_of_image(image: str | None) -> OrderRow | None:
    """Returns the row of an image in the change log; absent for an absent one."""
    if image is None:
        return None
    columns = json.loads(image)
    return _row(columns, columns[3])


def _row(columns: Sequence[Any], items: Sequence[Sequence[Any]]) -> OrderRow:
    return OrderRow(columns[0], columns[1], Status(columns[2]), tuple(map(Item._make, items)), *columns[4:])
